"""From the author's functions to functions that run the same compiled and uncompiled.

Each function that a kernel reaches, however deep, is parsed and looked through (`reach.py`, `lint.py`), rewritten
(`rewrite.py`) and bound to the rewritten copies of what it calls, with the constants that it uses.

File names and line numbers stay those of the author's file: breakpoints and error messages point there.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import enum
import functools
import inspect
import math
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.core import types as numba_types
from numba.core.dispatcher import Dispatcher

from shoal.errors import KernelError
from shoal.jit import LEAN, inner
from shoal.jit.entries import Wrapping
from shoal.jit.vector_maths import lowered
from shoal.vector.kernel.build import Build, fill
from shoal.vector.kernel.forms import type_names
from shoal.vector.kernel.kernel import Kernel
from shoal.vector.kernel.numbers import MATH, as_python, widen
from shoal.vector.kernel.reach import Reach, lookup, where
from shoal.vector.kernel.rewrite import Rewriter
from shoal.vector.kernel.scratch import scratch
from shoal.vector.kernel.sorts import Given, brief, describe, with_defaults
from shoal.vector.kernel.unify import Unified, has_meetings

LARGEST_CONSTANT = 2**16  # bytes of a global table: what is larger takes long to compile
INLINE_BYTES = 1500  # bytecode of functions small enough to be worth inlining wherever they are called
ONCE_INLINE_BYTES = 8000  # of functions that are called in one or two places
_CONSTANTS = (bool, int, float, str, type(None))


class SourceSet:
    """Rewritten copies of functions and all they reach."""

    def __init__(self, build: Build, wrap: Callable[[Callable], Callable], kernel: Kernel | None = None) -> None:
        """`wrap` is `compile_wrap`, or the identity for uncompiled kernels; `kernel` is whose functions these are."""
        self._wrap = wrap
        self._build = build
        self._clears = True
        self._rules = build.namespace(wrap)
        if kernel is not None:
            self._rules |= type_names(kernel.lane_action_space, "_k_Act")
        self._rules["_k_clear"] = fill if build.compiled else self._clear
        self._reach = Reach(kernel)
        self._unified = Unified(self._reach)
        self._done: dict[Any, Callable] = {}
        self._open: list[Callable] = []  # functions whose callees are being added
        self.files: set[str] = set()

    def add(self, function: Callable) -> Callable:
        """The rewritten (and wrapped) copy of `function`; `KernelError` for a mistake that can be seen in it."""
        if isinstance(function, Dispatcher):
            function = function.py_func
        if function in self._done:
            return self._done[function]
        self.files.add(function.__code__.co_filename)
        given = self._reach.given(function)
        made = self._rewritten(function, given or {})
        if not self._build.compiled and given is None and has_meetings(self._reach.parse(function)[0]):
            made = self._by_arguments(function, made)
        self._done[function] = made
        return made

    def _rewritten(self, function: Callable, given: Given, base: Callable | None = None) -> Callable:
        """The copy of `function` for arguments of which this is known; `base` if that makes no difference."""
        parsed, names = self._reach.parse(function)
        definition = copy.deepcopy(parsed)
        if not self._build.compiled and not self._unified.unify(function, definition, given) and base is not None:
            return base
        # Numba imports a function's module when it loads cached code; ours is always there, the author's may not be
        namespace: dict[str, Any] = {"__builtins__": builtins, "__name__": __name__, **self._rules}
        scope = self._reach.checked_scope(function)
        modules = {n: value for n in _names(definition) if is_namespace(value := lookup(function, n))}
        site = (function.__qualname__, function.__code__.co_firstlineno)
        definition.body[:0] = self._reach.preamble(function)
        definition.args.defaults = [
            ast.Constant(None) for _ in definition.args.defaults
        ]  # computed when it was defined
        rewriter = Rewriter(self._build, scope, modules, site, self._reach.role(function) == "step")
        tree = ast.fix_missing_locations(ast.Module([rewriter.visit(definition)], []))
        exec(compile(tree, function.__code__.co_filename, "exec"), namespace)
        rewritten = namespace[definition.name]
        rewritten.__qualname__ = function.__qualname__
        rewritten.__defaults__ = function.__defaults__
        wrap = compile_at_once if self._build.compiled and self._reach.role(function) is not None else self._wrap
        made = wrap(rewritten)
        self._open.append(function)
        for name, value in sorted(names.items()):
            namespace[name] = self._bind(function, name, value, definition)
        self._open.pop()
        return made

    def _by_arguments(self, function: Callable, base: Callable) -> Callable:
        """As Python: a helper has a copy for each combination of sorts of arguments, as it has when it is compiled."""
        signature = inspect.signature(function)
        copies: dict[Any, Callable] = {}

        @functools.wraps(base)
        def choose(*arguments: Any, **named: Any) -> Any:
            key = tuple(map(brief, arguments)), tuple((name, brief(value)) for name, value in named.items())
            if key not in copies:
                given = {k: describe(value) for k, value in signature.bind(*arguments, **named).arguments.items()}
                copies[key] = self._rewritten(function, with_defaults(signature, given), base)
            return copies[key](*arguments, **named)

        return choose

    @contextlib.contextmanager
    def without_clearing(self) -> Iterator[None]:
        """As Python: `out` holds what it held before, to see what is written."""
        self._clears = False
        try:
            yield
        finally:
            self._clears = True

    def _clear(self, target: Any, value: int) -> None:
        if self._clears:
            fill(target, value)

    def _bind(self, function: Callable, name: str, value: Any, definition: ast.FunctionDef) -> Any:
        """What `name` becomes in the copy of `function`."""
        if value is scratch or value is lowered:  # written for Python and for Numba already: there is nothing to rewrite
            return value
        if isinstance(value, types.FunctionType) and value in self._open:
            raise KernelError(
                f"{_place(function, name, definition)} calls {name}, which leads back to itself: "
                "compiled code has little room for that. Write a loop."
            )
        if isinstance(value, types.FunctionType | Dispatcher):
            return self.add(value)
        if isinstance(value, types.ModuleType):
            return self._bind_module(function, name, value, definition)
        if isinstance(value, types.BuiltinFunctionType) and value.__module__ == "math":
            return value if self._build.compiled else getattr(MATH, value.__name__)
        if isinstance(value, enum.Enum):
            value = value.value
        value = widen(value)
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            if value.nbytes > LARGEST_CONSTANT:
                raise KernelError(
                    f"{_place(function, name, definition)} uses {name!r}, a table of {value.nbytes / 1e6:.3g} MB, as a "
                    "global, which would be compiled into the code. Make it a parameter: "
                    f"params = {{{name.lower()!r}: {name}, ...}}, and read p.{name.lower()}[...]."
                )
            return value
        if _is_constant(value) or (isinstance(value, np.dtype) and value.names) or _is_named_tuple(value):
            return value
        if isinstance(value, type):
            return self._stand_in(function, name, value, definition)
        raise KernelError(
            f"{_place(function, name, definition)} uses {name!r}, a {type(value).__name__}, which cannot be compiled. "
            "Kernels may use numbers, strings, tuples of these, arrays, math, numpy and plain functions."
        )

    def _bind_module(self, function: Callable, name: str, module: Any, definition: ast.FunctionDef) -> Any:
        for attribute in sorted(_attributes_of(name, definition)) if module in (math, np) else ():
            if not hasattr(module, attribute):
                place = _place(function, name, definition)
                raise KernelError(f"{place} uses {name}.{attribute}, which does not exist.")
        if module is math:
            return math if self._build.compiled else MATH
        is_random = module.__name__ in ("random", "secrets", "numpy.random")
        if is_random or (module is np and "random" in _attributes_of(name, definition)):
            used = name if is_random else name + ".random"
            raise KernelError(
                f"{_place(function, name, definition)} uses {used}. Random numbers of a lane come from "
                "`rng`: rng.uniform(low, high), rng.integers(n), rng.normal(), rng.choice(weights)."
            )
        if module is np or module is builtins:
            return module if self._build.compiled else as_python(module)
        return self._stand_in(function, name, module, definition)

    def _stand_in(self, function: Callable, name: str, owner: Any, definition: ast.FunctionDef) -> Any:
        """A stand-in for a module of the author's, a class or an enum, holding only what the function takes from it."""
        stand_in = types.ModuleType(name)
        for attribute in sorted(_attributes_of(name, definition)):
            if not hasattr(owner, attribute):
                raise KernelError(
                    f"{_place(function, name, definition)} uses {name}.{attribute}, which does not exist."
                )
            value = getattr(owner, attribute)
            setattr(stand_in, attribute, self._bind(function, f"{name}.{attribute}", value, definition))
        return stand_in


