"""How the engine's scalar functions are compiled, and where the machine code is kept.

The functions live in several files and call each other. Numba's own cache would not notice a change in another file, so
the entry points are written to a module whose name is a digest of the text of all these files.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

from shoal.vector.kernel.compiler import cache_dir, write_once

# without reference counting (`_nrt`) a view of a lane's row costs nothing; the price is that nothing can be allocated
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}

_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def jit(function: Callable) -> Callable:
    """Compile a scalar function of the engine for compiled callers; wrappers for Python would only take time."""
    return numba.njit(function, **_OPTIONS, **_NO_WRAPPERS)


def inline(function: Callable) -> Callable:
    """The same for small functions in inner loops: a call would pass every array of every table on the stack."""
    return numba.njit(function, forceinline=True, **_OPTIONS, **_NO_WRAPPERS)


def load(name: str, entries: dict[Callable, tuple]) -> dict[str, Callable]:
    """Compiled entry points by name, from disk if possible. `entries` maps each to an example of its arguments."""
    names = [entry.__name__ for entry in entries]
    signatures = [tuple(map(numba.typeof, example)) for example in entries.values()]
    text = "".join(_wrapper_text(entry) for entry in entries)
    sources = sorted({Path(inspect.getfile(entry.py_func)).parent for entry in entries})  # type: ignore[attr-defined]
    texts = [path.read_text() for folder in sources for path in sorted(folder.glob("*.py"))]
    versions = f"{numba.__version__} {np.__version__} {sys.version_info[:2]}"
    key = "\0".join([versions, text, repr(signatures), *texts])
    stem = f"{name}_{hashlib.sha256(key.encode()).hexdigest()[:24]}"
    path = write_once(cache_dir() / f"{stem}.py", text)
    module = types.ModuleType(f"shoal_{stem}")
    module.__file__ = str(path)
    inner = {f"_{entry.__name__}": entry for entry in entries}
    vars(module).update(inner, jit_cached=numba.njit(cache=True, **_OPTIONS))
    exec(compile(text, str(path), "exec"), vars(module))
    sys.modules[module.__name__] = module  # Numba stores a reference to the module by name
    known = any(path.parent.glob(f"__pycache__/{stem}.*.nbi"))
    compiled = {entry: getattr(module, entry) for entry in names}
    _compile_all(name, zip(compiled.values(), signatures, strict=True), quiet=known)
    return compiled


def _compile_all(name: str, entries: zip, quiet: bool) -> None:
    start = time.perf_counter()
    if not quiet:
        print(f"compiling {name}, once: ", end="", file=sys.stderr, flush=True)
    for entry, signature in entries:
        entry.compile(signature)
    if not quiet:
        print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)


def _wrapper_text(entry: Callable) -> str:
    arguments = ", ".join(inspect.signature(entry.py_func).parameters)  # type: ignore[attr-defined]
    name = entry.__name__
    return f"@jit_cached\ndef {name}({arguments}):\n    return _{name}({arguments})\n\n\n"
