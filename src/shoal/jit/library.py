"""How much LLVM does for a function, by who calls it.

Numba optimises every function by itself and turns it into machine code, then again as part of each of its callers. A
function that only compiled code calls needs neither: its code is handed on as it is, and optimised once, as part of the
function that Python calls. That halves the time of compiling what consists of many small functions.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder


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


class WholeLibrary(JITCodeLibrary):
    """Code that Python calls, with all that it calls in it; equal operations side by side become vectors (SLP)."""

    def _optimize_final_module(self) -> None:
        cheap, cheap_builder = self._codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap"
        )
        cheap.run(self._final_module, cheap_builder)
        full, full_builder = self._codegen._module_pass_manager(slp_vectorize=True)
        full.run(self._final_module, full_builder)


class Part(CompilerBase):
    """Numba's usual passes, for a function that only compiled code calls."""

    def define_pipelines(self) -> list:
        if self.state.library is None:
            self.state.library = PartLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


@functools.cache
def load_array_functions() -> None:
    """Load what Numba knows of arrays, without scipy.linalg, which it imports only to see whether there is a BLAS.

    That would take a third of a second of every start. Whoever compiles a matrix product is asked again.
    """
    if "numba.np.arraymath" in sys.modules or importlib.util.find_spec("scipy") is None:
        return
    linalg = vars(importlib.import_module("numba.np.linalg"))
    ensure_blas = linalg["ensure_blas"]
    linalg["ensure_blas"] = lambda: None
    try:
        vars(importlib.import_module("numba.np.arraymath"))["ensure_blas"] = ensure_blas
    finally:
        linalg["ensure_blas"] = ensure_blas
