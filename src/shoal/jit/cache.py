"""Compiled code on disk: one folder for kernels, learners and whatever else is compiled.

Numba's own cache neither hits for a function that closes over other compiled functions nor notices that one of them,
or a constant that they use, has changed. So the functions that Python calls are written to a module whose *name* is a
digest of everything that decides their meaning (`digest`); what they call stands in the module's namespace. Whatever
changes is another digest, hence another module; the same digest finds Numba's cache beside it.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import os
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba.core.dispatcher import Dispatcher

from shoal.jit.digest import digest_of
from shoal.jit.folder import cache_dir, limit_bytes, mark_used, trim
from shoal.platform import lock, move_if_absent

if TYPE_CHECKING:
    from numba.core.compiler import CompileResult


Options = Mapping[str, Any]
"""Keyword arguments of `numba.njit`."""
_PATIENCE = 1.0  # seconds of compiling that nobody is told about, where it was not announced


class CachedModule:
    """Functions written in `text`, over what they call in `namespace`, whose machine code is kept on disk.

    In `text`, `@jit_cached` stands before each function that Python calls. It is compiled when `compile` asks for a
    signature, or when it is first called with arguments of new types.
    """

    def __init__(
        self, title: str, text: str, namespace: Mapping[str, object], options: Options, key: object = ()
    ) -> None:
        """`title` is what users are told is being compiled.

        `options` are Numba's, for the functions under `@jit_cached`; `key` is whatever else decides their meaning.
        """
        self.title = title.lower()
        self._stem = f"{self.title}_{digest_of(text, dict(sorted(namespace.items())), dict(options), key)}"
        folder = cache_dir()
        self._path, self._text = folder / f"{self._stem}.py", text
        _write_once(self._path, text)
        mark_used(self._path)
        self._held = threading.local()
        name = f"shoal_compiled_{self._stem}"
        loaded = sys.modules.get(name)
        if loaded is not None and loaded.__file__ == str(self._path):
            self.module = loaded
            return
        self.module = types.ModuleType(name)
        self.module.__file__ = str(self._path)
        vars(self.module).update(namespace, jit_cached=self._keep(options))
        exec(compile(text, str(self._path), "exec"), vars(self.module))
        # Numba pickles a reference to a function's module when it stores code, so it must be importable by name
        sys.modules[name] = self.module

    def is_known(self) -> bool:
        """Whether there is compiled code on disk."""
        return any(self._path.parent.glob(f"__pycache__/{self._stem}.*.nbi"))

    def compile(self, signatures: Mapping[str, tuple]) -> None:
        """Compile functions for Numba's types of their arguments, or load them from disk; say so if it takes long."""
        known = self.is_known()
        with _announced(self.title, after=None if known else 0.0):
            for function, signature in signatures.items():
                getattr(self.module, function).compile(signature)
        if not known:
            trim(self._path.parent, limit_bytes())

    def _keep(self, options: Options) -> Callable[[Callable], Dispatcher]:
        """The decorator `jit_cached`."""

        def decorate(function: Callable) -> Dispatcher:
            dispatcher: Any = numba.njit(cache=True, **options)(function)  # with more to it than its types say
            compile_or_load, compile_anew = dispatcher.compile, dispatcher._compiler.compile

            def compile_alone(signature: tuple) -> Callable:
                # two processes at once would write two signatures into one file of Numba's cache; waiting for the
                # other one to compile is compiling too
                _load_array_functions()
                with _counted(), self._locked(), _without_collecting():
                    return compile_or_load(signature)

            def compile_and_say(*arguments: object) -> CompileResult:
                with _announced(self.title, after=_PATIENCE), _counted():
                    return compile_anew(*arguments)

            dispatcher.compile, dispatcher._compiler.compile = compile_alone, compile_and_say
            return dispatcher

        return decorate

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if getattr(self._held, "now", False):  # one of its functions may call another
            yield
            return
        _write_once(self._path, self._text)  # in case that somebody has cleared the folder
        with open(self._path) as file:
            if not lock(file, wait=False):
                with _announced(self.title, after=_PATIENCE):
                    lock(file, wait=True)
            self._held.now = True
            try:
                yield
            finally:
                self._held.now = False


def _write_once(path: Path, text: str) -> None:
    """Write under a temporary name first: two processes that start at once do not meet a half-written file."""
    if not path.exists():
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        move_if_absent(Path(temporary), path)


@functools.cache
def _load_array_functions() -> None:
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


class _Compiling(threading.local):
    """What each thread has spent compiling, which is not part of what it was compiling for."""

    seconds = 0.0


compiling = _Compiling()
_announcing = threading.local()


@contextlib.contextmanager
def _counted() -> Iterator[None]:
    """Count the seconds of compiling; what is compiled on the way is part of it."""
    before, start = compiling.seconds, time.perf_counter()
    try:
        yield
    finally:
        compiling.seconds = before + time.perf_counter() - start


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    """Numba makes a million objects and keeps most of them: looking for garbage among them is a fifth of compiling."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextlib.contextmanager
def _announced(name: str, after: float | None) -> Iterator[None]:
    """Say that compiling takes a while, instead of looking hung: after this many seconds, or never (None).

    In whole lines: what catches the output of a program, as a live panel does, would break one that is begun and ended.
    """
    if after is None or getattr(_announcing, "now", False):
        yield
        return
    start, outcome = time.perf_counter(), f"compiling {name} failed"
    said = threading.Event()

    def say() -> None:
        said.set()
        print(f"compiling {name}, once", file=sys.stderr, flush=True)

    timer = threading.Timer(after, say)
    timer.daemon = True
    _announcing.now = True
    try:
        say() if after == 0.0 else timer.start()
        yield
        outcome = f"compiled {name} in {time.perf_counter() - start:.1f} s"
    finally:
        _announcing.now = False
        timer.cancel()
        if said.is_set():
            print(outcome, file=sys.stderr, flush=True)
