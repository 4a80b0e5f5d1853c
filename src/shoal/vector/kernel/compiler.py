"""Compile a kernel once and keep the machine code on disk.

Numba's own cache neither hits for a loop that closes over other compiled functions nor notices that one of them has
changed. So the loop is written to a module whose *name* is a digest of everything that decides its meaning (the source
of every function reached, constants, record layouts, spaces, versions), and refers to the author's functions as
globals. A changed helper is another digest, hence another module; the same digest finds Numba's cache beside it.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
import time
import types
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numba
import numpy as np

from shoal.errors import KernelError
from shoal.vector.kernel.bound import bound_source
from shoal.vector.kernel.driver import driver_source
from shoal.vector.kernel.kernel import Kernel
from shoal.vector.kernel.rng import Rng
from shoal.vector.kernel.source import NJIT_OPTIONS, SourceSet, compile_wrap

# words by which the telling line of a report of Numba's is known, most specific first
_TELLING = (
    "Unknown attribute",
    "Invalid use of",
    "Cannot unify",
    "not supported",
    "Use of unsupported",
    "undeclared",
    "not defined",
    "No match",
    "Untyped global",
    "has no attribute",
)
_FUNCTIONS = ("reset", "step", "observe", "mask", "inform")


def cache_dir() -> Path:
    """Where compiled kernels are kept: `SHOAL_CACHE_DIR`, or the user's cache folder."""
    chosen = os.environ.get("SHOAL_CACHE_DIR")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shoal"
    folder = base / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"shoal-kernels-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def load_uncompiled(kernel: Kernel) -> types.ModuleType:
    """The driver module around the author's functions as ordinary Python."""
    functions = SourceSet(wrap=lambda function: function)
    module = types.ModuleType(f"{kernel.name}_uncompiled")
    _fill(module, kernel, functions, jit=lambda function: function, jit_cached=lambda function: function)
    text = _driver_text(kernel)
    exec(compile(text, f"<driver of {kernel.name}>", "exec"), vars(module))
    return module


def load_compiled(
    kernel: Kernel, signatures: dict[str, tuple], before_compiling: Callable[[], None]
) -> types.ModuleType:
    """The driver module with `begin`, `check`, `run` and `run_bound` compiled for the argument types in `signatures`.

    `before_compiling()` is called only when there is no compiled code yet.
    """
    functions = SourceSet(wrap=compile_wrap)
    module = types.ModuleType("shoal_kernel")
    _fill(module, kernel, functions, jit=compile_wrap, jit_cached=numba.njit(cache=True, **NJIT_OPTIONS))
    bound_text, readers = bound_source(signatures["run"])
    vars(module).update(readers)
    text = _driver_text(kernel) + bound_text
    name = f"{kernel.name.lower()}_{_digest(functions.key(), text, repr(signatures))}"
    path = write_once(cache_dir() / f"{name}.py", text)
    module.__name__ = f"shoal_kernel_{name}"
    module.__file__ = str(path)
    exec(compile(text, str(path), "exec"), vars(module))
    # Numba pickles a reference to the function's module when it stores code, so the module must be importable by name
    sys.modules[module.__name__] = module
    known = any(path.parent.glob(f"__pycache__/{name}.run-*.nbi"))
    if not known:
        before_compiling()
    with _announce(kernel.name, quiet=known):
        for function_name, signature in signatures.items():
            try:
                getattr(module, function_name).compile(signature)
            except numba.core.errors.NumbaError as error:
                raise explain(error, kernel, functions.files) from None
    return module


def author_functions(kernel: Kernel, functions: SourceSet) -> dict[str, Callable]:
    """The kernel's functions by name, rewritten through `functions`."""
    found = {name: kernel.function(name) for name in _FUNCTIONS}
    return {name: functions.add(function) for name, function in found.items() if function is not None}


