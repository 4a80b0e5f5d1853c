"""Mistakes that can be seen in a kernel's source, each told in one sentence with the author's line.

Whatever stands here is found in branches that no test run reaches, and before Numba would say it in a page of its own.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from shoal.errors import nearest
from shoal.vector.kernel.calls import call_mistakes, mixed_tuples
from shoal.vector.kernel.flow import Finding, return_mistakes, unassigned
from shoal.vector.kernel.kinds import RNG_METHODS, SIGNATURES, Cells, Fields, Kind, Number, Parts, Scope, Stream
from shoal.vector.kernel.loops import loop_mistakes
from shoal.vector.kernel.stores import root_of, store_mistakes

_PATTERN = (
    "this pattern cannot be used in a kernel. Match one number: `case 1 | 2:`, `case Move.UP:`, `case x if x > 3:`"
)
_REFUSED: dict[type[ast.AST], str] = {
    ast.Global: "`global` cannot be used in a kernel: lanes share nothing. Keep what changes in the state",
    ast.Nonlocal: "`nonlocal` cannot be used in a kernel: lanes share nothing. Keep what changes in the state",
    ast.Try: "`try` cannot be used in a kernel: nothing in it raises. Test the numbers beforehand",
    ast.Raise: "`raise` cannot be used in a kernel. Use `assert` for what must never happen",
    ast.With: "`with` cannot be used in a kernel",
    ast.Lambda: "`lambda` cannot be used in a kernel. Write a function with `def` outside the class",
    ast.FunctionDef: "a function inside a function cannot be used in a kernel. Write it with `def` outside the class",
    ast.ClassDef: "`class` cannot be used inside a kernel's function",
    ast.Import: "`import` cannot be used inside a kernel's function. Import at the top of the file",
    ast.ImportFrom: "`import` cannot be used inside a kernel's function. Import at the top of the file",
    ast.Yield: "`yield` cannot be used in a kernel",
    ast.YieldFrom: "`yield` cannot be used in a kernel",
    ast.Await: "`await` cannot be used in a kernel",
    ast.AsyncFor: "`async` cannot be used in a kernel",
    ast.Delete: "`del` cannot be used in a kernel",
    ast.JoinedStr: "an f-string cannot be used in a kernel, which works with numbers. print(x, y) shows them",
    ast.ListComp: "a list comprehension allocates memory, which a kernel cannot do. Write a loop",
    ast.SetComp: "a set comprehension allocates memory, which a kernel cannot do. Write a loop",
    ast.DictComp: "a dict comprehension allocates memory, which a kernel cannot do. Write a loop",
    ast.GeneratorExp: "a generator cannot be used in a kernel. Write a loop",
    ast.List: "a list allocates memory, which a kernel cannot do. "
    "Use a tuple for constants, an array field of the state, or scratch(...)",
    ast.Dict: "a dict allocates memory, which a kernel cannot do. Use `params` for tables, or `if`",
    ast.Set: "a set allocates memory, which a kernel cannot do. Use a tuple: `x in (1, 2, 3)`",
    ast.Starred: "`*` before a name cannot be used in a kernel. Name the parts",
    ast.NamedExpr: "`:=` cannot be used in a kernel. Assign in a line of its own",
    ast.MatMult: "`@` cannot be used in a kernel: it works with single numbers. Write the loops",
    ast.MatchSequence: _PATTERN,
    ast.MatchMapping: _PATTERN,
    ast.MatchClass: _PATTERN,
}
_BUILTINS = {
    "abs", "all", "any", "bool", "divmod", "enumerate", "float", "int", "len", "max", "min", "pow",
    "print", "range", "round", "sum", "super", "zip",
}  # fmt: skip


def check_signature(name: str, definition: ast.FunctionDef) -> Finding | None:
    """Whether the author's function `name` takes the arguments that it will be given."""
    arguments = definition.args
    wanted = SIGNATURES[name]
    taken = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    is_in_order = len(taken) == len(wanted) and (set(taken) != set(wanted) or taken == [*wanted])
    if arguments.vararg or arguments.kwarg or not is_in_order:
        without = " Leave out `self`: there is no object, `s` is the lane's state." if "self" in taken[:1] else ""
        return definition.lineno, f"takes ({', '.join(taken)}); it must take ({', '.join(wanted)}).{without}"
    return None


