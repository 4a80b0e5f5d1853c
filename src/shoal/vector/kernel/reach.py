"""Every function that a kernel reaches: its syntax tree, the names that it uses, and what is known of its arguments."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from shoal.errors import KernelError
from shoal.vector.kernel.forms import has_parts, unpacking
from shoal.vector.kernel.kernel import Kernel
from shoal.vector.kernel.kinds import SIGNATURES, Fields, Kind, Number, Scope, Span, argument_kinds
from shoal.vector.kernel.lint import Mistake, check_function, check_signature
from shoal.vector.kernel.rewrite import clearing

MISSING = object()
"""The value of a name that is neither a global nor a closure variable."""


def where(function: Callable, line: int | None = None) -> str:
    """`CartPole.step (cartpole.py:31)`: how messages name a function, or a line of it."""
    code = function.__code__
    return f"{function.__qualname__} ({code.co_filename}:{line or code.co_firstlineno})"


def lookup(function: Callable, name: str) -> Any:
    """What `name` means in `function`: a closure variable, a global, or `MISSING` for locals and builtins."""
    code = function.__code__
    if name in code.co_freevars:
        cell = function.__closure__[code.co_freevars.index(name)]  # type: ignore[index]
        try:
            return cell.cell_contents
        except ValueError:  # assigned later, or never
            return MISSING
    if name in code.co_varnames or name not in function.__globals__:
        return MISSING
    return function.__globals__[name]


class Reach:
    """The functions of `kernel` (or of nobody) and what they call."""

    def __init__(self, kernel: Kernel | None) -> None:
        self._kernel = kernel
        self._trees: dict[Callable, tuple[ast.FunctionDef, dict[str, Any]]] = {}
        self._roles: dict[Callable, str] = {}
        self._arguments: dict[Callable, dict[str, Kind]] = {}
        self._spans: dict[Callable, dict[str, Span]] = {}
        self._handed_on: set[Callable] = set()
        """Functions that are called from elsewhere too, or used as values: nobody sees what those are called with."""
        if kernel is not None:
            self._follow(kernel)

    def functions(self) -> list[Callable]:
        """All of them."""
        return list(self._trees)

    def role(self, function: Callable) -> str | None:
        """Which of the author's functions this is ("step"), or None for a helper."""
        return self._roles.get(function)

    def given(self, function: Callable) -> dict[str, Kind] | None:
        """What is known of the arguments of a function that the loop over lanes calls; None for any other."""
        role = self._roles.get(function)
        if role is None or self._kernel is None or self._kernel.function(role) is not function:
            return None
        names = [argument.arg for argument in self.parse(function)[0].args.args]
        return dict(zip(names, argument_kinds(self._kernel, role), strict=True))

    def parse(self, function: Callable) -> tuple[ast.FunctionDef, dict[str, Any]]:
        """The function's definition, with the line numbers of its file, and what its names mean; both to read only."""
        if function not in self._trees:
            definition = _definition(function)
            above = self._name_inherited(function, definition)
            names = {n: lookup(function, n) for n in _names_read(definition) - above.keys()}
            if lookup(function, "min") is lookup(function, "max") is MISSING:
                definition = _Clipped(names).visit(definition)
            self._trees[function] = definition, {n: v for n, v in names.items() if v is not MISSING} | above
        return self._trees[function]

    def checked_scope(self, function: Callable) -> Scope:
        """What is known inside `function`; `KernelError` for a mistake that can be seen in its source."""
        definition, names = self.parse(function)
        scope = self.scope(function, with_spans=False)  # what no caller needs may stand in a branch that is never taken

        def meaning(name: str) -> Any:
            return names[name]

        try:
            self._check_calls(definition, names)
            check_function(self.role(function), definition, scope, meaning, lambda name: self._meant(name, scope))
        except Mistake as mistake:
            raise KernelError(f"{where(function, mistake.line)}: {mistake.sentence}") from None
        return self.scope(function)

    def preamble(self, function: Callable) -> list[ast.stmt]:
        """Statements to put before the function's own: `out` starts at zero, a scalar action is a float64 or int64."""
        definition, _ = self.parse(function)
        role, scope = self.role(function), self.scope(function)
        if role in ("observe", "inform") and self._kernel is not None and self._kernel.function(role) is function:
            return clearing(definition, scope)
        if role == "step" and self._kernel is not None:
            name = definition.args.args[1].arg
            space = self._kernel.seat_action_space
            if has_parts(space):  # only where the action comes in: what is handed to super().step is unpacked already
                own = self._kernel.function(role) is function
                return [ast.copy_location(unpacking(space, name), definition.body[0])] if own else []
            if isinstance(scope.names.get(name), Number):
                widened = ast.Call(ast.Name("_k_widen", ast.Load()), [ast.Name(name, ast.Load())], [])
                statement = ast.Assign([ast.Name(name, ast.Store())], widened)
                return [ast.copy_location(statement, definition.body[0])]
        return []

    def scope(self, function: Callable, with_spans: bool = True) -> Scope:
        """What is known inside `function`, `with_spans` also of the numbers that it is called with."""
        definition, names = self.parse(function)
        spans = self._spans.get(function, {}) if with_spans and function not in self._handed_on else {}
        return Scope(definition, self._arguments.get(function, {}), lambda name: names.get(name, MISSING), spans)

    def _meant(self, name: str, scope: Scope) -> str:
        """What a name that is not defined may be meant for."""
        if name == "self":
            return (
                "There is no object: `s` is the lane's state, and functions of the class are called as Class.name(s)."
            )
        for argument, kind in scope.names.items():
            if isinstance(kind, Fields) and name in kind.members:
                return f"Did you mean {argument}.{name}?"
        if self._kernel is not None and hasattr(self._kernel, name) and not hasattr(Kernel, name):
            return f"What belongs to the class is written with its name: {self._kernel.name}.{name}."
        return ""

    def _check_calls(self, definition: ast.FunctionDef, names: dict[str, Any]) -> None:
        """`Mistake` for a helper that is called with too few or too many arguments, or for a result that it lacks."""
        unused = {id(node.value) for node in ast.walk(definition) if isinstance(node, ast.Expr)}
        for node in ast.walk(definition):
            callee = called(node, names) if isinstance(node, ast.Call) else None
            if callee is None or not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
                continue
            try:
                inspect.signature(callee).bind(*node.args, **{str(k.arg): k.value for k in node.keywords})
            except TypeError as error:
                raise Mistake(
                    node.lineno, f"{callee.__name__}{inspect.signature(callee)} cannot be called like this: {error}."
                ) from None
            if id(node) not in unused and not _gives_something(self.parse(callee)[0]):
                raise Mistake(node.lineno, f"{callee.__name__}() returns nothing, and here its result is used.")

    # ------------------------------------------------------------------ from the author's functions to their helpers

    def _follow(self, kernel: Kernel) -> None:
        for name in SIGNATURES:
            function = kernel.function(name)
            if function is None:
                continue
            if isinstance(function, Dispatcher):
                function = function.py_func
            definition, _ = self.parse(function)
            mistake = check_signature(name, definition)
            if mistake:
                raise KernelError(f"{where(function, mistake[0])} {mistake[1]}")
            self._roles[function] = name
            self._handed_on.add(function)
            self._note(function, argument_kinds(kernel, name))
            self._enter(function)

    def _enter(self, function: Callable, depth: int = 0) -> None:
        """Tell what `function` calls what it is called with."""
        definition, names = self.parse(function)
        scope = self.scope(function)
        for other in _handed_on(definition, names) - self._handed_on:
            self._handed_on.add(other)
            if self._spans.get(other):
                self._enter(other, depth + 1)
        for node in ast.walk(definition):
            callee = called(node, names) if isinstance(node, ast.Call) else None
            if callee is None or depth > 50:
                continue
            if isinstance(node.func, ast.Name) and node.func.id.startswith(_ABOVE):  # type: ignore[attr-defined]
                self._roles[callee] = node.func.id.removeprefix(_ABOVE)  # type: ignore[attr-defined]
            starred = any(isinstance(argument, ast.Starred) for argument in node.args)  # type: ignore[attr-defined]
            kinds = [] if starred else [scope.kind(argument) for argument in node.args]  # type: ignore[attr-defined]
            is_new = self._note(callee, kinds)
            if self._note_spans(callee, {} if starred else self._spans_of(node, callee, scope)) or is_new:  # type: ignore[arg-type]
                self._enter(callee, depth + 1)

    def _note(self, function: Callable, kinds: list[Kind]) -> bool:
        """Whether this call says anything new about the arguments of `function`."""
        definition, _ = self.parse(function)
        named = {a.arg: kind for a, kind in zip(definition.args.args, kinds, strict=False)}
        old = self._arguments.get(function)
        new = {name: kind for name, kind in named.items() if old is None or old.get(name) == kind}
        self._arguments[function] = new
        return old is None or new != old

    def _spans_of(self, node: ast.Call, callee: Callable, scope: Scope) -> dict[str, Span]:
        """Between which whole numbers the arguments of this call are known to lie, by name."""
        definition, _ = self.parse(callee)
        named = {a.arg: value for a, value in zip(definition.args.args, node.args, strict=False)}
        named |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
        spans = {name: scope.interval(value) for name, value in named.items()}
        return {name: span for name, span in spans.items() if span is not None}

    def _note_spans(self, function: Callable, spans: dict[str, Span]) -> bool:
        """Whether this call lets the arguments of `function` be something else than the calls before."""
        old = self._spans.get(function)
        both = spans if old is None else {name: spans[name] for name in spans.keys() & old.keys()}
        if old is not None:
            both = {name: (min(span[0], old[name][0]), max(span[1], old[name][1])) for name, span in both.items()}
        self._spans[function] = both
        return both != old

    # ------------------------------------------------------------------ super()

    def _name_inherited(self, function: Callable, definition: ast.FunctionDef) -> dict[str, Callable]:
        """Put a name in place of every `super().step` and give what these names mean."""
        above: dict[str, Callable] = {}
        for node in ast.walk(definition):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            base = node.func.value
            if not (isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "super"):
                continue
            name = f"{_ABOVE}{node.func.attr}"
            above[name] = self._inherited(function, node.func.attr, node.lineno)
            node.func = ast.copy_location(ast.Name(name, ast.Load()), node.func)
        return above

    def _inherited(self, function: Callable, name: str, line: int) -> Callable:
        owner = lookup(function, "__class__")
        order = type(self._kernel).__mro__ if self._kernel is not None else ()
        later = order[order.index(owner) + 1 :] if owner in order else ()
        for cls in later:
            if cls is not Kernel and name in vars(cls):
                member = vars(cls)[name]
                return member.__func__ if isinstance(member, staticmethod) else member
        raise KernelError(f"{where(function, line)}: super().{name} does not exist: no class above has {name!r}.")


