"""From the author's functions to functions that run the same compiled and uncompiled.

Two things are done to the source of every function a kernel reaches:

1. *Numbers are widened where they are read.* NumPy computes `float32_scalar * 2.0` in float32, Numba in float64, so
   the same line would give different bits compiled and uncompiled. The rule that keeps them equal: **inside a kernel
   every number is float64, int64 or bool; narrower types are a storage format, widened when read and rounded when
   written.** So each `s.x` and `a[i]` that is read becomes `widen(s.x)`, `s.x += y` becomes
   `s.x = widen(s.x) + y`, and `x ** 2` becomes the product that Numba would make of it (C's `pow` may round otherwise).
2. *Helpers are found.* Each function called, however deep, is rewritten likewise and bound in place of the original;
   its source text and the constants that it uses go into the key of the compiled-code cache.

File names and line numbers stay those of the author's file: breakpoints and error messages point there.
"""

from __future__ import annotations

import ast
import builtins
import enum
import hashlib
import inspect
import math
import textwrap
import types
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import types as numba_types
from numba.core.dispatcher import Dispatcher
from numba.extending import overload

from shoal.errors import KernelError
from shoal.vector.kernel.scratch import scratch

_TRUSTED_MODULES = (math, np, builtins)
# No GIL; divisions give inf as C's do. Without Numba's reference counting (`_nrt`) a view of a lane's row costs
# nothing, which makes small kernels three times faster; a kernel then cannot allocate, which it must not anyway.
NJIT_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
_ONLY_CALLED_COMPILED: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
INLINE_BYTES = 1500  # bytecode of functions small enough to be worth inlining wherever they are called
_FORMAT = "4"  # raised when compiled code of the same source is no longer what it was
_CONSTANTS = (bool, int, float, str, type(None))


def widen(x: Any) -> Any:
    """A NumPy number as Python's float, int or bool; anything else as it is."""
    return x.item() if isinstance(x, np.generic) and not isinstance(x, np.void) else x


@overload(widen)
def _widen_compiled(x):
    if x in (numba_types.float32, numba_types.float16):
        return lambda x: np.float64(x)
    if isinstance(x, numba_types.Integer) and x != numba_types.int64:
        return lambda x: np.int64(x)
    return lambda x: x


def where(function: Callable) -> str:
    """`CartPole.step (cartpole.py:31)`: how messages name a function."""
    code = function.__code__
    return f"{function.__qualname__} ({code.co_filename}:{code.co_firstlineno})"


class SourceSet:
    """Rewritten copies of functions and all they reach, and a key of everything that decides their meaning."""

    def __init__(self, wrap: Callable[[Callable], Callable]) -> None:
        self._wrap = wrap  # njit, or the identity for uncompiled kernels
        self._rules = {"_widen": widen, "_square": wrap(_square), "_cube": wrap(_cube)}
        self._done: dict[Any, Callable] = {}
        self._digest = hashlib.sha256(_FORMAT.encode())
        self.files: set[str] = set()

    def key(self) -> str:
        """Hex digest over the source text and constants of all functions added so far."""
        return self._digest.hexdigest()

    def add(self, function: Callable) -> Callable:
        """The rewritten (and wrapped) copy of `function`."""
        if isinstance(function, Dispatcher):
            function = function.py_func
        if function in self._done:
            return self._done[function]
        tree, text = _parse(function)
        self._note(function.__qualname__, text)
        self.files.add(function.__code__.co_filename)
        # Numba imports a function's module when it loads cached code; ours is always there, the author's may not be
        namespace: dict[str, Any] = {"__builtins__": builtins, "__name__": __name__, **self._rules}
        definition = tree.body[0]
        assert isinstance(definition, ast.FunctionDef)
        module_names = {n for n in _names(definition) if isinstance(_lookup(function, n), types.ModuleType)}
        new_tree = ast.fix_missing_locations(_Widener(module_names).visit(tree))
        exec(compile(new_tree, function.__code__.co_filename, "exec"), namespace)
        copy = namespace[definition.name]
        copy.__qualname__ = function.__qualname__
        copy.__defaults__ = function.__defaults__
        self._done[function] = self._wrap(copy)  # before its callees, which may call it
        for name in sorted(_names(definition)):
            value = _lookup(function, name)
            if value is not _MISSING:
                namespace[name] = self._bind(function, name, value, definition)
        return self._done[function]

    def _bind(self, function: Callable, name: str, value: Any, definition: ast.FunctionDef) -> Any:
        """What `name` becomes in the copy of `function`."""
        if value is scratch:  # written for Python and for Numba already: there is nothing to rewrite
            return value
        if isinstance(value, types.FunctionType | Dispatcher):
            return self.add(value)
        if isinstance(value, types.ModuleType):
            return value if value in _TRUSTED_MODULES else self._bind_module(function, name, value, definition)
        if isinstance(value, enum.Enum):
            value = value.value
        value = widen(value)
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            self._note(name, f"{value.dtype} {value.shape}", value.tobytes())
            return value
        if _is_constant(value):
            self._note(name, repr(value))
            return value
        if isinstance(value, np.dtype) and value.names:
            self._note(name, repr(value))
            return value
        if isinstance(value, type) and issubclass(value, enum.Enum):
            return self._bind_module(function, name, value, definition)
        raise KernelError(
            f"{where(function)} uses {name!r}, a {type(value).__name__}, which cannot be compiled. "
            "Kernels may use numbers, strings, tuples of these, arrays, math, numpy and plain functions."
        )

    def _bind_module(self, function: Callable, name: str, module: Any, definition: ast.FunctionDef) -> Any:
        """A stand-in for a module of the author's (or an enum), holding only what the function takes from it."""
        stand_in = types.ModuleType(name)
        for attribute in sorted(_attributes_of(name, definition)):
            if not hasattr(module, attribute):
                raise KernelError(f"{where(function)} uses {name}.{attribute}, which does not exist.")
            value = getattr(module, attribute)
            setattr(stand_in, attribute, self._bind(function, f"{name}.{attribute}", value, definition))
        return stand_in

    def _note(self, *parts: str | bytes) -> None:
        for part in parts:
            self._digest.update(part if isinstance(part, bytes) else part.encode())
            self._digest.update(b"\0")


