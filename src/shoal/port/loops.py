"""Loops: written out turn by turn where they are short, as loops of kernel code where not."""

from __future__ import annotations

import ast
import inspect
import re
import types

import numpy as np

from shoal.port import turns
from shoal.port.frames import (
    FALLS,
    MAYBE,
    NEVER,
    Bind,
    Loop,
    Turn,
    Walk,
    as_load,
    as_walk,
    assigns,
    definition_of,
    loaded_names,
    own_nodes,
    read_outside,
    returns_in_loop,
    yields,
)
from shoal.port.joining import join, layout_of, reference_of
from shoal.port.layouts import ConstL, ObjL, OpaqueL, is_stored
from shoal.port.refusal import Cannot, Refused, Restart
from shoal.port.sharing import STALE
from shoal.port.statements import MOST_UNROLLED, UNROLL, Statements
from shoal.port.trees import changes_something, depends_on_order, nodes_of_turns
from shoal.port.values import (
    Bound,
    Const,
    Dyn,
    Fam,
    Local,
    Lst,
    Mem,
    Num,
    Opaque,
    Seq,
    Value,
)

DRAWS = re.compile(r"\b(pcg|pcg_more|mt)\.")


class Loops(Statements):
    """How loops are followed."""

    def unrolled(self, node: ast.For) -> list[ast.stmt] | None:
        """The turns of a short loop, one after the other; None for a loop of kernel code."""
        site = self.site
        if isinstance(node.iter, ast.BinOp):
            loops = self.one_after_the_other(node, node.iter)
            if loops is not None:
                return loops
        if isinstance(node.iter, ast.Call):
            self.must_not_meet(node, self.value(node.iter.func))
        iterable = self.value(node.iter)
        self.site = site
        node.walked = iterable  # type: ignore[attr-defined]
        if isinstance(iterable, Lst | Walk) or (isinstance(iterable, Mem) and isinstance(iterable.shape[0], Dyn)):
            return None
        if isinstance(iterable, Fam):
            iterable = node.walked = self.realise(iterable)  # type: ignore[attr-defined]
            if isinstance(iterable, Lst):
                return None
        items = self.items(iterable)
        jumps = any(isinstance(n, ast.Break | ast.Continue) for n in own_nodes(node))
        loops_inside = any(isinstance(n, ast.For | ast.While) for s in node.body for n in ast.walk(s))
        is_plain = isinstance(iterable, Const) and isinstance(iterable.value, range | np.ndarray | tuple | list)
        forced = site in self.decisions.unrolled
        short = len(items) <= UNROLL and not jumps and not (loops_inside and len(items) > 3)
        if is_plain and not forced and not short and as_walk(self, iterable) is not None:
            return None
        if len(items) > 512:
            raise Cannot(f"loops over {len(items)} different things", "Loop over range(n) and numbers.")
        if jumps:
            return self.turns(node, items)
        return [s for item in items for s in (Bind(node.target, item, node), *node.body)] + list(node.orelse)

    def one_after_the_other(self, node: ast.For, both: ast.BinOp) -> list[ast.stmt] | None:
        """`for x in self.cars + self.trucks` of objects of two classes: a loop for each."""
        if not isinstance(both.op, ast.Add) or any(isinstance(n, ast.Break) for n in own_nodes(node)):
            return None
        lists = [self.value(side) for side in (both.left, both.right)]
        classes = {type(v.layout.example) for v in lists if isinstance(v, Lst) and isinstance(v.layout, ObjL)}
        if len(classes) < 2:
            return None
        loops: list[ast.stmt] = []
        for listed in lists:
            name = self.unique("listed")
            assert isinstance(listed, Lst)
            self.frame.names[name] = self.shallow_copy(listed)
            walked = ast.copy_location(ast.Name(name, ast.Load()), node)
            loops.append(ast.copy_location(ast.For(node.target, walked, node.body, []), node))
        return loops

    def must_not_meet(self, loop: ast.For, function: Value) -> None:
        """A generator is run through before the loop around it: refused where either could notice."""
        called = function.function if isinstance(function, Bound) else getattr(function, "value", None)
        if isinstance(function, Local):
            looks = function.node if yields(function.node) else None
        else:
            looks = None
            if isinstance(called, types.FunctionType) and inspect.isgeneratorfunction(called):
                looks = definition_of(called)[0]
        if looks is None:
            return
        known = self.layout.attributes
        kept = {a for a, layout in known.items() if not isinstance(layout, ConstL)} | {"np_random", "_np_random"}
        looked_at = {n.attr for n in ast.walk(looks) if isinstance(n, ast.Attribute)} & kept
        leaves = any(isinstance(n, ast.Break | ast.Return) for statement in loop.body for n in ast.walk(statement))
        if leaves and changes_something(looks):
            raise Cannot(
                "may leave before a generator has come to its end, which draws or changes something",
                "Make a list of it first, in the class too.",
            )
        inside = list(nodes_of_turns(loop.body))
        changed = {n.attr for n in inside if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)}
        owners = [n.value for n in inside if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load)]
        owners += [n.func.value for n in inside if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
        changed |= {n.attr for owner in owners for n in ast.walk(owner) if isinstance(n, ast.Attribute)}
        calls = any(isinstance(owner, ast.Name) and owner.id == "self" for owner in owners)
        if looked_at and (calls or looked_at & changed):
            raise Cannot(
                f"goes through a generator that looks at {', '.join(sorted(looked_at))}, which the loop may change",
                "Make a list of it first, in the class too.",
            )

    def turns(self, node: ast.For, items: list[Value]) -> list[ast.stmt]:
        """Turns that may break off: each is a loop of one turn."""
        stop = self.unique("stopped")
        self.emit(f"{stop} = False")
        return [Turn(node, item, stop) for item in items]

    def do_Turn(self, node: Turn) -> str:
        loop = self.begin_loop(node.loop)
        loop.stop = node.stop
        with self.block() as lines:
            self.loops.append(loop)
            self.assign(node.loop.target, node.item)
            status = self.execute(node.loop.body)
            self.loops.pop()
            if status != NEVER:
                self.carry(loop)
        self.end_loop(loop)
        once = self.unique("once")
        inner = [f"for {once} in range(1):", *["    " + line for line in lines or ["pass"]]]
        self.emit_block(f"if not {node.stop}:", inner)
        return MAYBE if self.frame.done and returns_in_loop(node.loop) else FALLS

    def loop_over(self, node: ast.For) -> str:
        iterable = node.walked  # type: ignore[attr-defined]
        walk = as_walk(self, iterable)
        if walk is None:
            raise Cannot("loops over something whose items are not known", "Loop over range(n).")
        if not getattr(node, "any_order", False) and depends_on_order(node, self.frame.node):
            self.in_order(iterable)
        site = self.site
        count = walk.count if self.is_stable(walk.count) else self.temporary(walk.count)
        loop = self.begin_loop(node)
        loop.walked = walk.source or iterable
        loop.own = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        name = self.unique(node.target.id if isinstance(node.target, ast.Name) else "k")
        self.natural.add(name)
        self.stable.add(name)
        try:
            with self.block() as lines:
                self.loops.append(loop)
                item = walk.item(name)
                if isinstance(item, Num) and item.expr == name and not assigns(node.body, node.target):
                    self.frame.names[node.target.id] = item  # type: ignore[attr-defined]
                    self.stable.add(name)
                else:
                    self.assign(node.target, item)
                last = self.keep_last(node)
                status = self.execute(node.body)
                self.loops.pop()
                if status != NEVER:
                    self.carry(loop)
        except Refused:
            if isinstance(iterable, Const) and walk.cap <= MOST_UNROLLED and site not in self.decisions.unrolled:
                self.decisions.unrolled.add(site)
                raise Restart from None
            raise
        self.end_loop(loop)
        if isinstance(iterable, Lst) and iterable.is_set and self.rounds_by_order(node, lines):
            self.in_order(iterable)
        for own in {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}:
            self.frame.names.pop(own, None)
        self.frame.names |= last
        if self.has_new_length(walk, lines):
            lines[:0] = [f"if {name} >= {walk.count}:", "    break"]
            count = str(walk.cap)
        self.emit_block(f"for {name} in range({count}):", lines)
        return MAYBE if self.frame.done and returns_in_loop(node) else FALLS

    def rounds_by_order(self, node: ast.For, lines: list[str]) -> bool:
        """Whether turns draw, or add up fractions, whose last digits depend on which comes first."""
        if any(DRAWS.search(line) for line in lines):
            return True
        added = [n.target for n in ast.walk(node) if isinstance(n, ast.AugAssign)]
        behind = [n for n in added if not isinstance(n, ast.Name) or n.id in self.frame.names]
        totals = [self.value(as_load(n)) for n in behind if not isinstance(n, ast.Subscript)]
        return any(isinstance(total, Num) and total.kind.is_float for total in totals)

    def has_new_length(self, walk: Walk, lines: list[str]) -> bool:
        """Whether turns change the length of the list that they go through, which Python sees at once."""
        changed = [n for n in walk.lengths if any(line.lstrip().startswith(f"{n} = ") for line in lines)]
        if changed and walk.lengths != (walk.count,):
            raise Cannot("changes the length of a list that the loop goes through", "Go through list(...) of it.")
        return bool(changed)

    def keep_last(self, node: ast.For) -> dict[str, Value]:
        """The loop's own names as they are read behind it: copies that every turn makes."""
        kept: dict[str, Value] = {}
        for name in {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}:
            value = self.frame.names.get(name)
            if value is not None and read_outside(self.frame.node, name):
                layout, base = reference_of(self.simple(value)), self.unique(f"last_{name}")
                if not isinstance(layout, ConstL | OpaqueL):
                    self.begin_with_zeros(layout, base)
                    kept[name] = self.write(layout, base, value)
        return kept

    def do_While(self, node: ast.While) -> str:
        loop = self.begin_loop(node)
        with self.block() as lines:
            with self.block() as head:
                test = self.test(node.test)
            if isinstance(test, Const):
                text = "True"
                if not test.value:
                    self.end_loop(loop)
                    return FALLS
            elif head:
                text = "True"
                self.lines += head
                self.emit(f"if not {test.expr}:")
                self.emit("    break")
            else:
                text = test.expr
            self.loops.append(loop)
            status = self.execute(node.body)
            self.loops.pop()
            if status != NEVER:
                self.carry(loop)
        self.end_loop(loop)
        turned = turns.as_call(text, lines)
        if turned is not None:
            self.emit(turned)
        else:
            self.emit_block(f"while {text}:", lines)
        return MAYBE if self.frame.done and returns_in_loop(node) else FALLS

    def begin_loop(self, node: ast.For | ast.While) -> Loop:
        """Names that a loop changes become variables before it."""
        changed = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        changed -= self.only_extended(node)
        if isinstance(node, ast.For):  # the loop's own names are set at the beginning of every turn
            changed -= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        loop = Loop(self.frame, {}, self.site, depth=self.depth, outside=set(self.frame.names))
        for name in sorted(changed & loop.outside):
            value = self.frame.names[name]
            layout = reference_of(value)
            known = self.decisions.layouts.get(loop.key(name))
            loop.carried[name] = layout = join(known, layout) if known is not None else layout
            if is_stored(layout):
                self.frame.names[name] = self.write(layout, self.variable(name), value)
            elif isinstance(layout, OpaqueL):
                self.frame.names[name] = Opaque(layout.why)
        for name in loop.outside - changed:  # what names stand for may move or be replaced in a turn
            known = self.decisions.layouts.get(loop.key(name))
            if isinstance(known, OpaqueL):
                self.frame.names[name], loop.carried[name] = Opaque(known.why), known
        loop.first = sorted(name for name in changed - loop.outside if self.reads_behind(node, name))
        for name in loop.first:
            known = self.decisions.layouts.get(loop.key(name))
            if known is not None:
                self.begin_with_zeros(known, self.variable(name))
                self.frame.names[name] = known.read(self.variable(name))
                loop.carried[name] = known
        loop.begun = {name: self.frame.names[name] for name in loop.outside if name in self.frame.names}
        return loop

    def only_extended(self, node: ast.For | ast.While) -> set[str]:
        """Names of lists that a loop only adds to with `+=`, which changes the list itself."""
        added = {n.target for n in ast.walk(node) if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add)}
        stores = [n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        others = {n.id for n in stores if n not in added}
        lists = {k for k, v in self.frame.names.items() if isinstance(v, Lst) or (isinstance(v, Seq) and v.is_list)}
        return lists & {n.id for n in stores} - others

    def reads_behind(self, node: ast.For | ast.While, name: str) -> bool:
        """Whether a name that a loop sets first is read behind it, or in its next turn."""
        if loaded_names(self.frame.node)[name] > loaded_names(node)[name]:
            return True
        own = [n.target for n in ast.walk(node) if isinstance(n, ast.For | ast.comprehension)]
        if any(isinstance(n, ast.Name) and n.id == name for target in own for n in ast.walk(target)):
            return False
        uses = [(n.lineno, n.col_offset, n.ctx) for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name]
        reads, writes = ([u[:2] for u in uses if isinstance(u[2], kind)] for kind in (ast.Load, ast.Store))
        return bool(reads) and min(reads) < min(writes)

    def carry(self, loop: Loop, goes_on: bool = True) -> None:
        """At the end of a turn: what names are now is where the next turn looks for it."""
        self.note_renamed(loop, goes_on)
        if goes_on and loop.renewed in self.frame.names:
            raise Cannot(
                "replaces the list that the loop goes through, or moves its items",
                "Leave the loop with `break`, or change the list behind it.",
            )
        for name in [n for n in loop.first if n in self.frame.names and n not in loop.carried]:
            layout = reference_of(self.simple(self.frame.names[name]))
            if is_stored(layout):
                self.decisions.layouts[loop.key(name)] = layout
                raise Restart
        for name, layout in loop.carried.items():
            value = self.frame.names.get(name)
            if value is None:  # a loop inside has had it for its own, and nobody reads it behind that
                continue
            now = join(layout, reference_of(value))
            if now != layout:
                self.decisions.layouts[loop.key(name)] = now
                raise Restart
            if is_stored(layout):
                self.write(layout, self.variable(name), value)

    def end_loop(self, loop: Loop) -> None:
        for name, layout in loop.carried.items():
            if is_stored(layout):
                self.frame.names[name] = layout.read(self.variable(name))
        for name in loop.lost:
            self.frame.names[name] = Opaque(STALE)
        kept = loop.outside | loop.carried.keys()
        self.frame.names = {n: v for n, v in self.frame.names.items() if n in kept or not is_stored(layout_of(v))}

    def do_Break(self, node: ast.Break) -> str:
        loop = self.loops[-1]
        self.carry(loop, goes_on=False)
        if loop.stop:
            self.emit(f"{loop.stop} = True")
        self.emit("break")
        return NEVER

    def do_Continue(self, node: ast.Continue) -> str:
        loop = self.loops[-1]
        self.carry(loop)
        self.emit("break" if loop.stop else "continue")
        return NEVER
