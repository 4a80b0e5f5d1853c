"""Functions that Python calls and Numba compiles, and those that only they call: the package says how to write them.

Numba optimises every function by itself and turns it into machine code, then again as part of each of its callers. A
function that only compiled code calls needs neither: its code is handed on as it is, and optimised once, as part of the
function that Python calls. That halves the time of compiling what consists of many small functions.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.dispatcher import Dispatcher

from shoal.jit import vector_maths
from shoal.jit.cache import CachedModule
from shoal.jit.narrow_stores import without_narrow_stores

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

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    else:  # straight to what is called, without a Python function in between
        __call__ = property(operator.attrgetter("_call"))

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


# ---------------------------------------------------------------------- how much LLVM does for them


class PartLibrary(JITCodeLibrary):
    """Code to be linked into that of its callers, and never run by itself."""

    def _optimize_final_module(self) -> None:
        """Not by itself."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: there is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """What Numba tells about a function that is ready to run; there is nobody to tell."""
        return _Nobody


class _Nobody:
    @staticmethod
    def set_env(env_name: str, env: object) -> None:
        """The Python objects of a function are set where it is linked to, if anything there refers to them."""


class WrappingLibrary(PartLibrary):
    """A part in which whole numbers wrap around at 64 bits.

    Numba tells LLVM that they never do, and LLVM may then make anything of what comes after one that did.
    """

    def add_ir_module(self, ir_module: ir.Module) -> None:
        """Add the code of a function."""
        for function in ir_module.functions:
            for block in function.blocks:
                for instruction in block.instructions:
                    if instruction.opname in ("add", "sub", "mul"):
                        instruction.flags = [flag for flag in instruction.flags if flag != "nsw"]
        vector_maths.offer(ir_module)
        super().add_ir_module(ir_module)


class WholeLibrary(JITCodeLibrary):
    """Code that Python calls, with all that it calls in it; equal operations side by side become vectors (SLP)."""

    def _optimize_final_module(self) -> None:
        has_maths = vector_maths.wanted(self._final_module)
        if has_maths:
            self._final_module.link_in(llvm.parse_assembly(vector_maths.definitions()))
        cheap, cheap_builder = self._codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap"
        )
        cheap.run(self._final_module, cheap_builder)
        full, full_builder = self._codegen._module_pass_manager(slp_vectorize=True)
        full.run(self._final_module, full_builder)
        if has_maths:
            self._put_in(full_builder)
        self._final_module = without_narrow_stores(self._final_module)

    def _put_in(self, builder: llvm.PassBuilder) -> None:
        """What vectors are handed to, in place of its calls: constants are then loaded once, and what is common is."""
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_new_gvn_pass()
        passes.run(self._final_module, builder)


class Part(CompilerBase):
    """Numba's usual passes, for a function that only compiled code calls."""

    def define_pipelines(self) -> list:
        if self.state.library is None:
            self.state.library = PartLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class Wrapping(Part):
    """The passes of a part, for code of an author's."""

    def define_pipelines(self) -> list:
        if self.state.library is None:
            self.state.library = WrappingLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()
