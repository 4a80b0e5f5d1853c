"""Functions that Python calls and Numba compiles: see the package's docstring for how they are written."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher

from shoal.jit.cache import CachedModule
from shoal.jit.library import Part

# without reference counting (`_nrt`) a view of a row costs nothing; the price is that nothing can be allocated
LEAN: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def inner(**options: Any) -> Callable[[Callable], Dispatcher]:
    """Decorator of functions that only compiled code calls: wrappers for Python would only take time to compile."""
    return numba.njit(**{"nogil": True, "pipeline_class": Part, **_NO_WRAPPERS, **options})


class Entry:
    """A function that is compiled when it is first called, and kept on disk. `inner` is for compiled callers."""

    def __init__(self, function: Callable, name: str = "", **options: Any) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._name = name or function.__name__.strip("_")
        self.inner = inner(**options)(function)
        self._call: Callable[..., Any] = self._first_call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def _first_call(self, *args: Any, **kwargs: Any) -> Any:
        self._call = entry_points(self._name, [self.inner])[self.py_func.__name__]
        return self._call(*args, **kwargs)


def entry(name: str = "", **options: Any) -> Callable[[Callable], Entry]:
    """Decorator of functions that Python calls; the GIL is let go.

    Args:
        name: what the user is told is being compiled; the function's name if empty.
        options: those of `numba.njit`.
    """
    return functools.partial(Entry, name=name, **options)


def entry_points(title: str, functions: Iterable[Dispatcher] | Mapping[Dispatcher, tuple]) -> dict[str, Callable]:
    """Compiled functions by name, from disk where possible.

    Args:
        title: what the user is told is being compiled.
        functions: functions compiled by Numba (`inner`), each for the types of the arguments of its first call; or each
            with an example of its arguments, to compile all of them now.
    """
    cached = entry_module(title, functions)
    names = [function.py_func.__name__ for function in functions]
    return {name: getattr(cached.module, name) for name in names}


def entry_module(title: str, functions: Iterable[Dispatcher] | Mapping[Dispatcher, tuple]) -> CachedModule:
    """The module that `entry_points` takes functions from; compiled already where there are examples of arguments."""
    pairs = functions.items() if isinstance(functions, Mapping) else ((function, None) for function in functions)
    examples = {function.py_func.__name__: (function, example) for function, example in pairs}
    signatures = {name: tuple(map(numba.typeof, args)) for name, (_, args) in examples.items() if args is not None}
    namespace = {f"_{name}": function for name, (function, _) in examples.items()}
    text = "".join(_wrapper_text(name, function) for name, (function, _) in examples.items())
    lean = all(function.targetoptions.get("_nrt") is False for function, _ in examples.values())
    cached = CachedModule(title, text, namespace, {"nogil": True, "_nrt": not lean}, signatures)
    if signatures:
        cached.compile(signatures)
    return cached


def _wrapper_text(name: str, function: Dispatcher) -> str:
    parameters = inspect.signature(function.py_func).parameters.values()
    names = ", ".join(p.name for p in parameters)
    taken = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters)
    return f"@jit_cached\ndef {name}({taken}):\n    return _{name}({names})\n\n\n"