def check_function(
    name: str | None,
    definition: ast.FunctionDef,
    scope: Scope,
    lookup: Callable[[str], Any],
    meant: Callable[[str], str],
) -> None:
    """Raise `Mistake` for the first thing that is wrong with a function.

    Args:
        name: which of the author's functions it is ("step"), or None for a helper.
        scope: what is known inside it.
        lookup: the value of a global or closure variable by name; a `LookupError` if there is none.
        meant: what a name that is not defined may be meant for, as a sentence, or nothing.
    """
    findings: list[Finding] = []
    findings += _refused(definition)
    findings += return_mistakes(name, definition)
    findings += loop_mistakes(definition, scope)
    findings += _unknown_names(definition, lookup, meant)
    findings += unassigned(definition, scope)
    findings += call_mistakes(definition, scope, lookup)
    findings += mixed_tuples(definition, lookup)
    findings += store_mistakes(definition, scope, lookup)
    findings += _Uses(scope, name, lookup, meant).findings(definition)
    if findings:
        raise Mistake(*min(findings, key=lambda finding: finding[0]))


class Mistake(Exception):
    """The first finding of a function: its line and a sentence."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(sentence)
        self.line, self.sentence = line, sentence


def _refused(definition: ast.FunctionDef) -> Iterator[Finding]:
    line = definition.lineno
    harmless = _strings_that_only_tell(definition)
    if definition.args.kwonlyargs:
        yield line, "arguments after `*` cannot be used in a kernel's functions. Leave the `*` out."
    for stars, many in (("*", definition.args.vararg), ("**", definition.args.kwarg)):
        if many is not None:
            yield line, f"`{stars}{many.arg}` cannot be used in a kernel's functions. Name every argument."
    for node in ast.walk(definition):
        line = getattr(node, "lineno", line)
        if node is not definition and type(node) in _REFUSED:
            yield line, _REFUSED[type(node)] + "."
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 2**64:
            yield line, f"{node.value} is beyond 64 bits."
        if isinstance(node, ast.Constant) and isinstance(node.value, complex | bytes):
            what = "complex numbers" if isinstance(node.value, complex) else "bytes"
            yield line, f"{what} cannot be used in a kernel."
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in harmless:
            yield line, f"the string {node.value!r} cannot be used in a kernel: it works with numbers."
        if isinstance(node, ast.Constant) and node.value is None and id(node) not in harmless:
            yield (
                line,
                "None cannot be used in a kernel: it works with numbers. Let one of them stand for nothing, e.g. -1.",
            )
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call | ast.Constant | ast.Yield | ast.Await):
            yield line, f"`{ast.unparse(node)}` does nothing with what it computes. To assign, write =; to call, ()."
        if isinstance(node, ast.Is | ast.IsNot):
            yield line, "`is` compares objects, and a kernel has only numbers. Write == or !=."
        if isinstance(node, ast.For) and not isinstance(node.target, ast.Name | ast.Tuple):
            yield line, "the variable of a `for` loop must be a plain name."


def _strings_that_only_tell(definition: ast.FunctionDef) -> set[int]:
    """Docstrings, what is printed, and messages of assertions, by the id of their node."""
    told: list[ast.AST] = []
    for node in ast.walk(definition):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            told.append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            told += [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Return) and node.value is not None:  # `return None`, told of elsewhere
            told.append(node.value)
        elif isinstance(node, ast.Subscript):  # of a dict, about which there is more to say
            told.append(node.slice)
        elif isinstance(node, ast.Assert) and node.msg is not None:
            told.append(node.msg)
    return set(map(id, told))


# ---------------------------------------------------------------------- names


def _unknown_names(
    definition: ast.FunctionDef, lookup: Callable[[str], Any], meant: Callable[[str], str]
) -> Iterator[Finding]:
    local = {argument.arg for argument in [*definition.args.args, *definition.args.kwonlyargs]}
    local |= {
        node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    local |= {node.name for node in ast.walk(definition) if isinstance(node, ast.MatchAs) and node.name}
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in local:
            try:
                lookup(node.id)
            except LookupError:
                if node.id not in _BUILTINS and hasattr(builtins, node.id):
                    yield node.lineno, f"{node.id}() cannot be used in a kernel."
                elif node.id not in _BUILTINS:
                    like = nearest(node.id, local)
                    hint = meant(node.id) or (f"Did you mean {like!r}?" if like else "")
                    yield node.lineno, f"{node.id!r} is not defined. {hint}".rstrip()


# ---------------------------------------------------------------------- records and arrays


_OTHER_DRAWS = {
    "random": "uniform",
    "rand": "uniform",
    "randint": "integers",
    "standard_normal": "normal",
    "gauss": "normal",
}


class _Uses(ast.NodeVisitor):
    """Findings about the use of fields, arrays and the lane's random numbers."""

    def __init__(
        self, scope: Scope, name: str | None, lookup: Callable[[str], Any], meant: Callable[[str], str]
    ) -> None:
        self._scope = scope
        self._name = name
        self._lookup = lookup
        self._meant = meant
        self._state = ""  # what the function calls the state, if it must not change it
        self._choices = 0  # choices around the place
        self._findings: list[Finding] = []

    def findings(self, definition: ast.FunctionDef) -> list[Finding]:
        if self._name in ("observe", "mask", "inform"):
            self._state = definition.args.args[0].arg
        for statement in definition.body:
            self.visit(statement)
        return self._findings

    def _say(self, node: ast.expr | ast.stmt, sentence: str) -> None:
        self._findings.append((node.lineno, sentence))

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._visit_choice(node.test, [node.body, node.orelse])

    def visit_If(self, node: ast.If) -> None:
        self._visit_choice(node.test, [*node.body, *node.orelse])

    def visit_While(self, node: ast.While) -> None:
        self._refuse_array(node.test, "test")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.generic_visit(node)
        for side in node.values:
            self._refuse_array(side, "test")

    def _visit_choice(self, test: ast.expr, parts: Sequence[ast.AST]) -> None:
        self.visit(test)
        self._refuse_array(test, "test")
        # `action[3] if p.keep else 0.0` is right where rows of three come with keep = False; what depends on the state
        # may happen at any time
        of_state = any(ast.unparse(node).startswith("s.") for node in ast.walk(test) if isinstance(node, ast.Attribute))
        self._choices += not of_state
        for part in parts:
            self.visit(part)
        self._choices -= not of_state

    def _check_written(self, node: ast.Attribute | ast.Subscript) -> None:
        """What no function may write to, or not this one."""
        root = root_of(node)
        if not isinstance(node.ctx, ast.Store) or root is None:
            return
        if root == self._state:
            self._say(node, f"{self._name} changes {ast.unparse(node)}: only reset and step may change the state.")
        elif root not in self._scope.names:
            try:
                value = self._lookup(root)
            except LookupError:
                return
            if isinstance(value, type | types.ModuleType):
                self._say(node, f"writes to {ast.unparse(node)}, which is a constant. Keep what changes in the state.")
            elif isinstance(node, ast.Subscript) and isinstance(value, np.ndarray):
                self._say(node, f"writes to {root}, an array of the module, which is a constant. Keep it in the state.")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self.generic_visit(node)
        self._refuse_array(node.operand, "compute")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        self._check_written(node)
        base, text = self._scope.kind(node.value), ast.unparse(node.value)
        if isinstance(base, Fields):
            if node.attr not in base.members:
                self._say(node, _no_member(text, node.attr, base, self._meant(node.attr)))
            elif base.constant and isinstance(node.ctx, ast.Store):
                self._say(node, _is_constant(f"{text}.{node.attr}", base))
            elif isinstance(node.ctx, ast.Store) and not isinstance(base.members[node.attr], Number):
                self._say(node, _whole(f"{text}.{node.attr}", base.members[node.attr]))
        elif isinstance(base, Stream) and node.attr not in RNG_METHODS:
            meant = _OTHER_DRAWS.get(node.attr) or nearest(node.attr, RNG_METHODS)
            hint = f" Did you mean {meant!r}?" if meant else ""
            self._say(node, f"{text} has no {node.attr!r}; it has {', '.join(RNG_METHODS)}.{hint}")
        elif isinstance(base, Number):
            self._say(node, f"{text} is a single number and has no {node.attr!r}.")

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.generic_visit(node)
        self._check_written(node)
        base, text = self._scope.kind(node.value), ast.unparse(node.value)
        if isinstance(base, Number):
            self._say(node, f"{text} is a single number, not an array: write {text} without [...].")
        elif isinstance(base, Fields):
            first = next(iter(base.members), "name")
            self._say(node, f"{text}[...] cannot be used: name a part of {base.what}, e.g. {text}.{first}.")
        elif isinstance(base, Cells):
            self._check_index(node, base, text)
            if base.constant and isinstance(node.ctx, ast.Store):
                self._say(node, _is_constant(text, base, self._name))

    def _check_index(self, node: ast.Subscript, cells: Cells, text: str) -> None:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(part, ast.Constant) and part.value is Ellipsis for part in parts):
            self._say(node, f"{ast.unparse(node)}: `...` cannot be used as an index in a kernel. Write {text}[:].")
            return
        if len(parts) > len(cells.shape):
            self._say(node, f"{ast.unparse(node)} has {len(parts)} indices; {text} has shape {cells.shape}.")
            return
        for axis, (part, size) in enumerate(zip(parts, cells.shape, strict=False)):
            place = self._scope.interval(part)
            if not self._choices and place is not None and (place[0] >= size or place[1] < -size):
                index = place[0] if place[0] >= size else place[1]
                self._say(
                    node, f"{ast.unparse(node)}: index {index} is out of bounds for axis {axis} with size {size}."
                )
            if isinstance(part, ast.Constant) and not isinstance(part.value, int):
                self._say(node, f"{ast.unparse(node)}: an index must be a whole number, not {part.value!r}.")

    def visit_Name(self, node: ast.Name) -> None:
        kind = self._scope.names.get(node.id)
        given = self._name is not None and node.id in SIGNATURES[self._name]
        if isinstance(node.ctx, ast.Store) and given and kind is not None and not isinstance(kind, Number):
            example = f"{node.id}[0] = ..." if isinstance(kind, Cells) else f"{node.id}.{_first(kind)} = ..."
            self._say(node, f"`{node.id} = ...` changes nothing but the name. Write to its parts: {example}.")

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.generic_visit(node)
        for side in (node.left, node.right):
            self._refuse_array(side, "compute")

    def visit_Compare(self, node: ast.Compare) -> None:
        self.generic_visit(node)
        tests_membership = any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
        for side in [node.left, *node.comparators]:
            if tests_membership and isinstance(self._scope.kind(side), Cells):
                self._say(node, f"`in {ast.unparse(side)}` cannot be used on an array in a kernel. Write a loop.")
            else:
                self._refuse_array(side, "compare")

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.target)
        self.visit(node.value)
        for side in (node.target, node.value):
            self._refuse_array(side, "compute")

    def _refuse_array(self, node: ast.expr, what: str) -> None:
        kind = self._scope.kind(node)
        if isinstance(kind, Cells):
            self._say(
                node,
                f"{ast.unparse(node)} is an array of shape {kind.shape}: kernels {what} single numbers. Write a loop.",
            )


def _first(kind: Kind) -> str:
    return next(iter(kind.members), "name") if isinstance(kind, Fields) else "name"


def _no_member(text: str, name: str, base: Fields, elsewhere: str) -> str:
    """`elsewhere` says where there is something of this name, or nothing."""
    meant = nearest(name, base.members)
    hint = f" {elsewhere}" if elsewhere else f" Did you mean {meant!r}?" if meant else ""
    return f"{text} has no {name!r}: {base.what} has {', '.join(base.members) or 'nothing'}.{hint}"


def _is_constant(text: str, base: Fields | Cells, name: str | None = None) -> str:
    if isinstance(base, Fields) and base.what == "params":
        return f"writes to {text}: parameters are constants, the same for every lane. Keep what changes in the state."
    return f"writes to {text}, which is not the kernel's to change. Take a variable of your own."


def _whole(text: str, kind: Kind) -> str:
    if isinstance(kind, Cells):
        return (
            f"{text} is an array of shape {kind.shape}: write its elements, {text}[k] = ..., or fill it, {text}[:] = 0."
        )
    if isinstance(kind, Parts):
        return f"{text} is a tuple: write to its parts, {text}[0][k] = ..."
    return f"{text} has parts: write to them, {text}.{_first(kind)} = ..."