def _place(function: Callable, name: str, definition: ast.FunctionDef) -> str:
    """How a message names the line in which `function` uses `name` first."""
    first = name.partition(".")[0]
    lines = [node.lineno for node in ast.walk(definition) if isinstance(node, ast.Name) and node.id == first]
    return where(function, min(lines, default=None))


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")


def is_namespace(value: Any) -> bool:
    """Whether a dot behind `value` names something fixed: of a module, a class or an enum."""
    return isinstance(value, types.ModuleType | type)


def _is_constant(value: Any) -> bool:
    return isinstance(value, _CONSTANTS) or (isinstance(value, tuple) and all(map(_is_constant, value)))


def _names(definition: ast.FunctionDef) -> set[str]:
    return {node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _attributes_of(name: str, definition: ast.FunctionDef) -> set[str]:
    return {
        node.attr
        for node in ast.walk(definition)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    }


def compile_wrap(function: Callable, inline_bytes: int = INLINE_BYTES) -> Callable:
    """`LEAN` compiled code for compiled callers, inlined if small, once for all constants that it is called with."""
    small = len(function.__code__.co_code) < inline_bytes
    compiled = inner(forceinline=small, pipeline_class=Wrapping, **LEAN)(function)
    call_template = compiled.get_call_template
    # Numba would compile `f(s, 0)` and `f(s, 1)` as two functions; LLVM, inlining, sees the constants anyway.
    compiled.get_call_template = lambda args, kws: call_template(tuple(map(numba_types.unliteral, args)), kws)  # type: ignore[method-assign]
    return compiled


compile_at_once = functools.partial(compile_wrap, inline_bytes=ONCE_INLINE_BYTES)
"""`compile_wrap` for what is called in one or two places: the loop over lanes then knows sizes and strides."""