def _square(x):
    return x * x


def _cube(x):
    return x * x * x


_MISSING = object()


def _is_constant(value: Any) -> bool:
    return isinstance(value, _CONSTANTS) or (isinstance(value, tuple) and all(map(_is_constant, value)))


def _lookup(function: Callable, name: str) -> Any:
    """What `name` means in `function`: a closure variable, a global, or `_MISSING` for locals and builtins."""
    code = function.__code__
    if name in code.co_freevars:
        return function.__closure__[code.co_freevars.index(name)].cell_contents  # type: ignore[index]
    if name in code.co_varnames or name not in function.__globals__:
        return _MISSING
    return function.__globals__[name]


def _names(definition: ast.FunctionDef) -> set[str]:
    return {node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _attributes_of(name: str, definition: ast.FunctionDef) -> set[str]:
    return {
        node.attr
        for node in ast.walk(definition)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    }


def _parse(function: Callable) -> tuple[ast.Module, str]:
    """The function's definition as a tree whose line numbers are those of its file, and its text."""
    if not isinstance(function, types.FunctionType) or function.__name__ == "<lambda>":
        raise KernelError(f"{function!r} is not a plain function. Kernels are made of functions written with `def`.")
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise KernelError(
            f"The source of {where(function)} cannot be read. Put the kernel into a file; a console will not do."
        ) from None
    text = textwrap.dedent("".join(lines))
    tree = ast.parse(text)
    ast.increment_lineno(tree, first - 1)
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise KernelError(f"{where(function)} is not a plain function written with `def`.")
    definition.decorator_list = []
    return tree, text


class _Widener(ast.NodeTransformer):
    """Applies rule 1 of the module's docstring to one function."""

    def __init__(self, module_names: set[str]) -> None:
        self._modules = module_names
        self._temporaries = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None  # annotations are for readers
        for argument in [*node.args.args, *node.args.kwonlyargs]:
            argument.annotation = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        assert node.value is not None
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute):  # a method's name is not a number to widen
            node.func.value = self._visit_base(node.func.value)
        else:
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        is_module = isinstance(node.value, ast.Name) and node.value.id in self._modules
        node.value = self._visit_base(node.value)
        return node if is_module or not isinstance(node.ctx, ast.Load) else _call("_widen", node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.value = self._visit_base(node.value)
        node.slice = self.visit(node.slice)
        return _call("_widen", node) if isinstance(node.ctx, ast.Load) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target, value = node.target, self.visit(node.value)
        if isinstance(target, ast.Name):
            node.value = value
            return node
        before: list[ast.stmt] = []
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Name | ast.Constant):
            # the index is needed twice, but must be computed once
            self._temporaries += 1
            name = f"_index_{self._temporaries}"
            index = ast.Assign([ast.Name(name, ast.Store())], self.visit(target.slice))
            before.append(ast.copy_location(index, node))
            target.slice = ast.Name(name, ast.Load())
        target.value = self._visit_base(target.value)
        read = _with_context(target, ast.Load())
        total = ast.BinOp(_call("_widen", read), node.op, value)
        assign = ast.copy_location(ast.Assign([target], total), node)
        return [*before, assign] if before else assign

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        node.left, node.right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value in (2, 3):
            return _call("_square" if node.right.value == 2 else "_cube", node.left)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        counts = (
            isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range"
        )
        if isinstance(node.target, ast.Name) and not counts:
            again = ast.Assign(
                [ast.Name(node.target.id, ast.Store())], _call("_widen", ast.Name(node.target.id, ast.Load()))
            )
            node.body.insert(0, ast.copy_location(again, node))
        return node

    def _visit_base(self, node: ast.expr) -> ast.expr:
        """What stands before a dot or a bracket is a record, a module or an array: nothing to widen itself."""
        if isinstance(node, ast.Attribute):
            node.value = self._visit_base(node.value)
            return node
        if isinstance(node, ast.Subscript):
            node.value = self._visit_base(node.value)
            node.slice = self.visit(node.slice)
            return node
        return self.visit(node)


def _call(name: str, argument: ast.expr) -> ast.Call:
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), [argument], []), argument)


def _with_context(node: ast.Attribute | ast.Subscript, context: ast.expr_context) -> ast.expr:
    fields = {key: value for key, value in ast.iter_fields(node) if key != "ctx"}
    return ast.copy_location(type(node)(**fields, ctx=context), node)


def compile_wrap(function: Callable) -> Callable:
    """`njit` as kernels want it (see `NJIT_OPTIONS`), inlined if small, once for all constants it is called with."""
    small = len(function.__code__.co_code) < INLINE_BYTES
    compiled = numba.njit(forceinline=small, **_ONLY_CALLED_COMPILED, **NJIT_OPTIONS)(function)
    call_template = compiled.get_call_template
    # Numba would compile `f(s, 0)` and `f(s, 1)` as two functions; LLVM, inlining, sees the constants anyway.
    compiled.get_call_template = lambda args, kws: call_template(tuple(map(numba_types.unliteral, args)), kws)
    return compiled