def _fill(module: types.ModuleType, kernel: Kernel, functions: SourceSet, jit: Any, jit_cached: Any) -> None:
    names: dict[str, Any] = {"Rng": Rng, "jit": jit, "jit_cached": jit_cached, **author_functions(kernel, functions)}
    if isinstance(kernel.observation_space, gym.spaces.Dict):
        names["Out"] = namedtuple("Out", list(kernel.observation_space.spaces))
    vars(module).update(names)


def _driver_text(kernel: Kernel) -> str:
    has_mask = kernel.function("mask") is not None
    return driver_source(kernel.observation_space, kernel.action_space, has_mask, kernel.info is not None)


def _digest(*parts: str) -> str:
    versions = f"{numba.__version__} {np.__version__} {sys.version_info[:2]}"
    rng_source = Path(sys.modules[Rng.__module__].__file__ or "").read_text()
    return hashlib.sha256("\0".join([versions, rng_source, *parts]).encode()).hexdigest()[:24]


def write_once(path: Path, text: str) -> Path:
    """Write under a temporary name, then rename: two processes that start at once do not meet a half-written file."""
    if not path.exists():
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(temporary, path)
    return path


class _announce:
    """Say that compiling takes a while, instead of looking hung."""

    def __init__(self, name: str, quiet: bool) -> None:
        self._name, self._quiet = name.lower(), quiet

    def __enter__(self) -> None:
        self._start = time.perf_counter()
        if not self._quiet:
            print(f"compiling {self._name}, once: ", end="", file=sys.stderr, flush=True)

    def __exit__(self, kind: Any, *_: Any) -> None:
        if not self._quiet:
            print("failed" if kind else f"{time.perf_counter() - self._start:.1f} s", file=sys.stderr, flush=True)


def explain(error: BaseException, kernel: Kernel, files: set[str]) -> KernelError:
    """A `KernelError` that names the author's function and line for what the compiler or a dry run complained about."""
    spot = _spot_in_traceback(error, files) or _spot_in_text(str(error), files)
    if isinstance(error, numba.core.errors.NumbaError):
        reason, advice = (
            _short_reason(str(error)),
            " Kernels are scalar Python: numbers, loops, arrays, math, plain functions.",
        )
    else:
        reason, advice = f"{type(error).__name__}: {error}", ""
    where = _name_spot(kernel, *spot) if spot else kernel.name
    return KernelError(f"{where}: {reason.rstrip('.')}.{advice}")


def _spot_in_traceback(error: BaseException, files: set[str]) -> tuple[str, int] | None:
    spot, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename in files:
            spot = (step.tb_frame.f_code.co_filename, step.tb_lineno)
        step = step.tb_next
    return spot


def _spot_in_text(text: str, files: set[str]) -> tuple[str, int] | None:
    found = re.findall(r'File "([^"]+)", line (\d+)', text) or re.findall(r"at (\S+) \((\d+)\)", text)
    spots = [(path, int(line)) for path, line in found for known in files if known.endswith(path.lstrip("./"))]
    return spots[-1] if spots else None


def _name_spot(kernel: Kernel, path: str, line: int) -> str:
    for name in _FUNCTIONS:
        function = kernel.function(name)
        if function is not None and function.__code__.co_filename.endswith(path.lstrip("./")):
            last = max((at for *_, at in function.__code__.co_lines() if at), default=0)
            if function.__code__.co_firstlineno <= line <= last:
                return f"{kernel.name}.{name} ({path}:{line})"
    return f"{kernel.name} ({path}:{line})"


def _short_reason(text: str) -> str:
    """The sentence in Numba's report that says what is wrong, without its stack of typing phases."""
    if "NRT required" in text:
        return "allocates memory (a list, a comprehension, a new array), which a kernel cannot"
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    unknown = re.search(r"No implementation of function Function\(<[a-z-]+ (?:function )?'?([\w.]+)", plain)
    if unknown:
        return f"{unknown.group(1)}() is not for kernels, or not with these arguments"
    for words in _TELLING:
        for line in lines:
            if words in line:
                return line
    return next(
        (line for line in lines if not line.startswith("Failed in")), lines[0] if lines else "cannot be compiled"
    )
