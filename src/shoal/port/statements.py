"""Statements of the environment's functions, followed with what is known of every value, written as kernel code.

Everything that `reset` and `step` call is written out in its place. A branch whose condition is known is taken; of any
other both ways are written, and what differs between them is kept in variables. `return` inside a branch puts the rest
into the other branch; inside a loop it leaves with a flag.
"""

from __future__ import annotations

import ast

from shoal.port.frames import (
    FALLS,
    MAYBE,
    NEVER,
    Bind,
    Case,
    Frame,
    Loop,
    always_leaves,
    can_change,
    loaded_names,
    match_as_if,
    not_one_list,
    returns_in_loop,
    same_value,
    without_else,
)
from shoal.port.joining import join, layout_of, reference_of
from shoal.port.layouts import Layout, OpaqueL, is_stored
from shoal.port.refusal import UNSETTLED, Cannot, Obstacle, Refused, Restart
from shoal.port.sharing import Homes, Sharing
from shoal.port.trees import for_each_class, looks_up, names_there
from shoal.port.values import (
    PY_BOOL,
    Const,
    Fam,
    Maybe,
    Num,
    Opaque,
    Value,
    literal,
)

UNROLL = 8
MOST_UNROLLED = 64


class Statements(Sharing):
    """How statements are followed."""

    frame: Frame
    loops: list[Loop]
    variants: dict[str, int]
    """Which of its types an attribute has here, by its place."""

    def run(self, frame: Frame) -> Value:
        """The value that a call returns."""
        outer, outer_loops, outer_site = getattr(self, "frame", None), getattr(self, "loops", []), self.site
        frame.entry_depth, frame.caller = self.depth, outer
        self.frame, self.loops = frame, frame.loops
        body = list(frame.node.body)
        returns = [node for node in ast.walk(frame.node) if isinstance(node, ast.Return)]
        if any(node.value is not None for node in returns) and not isinstance(body[-1], ast.Return):
            body.append(ast.copy_location(ast.Return(None), body[-1]))
        if frame.key in self.decisions.flagged or any(returns_in_loop(node) for node in body):
            frame.done = self.unique("done")
            frame.early[f"{frame.done} = False"] = None
        start = len(self.lines)
        try:
            self.execute(body)
        finally:
            self.frame, self.loops, self.site = outer, outer_loops, outer_site  # type: ignore[assignment]
        self.lines[start:start] = frame.early
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
                lookup, count = self.decisions.chosen.get(self.site, ("", 0))
                if lookup and not hasattr(statement, "both_ways") and looks_up(statement, lookup):
                    chain, index = for_each_class(statement, lookup, count)
                    place = self.place(self.value(index), count)
                    self.emit(f"assert 0 <= {place} < {count}")
                    rest.insert(0, chain)
                    continue
                is_choice = getattr(statement, "both_ways", False) or (
                    self.site in self.decisions.split and not isinstance(statement, Bind)
                )
                if isinstance(statement, Case) or is_choice:
                    return self.both_ways(statement, rest)
                if isinstance(statement, ast.For | ast.While) and statement.orelse:
                    rest[:0] = without_else(statement, self.unique("broke"))
                    continue
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
                    if any(isinstance(n, ast.Call) for n in ast.walk(statement.subject)):  # asked once
                        subject = ast.copy_location(ast.Name(self.unique("subject"), ast.Load()), statement.subject)
                        self.frame.names[subject.id] = self.hold(self.value(statement.subject))
                        statement = ast.copy_location(ast.Match(subject, statement.cases), statement)
                    rest.insert(0, match_as_if(statement))
                    continue
                else:
                    status = getattr(self, f"do_{type(statement).__name__}", self.do_unknown)(statement)
            except Cannot as cannot:
                raise self.refusal(statement, cannot) from None
            except Restart as restart:
                restart.refused = restart.refused or self.refusal(statement, UNSETTLED)
                raise
            except (TypeError, ValueError, AttributeError, LookupError, AssertionError) as error:
                # what nobody has thought of here is a refusal too, never a traceback
                reason = f"cannot be followed ({type(error).__name__}: {error})"
                raise self.refusal(statement, Cannot(reason)) from error
            if status == NEVER:
                return NEVER
            if status == MAYBE:
                return self.guard_rest(rest)
        return FALLS

    def both_ways(self, statement: ast.stmt, rest: list[ast.stmt]) -> str:
        """A choice between two things that can be changed: what follows is written once for each."""
        ways: list[list[ast.stmt]]
        test_node: ast.expr | None
        if isinstance(statement, Case):
            if len(statement.family.options) == 1:
                return self.execute([Bind(statement.target, Const(statement.family.options[0]), statement), *rest])
            first, others = statement.parts()
            ways, test_node = [[first], [others]], None
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.IfExp):
            choice = statement.value
            ways = [
                [ast.copy_location(ast.Assign(statement.targets, part), part)] for part in (choice.body, choice.orelse)
            ]
            test_node = choice.test
        elif isinstance(statement, ast.If):
            ways, test_node = [list(statement.body), list(statement.orelse)], statement.test
        elif isinstance(statement, ast.Assign) and isinstance(family := self.value(statement.value), Fam):
            return self.both_ways(Case(statement.targets[0], self.hold(family), 0, statement), rest)
        else:
            raise Cannot(
                "chooses between two things that can be changed", "Choose with `if`, and change each in its own branch."
            )
        if isinstance(statement, Case):
            test: Value = Num(f"{statement.family.index} == {statement.first}", PY_BOOL)
        else:
            assert test_node is not None
            test = self.test(test_node)
        assert isinstance(test, Num)
        before, variants = dict(self.frame.names), dict(self.variants)
        shares = self.shares
        joined: frozenset[tuple[Homes, Homes]] = frozenset()
        blocks, statuses, names = [], [], []
        for way in ways:
            self.frame.names, self.variants, self.shares = dict(before), dict(variants), shares
            with self.block() as lines:
                statuses.append(self.execute([*way, *rest]))
            joined |= self.shares
            blocks.append(lines)
            names.append(self.frame.names)
        self.shares = joined
        if statuses.count(NEVER) == 0:
            self.merge(statement, (blocks[0], names[0]), (blocks[1], names[1]))
        elif statuses[0] == NEVER:
            self.frame.names = names[1]
        self.write_if(test.expr, *blocks)
        if statuses == [NEVER, NEVER]:
            return NEVER
        return self.partly() if NEVER in statuses else MAYBE if MAYBE in statuses else FALLS

    def partly(self) -> str:
        """The status after a branch of which some ways have returned."""
        return FALLS if self.loops or self.depth == self.frame.entry_depth else self.flagged()

    def flagged(self) -> str:
        """What follows is reached unless the call's flag says that it has returned."""
        if not self.frame.done:
            self.decisions.flagged.add(self.frame.key)
            raise Restart
        return MAYBE

    def refusal(self, node: ast.AST, cannot: Cannot) -> Refused:
        construct = "the value" if isinstance(node, Bind) else ast.unparse(node).partition("\n")[0]
        spot = getattr(cannot, "node", None)
        if spot is not None:
            construct = ast.unparse(spot)
        shown = construct if len(construct) < 90 else construct[:87] + "..."
        line = getattr(spot or node, "lineno", 0)
        obstacle = Obstacle(self.frame.file, line, self.frame.name, shown, cannot.reason, cannot.instead)
        return Refused(obstacle, getattr(cannot, "error", None))

    def guard_rest(self, rest: list[ast.stmt]) -> str:
        """What stands behind a loop that may have returned."""
        if self.loops:
            self.emit(f"if {self.frame.done}:")
            self.emit("    break")
            return self.execute(rest)
        if rest:
            before, shares = dict(self.frame.names), self.shares
            with self.block() as lines:
                self.execute(rest)
                self.settle(before)
            self.shares |= shares
            self.emit_block(f"if not {self.frame.done}:", lines)
        return MAYBE

    # ------------------------------------------------------------------ branches

    def branch(self, node: ast.If, rest: list[ast.stmt]) -> tuple[str, bool]:
        """(status, whether `rest` was written too)."""
        test = self.test(node.test)
        if isinstance(test, Const):
            chosen = node.body if test.value else node.orelse
            rest[:0] = chosen
            return FALLS, False
        site, shares = self.statement, self.shares
        if not self.loops and (always_leaves(node.body) or always_leaves(node.orelse)):
            return self.rest_inside(test.expr, node, rest), True
        before, variants = dict(self.frame.names), dict(self.variants)
        with self.block() as then:
            status_then = self.execute_where(node.test, True, node.body)
        names_then, variants_then, shares_then = self.frame.names, self.variants, self.shares
        self.frame.names, self.variants, self.shares = dict(before), dict(variants), shares
        with self.block() as other:
            status_other = self.execute_where(node.test, False, node.orelse, status_then == NEVER)
        names_other, variants_other = self.frame.names, self.variants
        self.shares |= shares_then
        if status_then == NEVER or status_other == NEVER:
            goes_on = names_other if status_then == NEVER else names_then
            self.variants = variants_other if status_then == NEVER else variants_then
            self.frame.names = goes_on
            self.set_where_raised(then if status_then == NEVER else other, goes_on)
            self.write_if(test.expr, then, other)
            if status_then == status_other:
                return NEVER, False
            if not self.loops:  # the test of a `return` inside was known beforehand
                return self.flagged(), False
            return (MAYBE if MAYBE in (status_then, status_other) else FALLS), False
        self.statement = site
        self.merge(node, (then, names_then), (other, names_other))
        self.needed_later(node, before, (then, names_then), (other, names_other))
        self.variants = {k: v for k, v in variants_then.items() if variants_other.get(k) == v}
        self.write_if(test.expr, then, other)
        return (MAYBE if MAYBE in (status_then, status_other) else FALLS), False

    def execute_where(self, test: ast.expr, outcome: bool, body: list[ast.stmt], goes_on: bool = False) -> str:
        """Write one way of a branch, in which names are not None that the test says so of; behind it too if it
        `goes_on`, since the other way leaves."""
        asked = {name: self.frame.names.get(name) for name in names_there(test, outcome)}
        there = {name: value for name, value in asked.items() if isinstance(value, Maybe)}
        for name, value in there.items():
            self.frame.names[name] = value.value
        status = self.execute(body)
        for name, value in there.items() if not goes_on else ():
            if self.frame.names.get(name) is value.value:
                self.frame.names[name] = value
        return status

    def set_where_raised(self, lines: list[str], names: dict[str, Value]) -> None:
        """Variables have a value on every way, also behind a `raise` that stops the lane."""
        if not lines or lines[-1] != "assert False":
            return
        for name, value in names.items():
            base = self.frame.variables.get(name)
            if base is not None and isinstance(value, Num) and value.expr == base:
                lines.append(f"{base} = {literal(value.kind.dtype.type(0))}")

    def rest_inside(self, test: str, node: ast.If, rest: list[ast.stmt]) -> str:
        """A branch of which one way leaves the function: the rest belongs to the way that goes on."""
        leaves = always_leaves(node.body)
        before, variants, shares = dict(self.frame.names), dict(self.variants), self.shares
        with self.block() as then:
            status_then = self.execute_where(node.test, True, node.body if leaves else [*node.body, *rest])
        after, shares_then = (self.frame.names, self.variants), self.shares
        self.frame.names, self.variants, self.shares = before, variants, shares
        with self.block() as other:
            status_other = self.execute_where(node.test, False, [*node.orelse, *rest] if leaves else node.orelse)
        self.shares |= shares_then
        if not leaves:
            self.frame.names, self.variants = after
        self.set_where_raised(then if leaves else other, self.frame.names)
        self.write_if(test, then, other)
        return NEVER if status_then == status_other == NEVER else self.partly()

    def write_if(self, test: str, then: list[str], other: list[str]) -> None:
        if not then and not other:
            return
        if not then:
            self.emit_block(f"if not ({test}):", other)
            return
        self.emit_block(f"if {test}:", then)
        if other:
            self.emit_block("else:", other)

    def is_read_again(self, name: str, node: ast.AST) -> bool:
        """Whether a function reads a name behind a statement, or in the next turn of a loop around it."""
        if self.loops and name not in self.loops[-1].own:
            return True
        last = getattr(node, "end_lineno", 0)
        return any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and n.lineno > last
            for n in ast.walk(self.frame.node)
        )

    def merge(self, node: ast.AST, first: tuple, second: tuple) -> None:
        """One set of names after two branches, each of which writes what the other has differently."""
        (then, names_then), (other, names_other) = first, second
        merged: dict[str, Value] = {}
        for name in {**names_then, **names_other}:
            a, b = names_then.get(name), names_other.get(name)
            if a is None or b is None:
                only = a if a is not None else b
                if isinstance(only, Const) or not is_stored(layout_of(only)):
                    merged[name] = only
                continue
            if same_value(a, b):
                merged[name] = a
                continue
            if can_change(a) and can_change(b) and type(a) is type(b) and not_one_list(a, b):
                if not self.is_read_again(name, node):
                    continue
                self.decisions.split.add(self.statement)
                raise Restart
            try:
                layout = join(reference_of(a), reference_of(b))
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

    def needed_later(self, node: ast.If, before: dict[str, Value], first: tuple, second: tuple) -> None:
        """Names that only one way sets and that are read behind the branch: they begin as zeros."""
        loads = loaded_names(self.frame.node)
        loads.subtract(loaded_names(node))
        for (lines, names), others in ((first, second[1]), (second, first[1])):
            for name in [n for n in names if n not in others and n not in before and loads[n] > 0]:
                layout = reference_of(names[name])
                if isinstance(names[name], Const) or not is_stored(layout):
                    continue
                base = self.variable(name)
                self.begin_with_zeros(layout, base)
                with self.block() as tail:
                    self.frame.names[name] = self.write(layout, base, names[name])
                lines += tail

    def settle(self, before: dict[str, Value]) -> None:
        """Write what a block has changed into variables that are good whether it runs or not."""
        for name, old in before.items():
            new = self.frame.names.get(name)
            if new is not None and not same_value(old, new):
                layout = reference_of(new)
                self.begin_with_zeros(layout, self.variable(name))
                self.frame.names[name] = self.write(layout, self.variable(name), new)

    def begin_with_zeros(self, layout: Layout, base: str) -> None:
        """Give variables that are not set on all ways through the function a value before it begins."""
        for column, (dtype, shape) in layout.columns(base).items():
            text = f"scratch({self.record_of(dtype, shape)}, 1)[0].cell" if shape else literal(dtype.type(0))
            self.frame.early[f"{column} = {text}"] = None

    def variable(self, name: str) -> str:
        """The kernel's variable for a name of this function."""
        if name not in self.frame.variables:
            self.frame.variables[name] = self.unique(name)
        return self.frame.variables[name]