_ABOVE = "_k_super_"


def called(node: ast.Call, names: dict[str, Any]) -> Callable | None:
    """The plain function that is called here, if it is one."""
    value: Any = None
    if isinstance(node.func, ast.Name):
        value = names.get(node.func.id)
    elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        owner = names.get(node.func.value.id)
        value = getattr(owner, node.func.attr, None) if isinstance(owner, types.ModuleType | type) else None
    if isinstance(value, Dispatcher):
        value = value.py_func
    is_source = isinstance(value, types.FunctionType) and not value.__module__.startswith(
        ("numpy", "numba", "shoal.vector.kernel.scratch", "shoal.jit.vector_maths")
    )
    return value if is_source else None


class _Clipped(ast.NodeTransformer):
    """`np.clip(x, low, high)` as what it is of single numbers."""

    def __init__(self, names: Mapping[str, object]) -> None:
        self._names = names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        of = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "clip" else None
        is_numpy = isinstance(of, ast.Name) and self._names.get(of.id) is np
        if not is_numpy or len(node.args) != 3 or node.keywords:
            return node
        least = ast.Call(ast.Name("max", ast.Load()), node.args[:2], [])
        made = ast.Call(ast.Name("min", ast.Load()), [least, node.args[2]], [])
        return ast.fix_missing_locations(ast.copy_location(made, node))


