"""Which files of a package one training run goes through. `house.py` starts this in a process of its own.

    python walk.py PACKAGE_FOLDER start|iteration OUT.json ARGUMENTS OF THE COMMAND LINE...

`start` records from the arguments to the first `collect` of the loop; `iteration` one whole turn of the loop, from one
`collect` to the next, when a few turns have warmed everything up. The loop is known by its method `Loop.train` and its
attributes `collect`, `agent` and `batch`, not by the file it lives in.

Recorded is every file of the package of which a function ran. Module and class bodies do not count, nor does anything
that runs because a module is being imported. Machine code cannot be seen running, so for every Numba dispatcher that is
called the files of what it was compiled from are added: its own function and, through the names that the function uses,
other dispatchers, intrinsics and classes. Code that is generated stands in no file of the package and does not count;
the functions that it calls do.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

WARM_UP = 3  # turns of the loop before the one that is recorded
_HAS_FAST_LOCALS = 1  # code flag of functions, which module and class bodies lack
_IMPORT = ("<frozen importlib._bootstrap>", "_find_and_load")


class Finished(BaseException):
    """Raised through the run when everything is recorded."""


class _Same:
    """A thing that equals only itself, whatever it thinks of equality and hashing."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __hash__(self) -> int:
        return id(self.thing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.thing is self.thing


class Walk:
    """The files that run while `recording`."""

    def __init__(self, root: Path, mode: str) -> None:
        self.root, self.mode = str(root.resolve()) + os.sep, mode
        self.recording, self.stepping = mode == "start", False
        self.ran: set[str] = set()  # functions of these were seen running
        self.with_arrays: set[str] = set()  # and had arrays or tensors among their variables
        self.called: set[_Same] = set()  # dispatchers, and whatever else Python calls that is not Python
        self.called_in_step: set[_Same] = set()
        self.loop: Any = None
        self._collect: Any = None
        self._imports = threading.local()

    def profile(self, frame: FrameType, event: str, called: Any) -> None:
        """To be given to `sys.setprofile`."""
        code = frame.f_code
        if event == "c_call":  # perhaps the entry point of compiled code, called without its dispatcher
            self._note_call(called)
            return
        if (code.co_filename, code.co_name) == _IMPORT:
            change = {"call": 1, "return": -1}.get(event, 0)
            self._imports.depth = getattr(self._imports, "depth", 0) + change
            return
        if not code.co_filename.startswith(self.root) or not code.co_flags & _HAS_FAST_LOCALS:
            return
        if code.co_qualname == "Loop.train" and event == "call":
            self.loop = frame.f_locals["self"]
            self._watch_loop(self.loop)
        if not self.recording or getattr(self._imports, "depth", None):
            return
        file = self._name(code.co_filename)
        if event == "call":
            self.ran.add(file)
        elif event == "return" and file not in self.with_arrays and any(map(_is_array, frame.f_locals.values())):
            self.with_arrays.add(file)

    def _watch_loop(self, loop: Any) -> None:
        """Make the loop begin and end the recording at its calls of `collect`."""
        collect, step_into, turns = loop.collect, loop.batch.step_into, 0

        def watched_collect(*args: Any, **options: Any) -> Any:
            nonlocal turns
            turns += 1
            if self.mode == "start" or turns == WARM_UP + 2:
                self.recording = False
                raise Finished
            self.recording = turns == WARM_UP + 1
            return collect(*args, **options)

        def watched_step(*args: Any, **options: Any) -> Any:
            self.stepping = True
            try:
                return step_into(*args, **options)
            finally:
                self.stepping = False

        self._collect = collect
        loop.collect, loop.batch.step_into = watched_collect, watched_step

    def watch_compiled(self) -> None:
        """Notice calls of Numba's dispatchers from Python. (Set on the class: its C code gives no sign of a call.)"""
        try:
            dispatcher_class: Any = importlib.import_module("numba.core.dispatcher").Dispatcher
        except ImportError:
            return
        plain = dispatcher_class.__call__

        def call(dispatcher: Any, *args: Any, **options: Any) -> Any:
            self._note_call(dispatcher)
            return plain(dispatcher, *args, **options)

        dispatcher_class.__call__ = call

    def _note_call(self, called: Any) -> None:
        if self.recording:
            (self.called_in_step if self.stepping else self.called).add(_Same(called))

    def files(self) -> dict[str, list[str]]:
        """What was seen, as file names relative to the package."""
        compiled, in_step = self._compiled(self.called), self._compiled(self.called_in_step)
        return {
            "files": sorted(self.ran | compiled),
            "kernel": sorted(in_step - self.ran - compiled),
            "with_arrays": sorted(self.with_arrays | compiled),
            "agent": [self._name(_file_of(type(self.loop.agent)))],
            "collect": [self._name(_file_of(self._collect))],
        }

    def _compiled(self, calls: set[_Same]) -> set[str]:
        """Files from which the compiled code among `calls`, with all it reaches, was compiled."""
        owners = {id(code.entry_point): each for each in _dispatchers() for code in each.overloads.values()}
        waiting: list[Any] = [owners.get(id(call.thing), call.thing) for call in calls]
        seen, files = set[int](), set[str]()
        while waiting:
            thing = waiting.pop()
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            function = getattr(thing, "py_func", None)
            if function is not None:
                waiting += _values_used(function)
            files.add(_file_of(function or getattr(thing, "_defn", thing)))
        return {self._name(file) for file in files if file.startswith(self.root)}

    def _name(self, file: str) -> str:
        return file.removeprefix(self.root)


def _dispatchers() -> list[Any]:
    """Every dispatcher there is."""
    module = sys.modules.get("numba.core.dispatcher")
    return [] if module is None else [thing for thing in gc.get_objects() if isinstance(thing, module.Dispatcher)]


def _is_array(value: Any) -> bool:
    kind = type(value)  # asked of the class: while something is compiled, Numba's own values answer to names by raising
    return hasattr(kind, "shape") and hasattr(kind, "dtype")


def _values_used(function: FunctionType) -> Iterator[Any]:
    """Dispatchers, intrinsics and classes that the function's code names."""
    names = set(_names(function.__code__))
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    values = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}
    for name in names & values.keys():
        value = values[name]
        inside = [getattr(value, other, None) for other in names] if isinstance(value, ModuleType) else []
        for each in (value, *inside):
            if hasattr(each, "py_func") or hasattr(each, "_defn") or isinstance(each, type):
                yield each


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _file_of(thing: Any) -> str:
    """Where a function or class is defined."""
    if isinstance(thing, type):
        return str(getattr(sys.modules.get(thing.__module__), "__file__", None) or "")
    return getattr(getattr(thing, "__code__", None), "co_filename", "")


def main(root: Path, mode: str, out: Path, argv: list[str]) -> int:
    """Run the command line on `argv` and write down the walk."""
    walk = Walk(root, mode)
    walk.watch_compiled()
    command_line = importlib.import_module(f"{root.name}.cli")
    if Path(command_line.__file__ or "").resolve().parent.parent != root.resolve():
        raise SystemExit(f"{root.name} was imported from {command_line.__file__} instead of from {root}.")
    threading.setprofile(walk.profile)
    sys.setprofile(walk.profile)
    try:
        return command_line.main(argv) or 1  # a run that ends by itself never came to the point
    except Finished:
        return 0
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        if walk.loop is not None:
            out.write_text(json.dumps(walk.files()))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4:]))
