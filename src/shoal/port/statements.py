"""Statements of the environment's functions, followed with what is known of every value, written as kernel code.

Everything that `reset` and `step` call is written out in its place. A branch whose condition is known is taken; of any
other both ways are written, and what differs between them is kept in variables. `return` inside a branch puts the rest
into the other branch; inside a loop it leaves with a flag.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.port.code import Code
from shoal.port.layouts import ConstL, NumL, OpaqueL, join, layout_of, same, tidy
from shoal.port.refusal import Cannot, Obstacle, Refused, Restart
from shoal.port.values import (
    Cells,
    Const,
    DictV,
    Dyn,
    Either,
    Fam,
    Kind,
    Local,
    Lst,
    Maybe,
    Mem,
    Num,
    Obj,
    Opaque,
    Seq,
    Value,
)

FALLS, NEVER, MAYBE = "falls", "never", "maybe"
UNROLL = 8
MOST_UNROLLED = 64


@dataclass
class Frame:
    """One call of one function."""

    node: Any
    file: str
    name: str
    scope: dict[str, Any]
    names: dict[str, Value]
    key: tuple
    owner: type | None = None
    variables: dict[str, str] = field(default_factory=dict)
    entry_depth: int = 0
    result: Value | None = None
    base: str = ""
    done: str = ""
    outer: Frame | None = None
    layout: Any = None


@dataclass
class Loop:
    """A loop of kernel code that is being written."""

    frame: Frame
    carried: dict[str, Any]
    stop: str = ""
    """For a turn of an unrolled loop: the flag that `break` sets."""
    depth: int = 0


class Bind(ast.stmt):
    """A statement of our own: a name is given a value that is known."""

    _fields = ()

    def __init__(self, target: ast.expr, value: Value, at: ast.stmt) -> None:
        super().__init__()
        self.target, self.value = target, value
        ast.copy_location(self, at)


@dataclass
class Walk(Value):
    """Something to loop over in kernel code: how many, and the item at an index."""

    count: str
    cap: int
    item: Any


class Statements(Code):
    """How statements are followed."""

    frame: Frame
    loops: list[Loop]

    def run(self, frame: Frame) -> Value:
        """The value that a call returns."""
        outer, outer_loops, outer_site = getattr(self, "frame", None), getattr(self, "loops", []), self.site
        frame.entry_depth = self.depth
        self.frame, self.loops = frame, []
        body = list(frame.node.body)
        returns = [node for node in ast.walk(frame.node) if isinstance(node, ast.Return)]
        if any(node.value is not None for node in returns) and not isinstance(body[-1], ast.Return):
            body.append(ast.copy_location(ast.Return(None), body[-1]))
        if any(_returns_in_loop(node) for node in body):
            frame.done = self.unique("done")
            self.emit(f"{frame.done} = False")
        try:
            self.execute(body)
        finally:
            self.frame, self.loops, self.site = outer, outer_loops, outer_site  # type: ignore[assignment]
        if frame.result is not None:
            return frame.result
        if frame.layout is not None:
            return frame.layout.read(frame.base)
        return Const(None)

    def execute(self, body: list[ast.stmt]) -> str:
        """Write statements one after the other; whether what follows is reached."""
        rest = list(body)
        while rest:
            statement = rest.pop(0)
            self.site = (
                self.frame.key,
                getattr(statement, "lineno", 0),
                getattr(statement, "col_offset", 0),
                len(rest),
            )
            self.statement = self.site
            try:
                if self.site in self.decisions.split:
                    return self.both_ways(statement, rest)
                if isinstance(statement, ast.If):
                    status, taken = self.branch(statement, rest)
                    if taken:
                        return status
                elif isinstance(statement, ast.For):
                    unrolled = self.unrolled(statement)
                    if unrolled is not None:
                        rest = unrolled + rest
                        continue
                    status = self.loop_over(statement)
                elif isinstance(statement, ast.Match):
                    rest.insert(0, match_as_if(statement))
                    continue
                else:
                    status = getattr(self, f"do_{type(statement).__name__}", self.do_unknown)(statement)
            except Cannot as cannot:
                raise self.refusal(statement, cannot) from None
            if status == NEVER:
                return NEVER
            if status == MAYBE:
                return self.guard_rest(rest)
        return FALLS

    def both_ways(self, statement: ast.stmt, rest: list[ast.stmt]) -> str:
        """A choice between two things that can be changed: what follows is written once for each."""
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.IfExp):
            choice = statement.value
            ways = [
                [ast.copy_location(ast.Assign(statement.targets, part), part)] for part in (choice.body, choice.orelse)
            ]
            test_node = choice.test
        elif isinstance(statement, ast.If):
            ways, test_node = [list(statement.body), list(statement.orelse)], statement.test
        else:
            raise Cannot(
                "chooses between two things that can be changed", "Choose with `if`, and change each in its own branch."
            )
        test = self.truth(self.value(test_node))
        assert isinstance(test, Num)
        before, variants = dict(self.frame.names), dict(self.variants)
        blocks, statuses, names = [], [], []
        for way in ways:
            self.frame.names, self.variants = dict(before), dict(variants)
            with self.block() as lines:
                statuses.append(self.execute([*way, *rest]))
            blocks.append(lines)
            names.append(self.frame.names)
        if statuses.count(NEVER) == 0:
            self.merge(before, (blocks[0], names[0]), (blocks[1], names[1]))
        elif statuses[0] == NEVER:
            self.frame.names = names[1]
        self.write_if(test.expr, *blocks)
        return NEVER if statuses == [NEVER, NEVER] else MAYBE if MAYBE in statuses else FALLS

    def refusal(self, node: ast.AST, cannot: Cannot) -> Refused:
        construct = "the value" if isinstance(node, Bind) else ast.unparse(node).partition("\n")[0]
        spot = getattr(cannot, "node", None)
        if spot is not None:
            construct = ast.unparse(spot)
        shown = construct if len(construct) < 90 else construct[:87] + "..."
        line = getattr(spot or node, "lineno", 0)
        return Refused(Obstacle(self.frame.file, line, self.frame.name, shown, cannot.reason, cannot.instead))

    def guard_rest(self, rest: list[ast.stmt]) -> str:
        """What stands behind a loop that may have returned."""
        if self.loops:
            self.emit(f"if {self.frame.done}:")
            self.emit("    break")
            return self.execute(rest)
        if rest:
            before = dict(self.frame.names)
            with self.block() as lines:
                self.execute(rest)
                self.settle(before)
            self.emit_block(f"if not {self.frame.done}:", lines)
        return MAYBE

    # ------------------------------------------------------------------ branches

    def branch(self, node: ast.If, rest: list[ast.stmt]) -> tuple[str, bool]:
        """(status, whether `rest` was written too)."""
        test = self.truth(self.value(node.test))
        if isinstance(test, Const):
            chosen = node.body if test.value else node.orelse
            rest[:0] = chosen
            return FALLS, False
        site = self.statement
        before, variants = dict(self.frame.names), dict(self.variants)
        with self.block() as then:
            status_then = self.execute(node.body)
        names_then, variants_then = self.frame.names, self.variants
        self.frame.names, self.variants = dict(before), dict(variants)
        with self.block() as other:
            status_other = self.execute(node.orelse)
        names_other, variants_other = self.frame.names, self.variants
        leaves = NEVER in (status_then, status_other)
        if leaves and not self.loops:  # the rest belongs to the branch that goes on
            return self.rest_inside(
                test.expr, (then, names_then, variants_then, status_then), (other, status_other), rest
            )
        if status_then == NEVER or status_other == NEVER:
            goes_on = names_other if status_then == NEVER else names_then
            self.variants = variants_other if status_then == NEVER else variants_then
            self.frame.names = goes_on
            self.write_if(test.expr, then, other)
            both = status_then == status_other == NEVER
            return (NEVER if both else MAYBE if MAYBE in (status_then, status_other) else FALLS), False
        self.statement = site
        self.merge(before, (then, names_then), (other, names_other))
        self.variants = {k: v for k, v in variants_then.items() if variants_other.get(k) == v}
        self.write_if(test.expr, then, other)
        return (MAYBE if MAYBE in (status_then, status_other) else FALLS), False

    def rest_inside(self, test: str, first: tuple, second: tuple, rest: list[ast.stmt]) -> tuple[str, bool]:
        then, names_then, variants_then, status_then = first
        other, status_other = second
        status = NEVER
        if status_then != NEVER:
            self.frame.names, self.variants = names_then, variants_then
            with self.block() as more:
                status = self.execute_after(status_then, rest)
            then += more
        elif status_other != NEVER:
            with self.block() as more:
                status = self.execute_after(status_other, rest)
            other += more
        self.write_if(test, then, other)
        return status, True

    def execute_after(self, status: str, rest: list[ast.stmt]) -> str:
        return self.guard_rest(rest) if status == MAYBE else self.execute(rest)

    def write_if(self, test: str, then: list[str], other: list[str]) -> None:
        if not then and not other:
            return
        if not then:
            self.emit_block(f"if not ({test}):", other)
            return
        self.emit_block(f"if {test}:", then)
        if other:
            self.emit_block("else:", other)

    def merge(self, before: dict[str, Value], first: tuple, second: tuple) -> None:
        """One set of names after two branches, each of which writes what the other has differently."""
        (then, names_then), (other, names_other) = first, second
        merged: dict[str, Value] = {}
        for name in {**names_then, **names_other}:
            a, b = names_then.get(name), names_other.get(name)
            if a is None or b is None or same_value(a, b):
                merged[name] = a if a is not None else b  # type: ignore[assignment]
                continue
            if can_change(a) and can_change(b) and type(a) is type(b):
                self.decisions.split.add(self.statement)
                raise Restart
            try:
                layout = join(layout_of(a), layout_of(b))
            except Cannot as cannot:
                merged[name] = Opaque(f"{name} {cannot.reason}")
                continue
            if isinstance(layout, OpaqueL):
                merged[name] = Opaque(layout.why)
                continue
            base = self.variable(name)
            for lines, value in ((then, a), (other, b)):
                with self.block() as tail:
                    self.write(layout, base, value)
                lines += tail
            merged[name] = layout.read(base)
        self.frame.names = merged

    def settle(self, before: dict[str, Value]) -> None:
        """Write what a block has changed into variables that are good whether it runs or not."""
        for name, old in before.items():
            new = self.frame.names.get(name)
            if new is not None and not same_value(old, new):
                layout = layout_of(new)
                self.frame.names[name] = self.write(layout, self.variable(name), new)

    def variable(self, name: str) -> str:
        """The kernel's variable for a name of this function."""
        if name not in self.frame.variables:
            self.frame.variables[name] = self.unique(name)
        return self.frame.variables[name]

    # ------------------------------------------------------------------ loops

    def unrolled(self, node: ast.For) -> list[ast.stmt] | None:
        """The turns of a short loop, one after the other; None for a loop of kernel code."""
        site = self.site
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
        jumps = any(isinstance(n, ast.Break | ast.Continue) for n in _own_nodes(node))
        loops_inside = any(isinstance(n, ast.For | ast.While) for s in node.body for n in ast.walk(s))
        is_plain = isinstance(iterable, Const) and isinstance(iterable.value, range | np.ndarray | tuple | list)
        forced = site in self.decisions.unrolled
        short = len(items) <= UNROLL and not jumps and not (loops_inside and len(items) > 3)
        if is_plain and not forced and not short and _as_walk(self, iterable) is not None:
            return None
        if len(items) > 512:
            raise Cannot(f"loops over {len(items)} different things", "Loop over range(n) and numbers.")
        if jumps:
            return self.turns(node, items)
        return [s for item in items for s in (Bind(node.target, item, node), *node.body)] + list(node.orelse)

    def turns(self, node: ast.For, items: list[Value]) -> list[ast.stmt]:
        """Turns that may break off: each is a loop of one turn."""
        if node.orelse:
            raise Cannot("has an `else` behind a loop with `break`", "Use a variable that says whether it was found.")
        stop = self.unique("stopped")
        self.emit(f"{stop} = False")
        return [Turn(node, item, stop) for item in items]

    def do_Turn(self, node: Turn) -> str:
        loop = self.begin_loop([node.loop])
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
        return MAYBE if self.frame.done and _returns_in_loop(node.loop) else FALLS

    def loop_over(self, node: ast.For) -> str:
        iterable = node.walked  # type: ignore[attr-defined]
        walk = _as_walk(self, iterable)
        if walk is None:
            raise Cannot("loops over something whose items are not known", "Loop over range(n).")
        if node.orelse:
            raise Cannot("has an `else` behind a loop", "Use a variable that says whether it was found.")
        site = self.site
        count = walk.count if self.is_stable(walk.count) else self.temporary(walk.count)
        loop = self.begin_loop([node])
        name = self.unique(node.target.id if isinstance(node.target, ast.Name) else "k")
        try:
            with self.block() as lines:
                self.loops.append(loop)
                item = walk.item(name)
                if isinstance(item, Num) and item.expr == name and not _assigns(node.body, node.target):
                    self.frame.names[node.target.id] = item  # type: ignore[attr-defined]
                    self.stable.add(name)
                else:
                    self.assign(node.target, item)
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
        self.emit_block(f"for {name} in range({count}):", lines)
        return MAYBE if self.frame.done and _returns_in_loop(node) else FALLS

    def do_While(self, node: ast.While) -> str:
        if node.orelse:
            raise Cannot("has an `else` behind a loop", "Use a variable that says whether it was found.")
        loop = self.begin_loop([node])
        with self.block() as lines:
            with self.block() as head:
                test = self.truth(self.value(node.test))
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
        self.emit_block(f"while {text}:", lines)
        return MAYBE if self.frame.done and _returns_in_loop(node) else FALLS

    def begin_loop(self, nodes: list[ast.stmt]) -> Loop:
        """Names that a loop changes become variables before it."""
        changed = {
            n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        for node in nodes:  # the loop's own names are set at the beginning of every turn
            if isinstance(node, ast.For):
                changed -= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        carried: dict[str, Any] = {}
        for name in sorted(changed & self.frame.names.keys()):
            value = self.frame.names[name]
            key = ("loop", self.site, name)
            layout = layout_of(value)
            known = self.decisions.layouts.get(key)
            layout = join(known, layout) if known is not None else layout
            if isinstance(layout, ConstL | OpaqueL) or type(layout).__name__ in ("ObjL", "RngL"):
                carried[name] = (key, layout)
                continue
            self.frame.names[name] = self.write(layout, self.variable(name), value)
            carried[name] = (key, layout)
        return Loop(self.frame, carried, depth=self.depth)

    def carry(self, loop: Loop) -> None:
        """At the end of a turn: what names are now is where the next turn looks for it."""
        for name, (key, layout) in loop.carried.items():
            value = self.frame.names[name]
            now = join(layout, layout_of(value))
            if now != layout:
                self.decisions.layouts[key] = now
                raise Restart
            if not isinstance(layout, ConstL | OpaqueL) and type(layout).__name__ not in ("ObjL", "RngL"):
                self.write(layout, self.variable(name), value)

    def end_loop(self, loop: Loop) -> None:
        for name, (_, layout) in loop.carried.items():
            if not isinstance(layout, ConstL | OpaqueL) and type(layout).__name__ not in ("ObjL", "RngL"):
                self.frame.names[name] = layout.read(self.variable(name))

    def do_Break(self, node: ast.Break) -> str:
        loop = self.loops[-1]
        self.carry(loop)
        if loop.stop:
            self.emit(f"{loop.stop} = True")
        self.emit("break")
        return NEVER

    def do_Continue(self, node: ast.Continue) -> str:
        loop = self.loops[-1]
        self.carry(loop)
        self.emit("break" if loop.stop else "continue")
        return NEVER

    # ------------------------------------------------------------------ leaving

    def do_Return(self, node: ast.Return) -> str:
        value = self.value(node.value) if node.value is not None else Const(None)
        frame = self.frame
        if self.depth == frame.entry_depth and not self.loops:
            frame.result = self.hold(value)
            return NEVER
        key = ("return", frame.key)
        layout = layout_of(value)
        known = self.decisions.layouts.get(key)
        if known is None:
            known = self.decisions.layouts[key] = layout
        both = join(known, layout)
        if both != known:
            self.decisions.layouts[key] = both
            raise Restart
        if isinstance(known, OpaqueL):
            raise Cannot(f"returns what {known.why}")
        if not frame.base:
            frame.base = self.unique(f"{frame.name.rpartition('.')[2].strip('_')}_result")
        frame.layout = known
        self.write(known, frame.base, value)
        if self.loops:
            self.emit(f"{frame.done} = True")
            self.emit("break")
        return NEVER

    def do_Raise(self, node: ast.Raise) -> str:
        self.emit("assert False")
        return NEVER

    def do_Assert(self, node: ast.Assert) -> str:
        if _is_about_arguments(node.test):
            self.note("asserts about actions and spaces are left out: a batch tests its actions itself")
            return FALLS
        test = self.truth(self.value(node.test))
        if isinstance(test, Num):
            self.emit(f"assert {test.expr}")
        elif not test.value:
            self.emit("assert False")
        return FALLS

    # ------------------------------------------------------------------ plain statements

    def do_Expr(self, node: ast.Expr) -> str:
        if isinstance(node.value, ast.Constant):
            return FALLS
        if isinstance(node.value, ast.Call) and self.only_tells(node.value):
            return FALLS
        self.value(node.value)
        return FALLS

    def do_Pass(self, node: ast.Pass) -> str:
        return FALLS

    def do_Bind(self, node: Bind) -> str:
        self.assign(node.target, node.value)
        return FALLS

    def do_Assign(self, node: ast.Assign) -> str:
        value = self.value(node.value)
        if len(node.targets) > 1:
            value = self.hold(value)
        for target in node.targets:
            self.assign(target, value)
        return FALLS

    def do_AnnAssign(self, node: ast.AnnAssign) -> str:
        if node.value is not None:
            self.assign(node.target, self.value(node.value))
        return FALLS

    def do_AugAssign(self, node: ast.AugAssign) -> str:
        read = ast.copy_location(_as_load(node.target), node)
        old = self.value(read)
        new = self.value(node.value)
        if isinstance(old, Seq) and old.is_list and isinstance(node.op, ast.Add):
            self.extend_list(old, new)
            return FALLS
        if isinstance(old, Lst) and isinstance(node.op, ast.Add):
            self.extend_list(old, new)
            return FALLS
        if isinstance(old, Cells | Mem) and old.shape:
            self.store_array(old, self.binary(node.op, old, new))
            return FALLS
        self.assign(node.target, self.binary(node.op, old, new))
        return FALLS

    def do_FunctionDef(self, node: ast.FunctionDef) -> str:
        self.frame.names[node.name] = Local(node, self.frame)
        return FALLS

    def do_Import(self, node: ast.Import) -> str:
        for alias in node.names:
            module = __import__(alias.name)
            self.frame.names[alias.asname or alias.name.partition(".")[0]] = Const(module)
        return FALLS

    def do_Try(self, node: ast.Try) -> str:
        self.note("`except` is left out: what would raise in the original stops the compiled lane with its line")
        return self.execute([*node.body, *node.orelse, *node.finalbody])

    def do_Delete(self, node: ast.Delete) -> str:
        for target in node.targets:
            if isinstance(target, ast.Name):
                continue
            if not isinstance(target, ast.Subscript):
                raise Cannot("deletes an attribute", "Set it to None instead.")
            owner = self.value(target.value)
            self.method(owner, "pop", [self.value(target.slice)], {})
        return FALLS

    def do_Global(self, node: ast.Global) -> str:
        raise Cannot("changes global state, which all lanes would share", "Keep it in an attribute of the environment.")

    def do_unknown(self, node: ast.stmt) -> str:
        raise Cannot(f"is a `{type(node).__name__.lower()}` statement, which is not translated")

    # ------------------------------------------------------------------ assigning

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            self.unpack(target, value)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value)
            if not isinstance(owner, Obj):
                raise Cannot(f"sets an attribute of {self.name_of(owner)}")
            self.set_attribute(owner, target.attr, value)
        elif isinstance(target, ast.Subscript):
            value = self.hold(value) if isinstance(value, Num) else value
            self.store_item(self.value(target.value), target.slice, value)
        else:
            raise Cannot("assigns to something that is not a name, an attribute or an item")

    def unpack(self, target: ast.Tuple | ast.List, value: Value) -> None:
        starred = [k for k, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
        items = [self.hold(v) for v in self.items(value, None if starred else len(target.elts))]
        if starred:
            k, after = starred[0], len(target.elts) - starred[0] - 1
            middle = Seq(items[k : len(items) - after], True, self.site, self.depth)
            items = [*items[:k], middle, *items[len(items) - after :]]
        for part, item in zip(target.elts, items, strict=True):
            self.assign(part.value if isinstance(part, ast.Starred) else part, item)

    def assign_name(self, name: str, value: Value) -> None:
        value = self.simple(value)
        if isinstance(value, Num):
            variable = self.variable(name)
            if value.expr != variable:
                self.emit(f"{variable} = {value.expr}")
            self.frame.names[name] = Num(variable, value.kind)
        elif isinstance(value, Seq) and not value.is_list:
            self.frame.names[name] = self.hold(value)
        elif isinstance(value, Cells | Mem) and self.is_rebound(value):
            self.frame.names[name] = self.copy(value)
        elif isinstance(value, Fam | Maybe | Either):
            self.frame.names[name] = self.hold(value)
        else:
            self.frame.names[name] = value

    def is_rebound(self, value: Cells | Mem) -> bool:
        """Whether this is an attribute's array and the attribute is given a new one somewhere."""
        base = value.exprs[0] if isinstance(value, Cells) else value.base
        if not base.startswith("s."):
            return False
        field_name = base[2:].rpartition("_")[0] if isinstance(value, Cells) else base[2:]
        return field_name in self.rebound

    def set_attribute(self, owner: Obj, name: str, value: Value) -> None:
        layout = owner.layout.attributes.get(name)
        setter = inspect.getattr_static(type(owner.layout.example), name, None)
        if layout is None and isinstance(setter, property) and setter.fset is not None:
            self.call_function(setter.fset, [owner, value], {}, owner=type(owner.layout.example))
            return
        if layout is None:
            raise Cannot(
                f"sets {name!r}, which no episode that was watched has set",
                "Set it in __init__ too, to a value of the type that it will have.",
            )
        if isinstance(layout, OpaqueL):
            return
        base = owner.base + tidy(name) if owner.base.endswith(".") else f"{owner.base}_{tidy(name)}"
        if type(layout).__name__ == "VarL":
            self.variants[base] = layout.store(self, base, value)
            return
        path = base.removeprefix("s.")
        value = self.realise(value) if isinstance(value, Fam) and not _takes_fam(layout) else value
        wanted = layout_of(value)
        both = (
            layout
            if isinstance(layout, ConstL) and isinstance(value, Const) and same(layout.value, value.value)
            else (join(as_column(layout), wanted))
        )
        if both != layout and not (isinstance(layout, ConstL) and isinstance(value, Const) and both == layout):
            self.decisions.layouts["attribute", path] = both
            raise Restart
        if isinstance(layout, ConstL):
            return
        self.write(layout, base, value, owner.index)


class Turn(ast.stmt):
    """A statement of our own: one turn of a loop that may break off."""

    _fields = ()

    def __init__(self, loop: ast.For, item: Value, stop: str) -> None:
        super().__init__()
        self.loop, self.item, self.stop = loop, item, stop
        ast.copy_location(self, loop)


def can_change(value: Value) -> bool:
    """Whether this is the state's own list, array or object, which others would see change."""
    if isinstance(value, Mem):
        return value.base.startswith("s.") and value.writable
    if isinstance(value, Cells):
        return value.owned and value.exprs[0].startswith("s.")
    return isinstance(value, Lst | Obj) and str(value.base).startswith("s.")


def as_column(layout: Any) -> Any:
    """The layout of something that was constant and is now to change."""
    if isinstance(layout, ConstL):
        from shoal.port.layouts import layout_of_const

        return layout_of_const(layout.value)
    return layout


def _takes_fam(layout: Any) -> bool:
    inner = getattr(layout, "inner", layout)
    return type(inner).__name__ in ("FamL", "ConstL") and not isinstance(inner, NumL)


def same_value(a: Value, b: Value) -> bool:
    """Whether two values are the same one."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, Const):
        return same(a.value, b.value)  # type: ignore[attr-defined]
    if isinstance(a, Num):
        return a == b
    if isinstance(a, Cells):
        return a.exprs == b.exprs and a.shape == b.shape  # type: ignore[attr-defined]
    if isinstance(a, Mem):
        return a.base == b.base and a.axes == b.axes  # type: ignore[attr-defined]
    if isinstance(a, Lst):
        return a.base == b.base and a.prefix == b.prefix and a.length == b.length  # type: ignore[attr-defined]
    if isinstance(a, Obj):
        return a.base == b.base and a.index == b.index  # type: ignore[attr-defined]
    if isinstance(a, Seq):
        return len(a.items) == len(b.items) and all(map(same_value, a.items, b.items))  # type: ignore[attr-defined]
    if isinstance(a, DictV):
        return a.items.keys() == b.items.keys() and all(same_value(a.items[k], b.items[k]) for k in a.items)  # type: ignore[attr-defined]
    return False


def _as_walk(code: Code, value: Value) -> Walk | None:
    """How kernel code loops over a value, if it can."""
    if isinstance(value, Walk):
        return value
    if isinstance(value, Lst):
        return Walk(value.length, value.cap, lambda at: code.item(value, at))
    if isinstance(value, Mem):
        n = value.shape[0]
        return Walk(n.expr if isinstance(n, Dyn) else str(n), n.cap if isinstance(n, Dyn) else n,
                    lambda at: code.element(value, [at]))  # fmt: skip
    if isinstance(value, Const) and isinstance(value.value, range):
        span = value.value
        first, step = span.start, span.step

        def number(at: str) -> Num:
            scaled = at if step == 1 else f"{step} * {at}"
            return Num(scaled if first == 0 else f"{first} + {scaled}", Kind(np.dtype(np.int64), True))

        return Walk(str(len(span)), len(span), number)
    if isinstance(value, Const) and isinstance(value.value, np.ndarray | list | tuple) and len(value.value):
        items = list(value.value)
        return Walk(str(len(items)), len(items), lambda at: Fam(items, at))
    return None


def match_as_if(node: ast.Match) -> ast.stmt:
    """`match` with plain values as a chain of `if`."""
    chain: list[ast.stmt] = []
    for case in reversed(node.cases):
        test = _pattern(node.subject, case.pattern)
        if case.guard is not None:
            test = case.guard if test is None else ast.BoolOp(ast.And(), [test, case.guard])
        chain = case.body if test is None else [ast.If(test, case.body, chain)]
    first = chain[0] if len(chain) == 1 else ast.If(ast.Constant(True), chain, [])
    return ast.fix_missing_locations(ast.copy_location(first, node))


def _pattern(subject: ast.expr, pattern: ast.pattern) -> ast.expr | None:
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None:
        return None
    if isinstance(pattern, ast.MatchValue):
        return ast.copy_location(ast.Compare(subject, [ast.Eq()], [pattern.value]), pattern)
    if isinstance(pattern, ast.MatchSingleton):
        return ast.copy_location(ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)]), pattern)
    if isinstance(pattern, ast.MatchOr):
        parts = [_pattern(subject, each) for each in pattern.patterns]
        return ast.copy_location(ast.BoolOp(ast.Or(), [part for part in parts if part is not None]), pattern)
    raise Cannot("matches a pattern with parts", "Use `if` and `elif`.")


def _own_nodes(loop: ast.For) -> list[ast.AST]:
    """Nodes of a loop's body without those of loops inside."""
    found: list[ast.AST] = []

    def visit(node: ast.AST) -> None:
        found.append(node)
        if not isinstance(node, ast.For | ast.While | ast.FunctionDef | ast.Lambda):
            for child in ast.iter_child_nodes(node):
                visit(child)

    for statement in loop.body:
        visit(statement)
    return found


def _returns_in_loop(node: ast.AST) -> bool:
    loops = [n for n in ast.walk(node) if isinstance(n, ast.For | ast.While)]
    return any(isinstance(n, ast.Return) for loop in loops for n in ast.walk(loop))


def _assigns(body: list[ast.stmt], target: ast.expr) -> bool:
    if not isinstance(target, ast.Name):
        return True
    return any(
        isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Store)
        for s in body
        for n in ast.walk(s)
    )


def _as_load(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    if isinstance(node, ast.Attribute):
        return ast.Attribute(node.value, node.attr, ast.Load())
    assert isinstance(node, ast.Subscript)
    return ast.Subscript(node.value, node.slice, ast.Load())


def _is_about_arguments(test: ast.expr) -> bool:
    """`assert self.action_space.contains(action)` and the like."""
    return any(isinstance(n, ast.Attribute) and n.attr in ("contains", "action_space") for n in ast.walk(test)) or (
        isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance"
    )


def definition_of(function: types.FunctionType) -> tuple[Any, str]:
    """A function's syntax tree with the line numbers of its file, and the file."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise Cannot(
            f"calls {getattr(function, '__qualname__', function)!s}, whose source cannot be read",
            "Write it as Python in a file.",
        ) from None
    try:
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except SyntaxError:
        raise Cannot(f"calls {function.__qualname__}, which is not a function written with `def`") from None
    ast.increment_lineno(tree, first - 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            return node, inspect.getsourcefile(function) or "?"
    raise Cannot(f"calls {function.__qualname__}, which is not a plain function")