def _handed_on(definition: ast.FunctionDef, names: dict[str, Any]) -> set[Callable]:
    """Functions that this one refers to without calling them there."""
    calls = [node for node in ast.walk(definition) if isinstance(node, ast.Call)]
    called_here = {id(node.func) for node in calls}
    named = [node for node in ast.walk(definition) if isinstance(node, ast.Name | ast.Attribute)]
    as_calls = [ast.Call(node, [], []) for node in named if id(node) not in called_here]
    return {callee for callee in (called(call, names) for call in as_calls) if callee is not None}


def _gives_something(definition: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(definition))


def _names_read(definition: ast.FunctionDef) -> set[str]:
    return {node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _definition(function: Callable) -> ast.FunctionDef:
    """The function's definition as a tree whose line numbers are those of its file."""
    if not isinstance(function, types.FunctionType):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "fget", None)
        name = where(inner) if isinstance(inner, types.FunctionType) else repr(function)
        kind = type(function).__name__.strip("_")
        raise KernelError(f"{name} is a {kind}. Kernels are made of plain functions written with `def`.")
    if hasattr(function, "__wrapped__"):
        raise KernelError(f"{where(function.__wrapped__)} has a decorator, which compiled code would leave out.")
    if function.__name__ == "<lambda>":
        raise KernelError(f"{where(function)} is a lambda. Kernels are made of functions written with `def`.")
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise KernelError(
            f"The source of {where(function)} cannot be read. Put the kernel into a file; a console is not enough."
        ) from None
    tree = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(tree, first - 1)
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise KernelError(f"{where(function)} is not a plain function written with `def`.")
    definition.decorator_list = []
    plain: ast.FunctionDef = _Plain().visit(definition)
    return plain


class _Plain(ast.NodeTransformer):
    """Without annotations, which are for readers; `reversed(range(a, b))` and `float("inf")` as what they are."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        plain = ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
        return ast.copy_location(plain, node)

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        outer = node.iter
        if not (isinstance(outer, ast.Call) and ast.unparse(outer.func) == "reversed" and len(outer.args) == 1):
            return node
        inner = outer.args[0]
        if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "range" and 0 < len(inner.args) <= 2:
            low, high = [ast.Constant(0), *inner.args][-2:]
            one = ast.Constant(1)
            backwards = [ast.BinOp(high, ast.Sub(), one), ast.BinOp(low, ast.Sub(), one), ast.Constant(-1)]
            node.iter = ast.fix_missing_locations(ast.copy_location(ast.Call(inner.func, backwards, []), outer))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node) in ("float('inf')", "float('-inf')", "float('nan')"):
            return ast.copy_location(ast.Constant(float(node.args[0].value)), node)  # type: ignore[attr-defined]
        return node
