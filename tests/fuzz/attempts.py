"""One attempt: a file gets damaged, a command reads it, and what must not happen is looked for.

A command may succeed, or refuse with one sentence that names the damaged file. It must not end in a traceback, unpickle
anything, or change what was there before.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from unittest import mock

from shoal.cli import main
from shoal.training.loop import Loop
from tests.fuzz.damage import Damage, Damaged

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Reader:
    """Good files, ways to damage each, and the command that reads them."""

    name: str
    prepare: Callable[[Path], None]
    """Puts good files into an empty folder."""
    damages: dict[str, Damage]
    """By file: how it gets damaged."""
    command: list[str]
    """What `shoal` is given, in that folder."""
    keeps: tuple[str, ...] = ()
    """Folders in which nothing may change, whatever happens."""
    also_named: tuple[str, ...] = ()
    """Words that a refusal may have in place of the damaged file's name."""


@dataclass
class Attempt:
    """What became of one damaged file."""

    reader: str
    file: str
    damaged: Damaged
    code: int | None
    said: str
    error: BaseException | None = None
    complaints: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.reader}: {self.file}: {self.damaged.how[:200]}: {'; '.join(self.complaints)}"


class _Reached(BaseException):
    """Training would begin: whatever had to be read was read."""


class _TooLong(BaseException):
    """The limit of time is over."""


@dataclass(frozen=True)
class Depth:
    """How far a command may go when nothing is wrong."""

    iterations: int = 0
    """Iterations of training."""
    seconds: int = 0
    """After which it is left alone, which is no complaint; 0 waits."""


def attempt(reader: Reader, folder: Path, rng: Random, depth: Depth = Depth()) -> Attempt:  # noqa: B008 — frozen
    """Damage one file in a fresh copy of the reader's folder, and let the command read it."""
    reader.prepare(folder)
    name = rng.choice(sorted(reader.damages))
    damaged = reader.damages[name]((folder / name).read_bytes(), rng)
    (folder / name).write_bytes(damaged.content)
    _sign_again(folder / name)
    before = _digest(folder, reader.keeps)
    result = Attempt(reader.name, name, damaged, None, "")
    out, err = io.StringIO(), io.StringIO()
    with (
        _inside(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        _limited(depth),
        _watched() as seen,
    ):
        try:
            result.code = main(list(reader.command))
        except (_Reached, _TooLong):
            result.code = 0
        except BaseException as error:
            result.error = error
            result.complaints.append(f"{type(error).__name__}: {error}"[:300])
    result.said = err.getvalue()
    result.complaints += [f"{event} was called" for event in seen]
    result.complaints += _complaints(result, reader, out.getvalue())
    if result.code != 0 and before != _digest(folder, reader.keeps):
        result.complaints.append("what was there before has changed")
    return result


_OF_THIS_TEST = "Exception ignored in audit hook:\nTraceback"
"""Deep recursion leaves no room for `_hear` below."""


def _complaints(result: Attempt, reader: Reader, out: str) -> list[str]:
    complaints = []
    if "Traceback" in (result.said + out).replace(_OF_THIS_TEST, ""):
        complaints.append(f"a traceback was printed: {result.said[-300:]}")
    if result.code not in (0, None):
        sentence = result.said.strip().splitlines()[-1] if result.said.strip() else ""
        if not sentence.startswith("shoal: ") or len(sentence) < 20:
            complaints.append(f"code {result.code} without a sentence: {result.said!r}")
        elif not any(name in sentence for name in (Path(result.file).name, *reader.also_named, _IN_TRAINING)):
            complaints.append(f"the sentence does not name the file: {sentence[:300]}")
        elif len(sentence) > 4_000:
            complaints.append(f"the sentence has {len(sentence)} characters: {sentence[:100]}")
    return complaints


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    path = list(sys.path)
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            sys.path[:] = path


@contextlib.contextmanager
def _limited(depth: Depth) -> Iterator[None]:
    """Training ends after some iterations, everything after some seconds."""
    report, done = Loop._report, 0

    def begin(loop: Loop) -> str:
        raise _Reached

    def counted(loop: Loop, metrics: dict[str, float]) -> None:
        nonlocal done
        report(loop, metrics)
        done += 1
        if done >= depth.iterations:
            loop.stop("enough")

    def stop(number: int, frame: object) -> None:
        raise _TooLong

    def cluster(*arguments: object) -> None:
        raise _Reached

    changed = (
        mock.patch.object(Loop, "_report", counted) if depth.iterations else mock.patch.object(Loop, "train", begin)
    )
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(depth.seconds)
    try:
        # waiting for the disk would take most of the time, and is not what is tested
        with changed, mock.patch("shoal.cluster.fleet.open_fleet", cluster), mock.patch("os.fsync"):
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


_IN_TRAINING = "The rollout began at step"  # what is met there has no file
_FORBIDDEN = ("pickle.find_class", "os.system", "os.exec", "os.posix_spawn")
_sink: list[str] | None = None


def _is_numbas(frame: FrameType | None) -> bool:
    """Whether Numba reads its own cache."""
    while frame is not None:
        if f"{os.sep}numba{os.sep}" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def _hear(event: str, arguments: object) -> None:
    if _sink is not None and event in _FORBIDDEN and not _is_numbas(sys._getframe()):
        _sink.append(f"{event}{arguments!r:.100}")


@contextlib.contextmanager
def _watched() -> Iterator[list[str]]:
    """Calls that execute what somebody else wrote."""
    global _sink
    if not getattr(_hear, "added", False):
        sys.addaudithook(_hear)  # there is no way to take one out again
        _hear.added = True  # type: ignore[attr-defined]
    _sink = []
    try:
        yield _sink
    finally:
        _sink = None


def _digest(folder: Path, names: tuple[str, ...]) -> dict[str, str]:
    """What the files in some folders hold; what only says that somebody is at work counts for nothing."""
    files = [path for name in names for path in sorted((folder / name).rglob("*")) if path.is_file()]
    ignored = (".lock", "report.html", "play.html")
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.name not in ignored}


def _sign_again(path: Path) -> None:
    """Let a checkpoint's meta.json carry the digest of its damaged arrays, so that they get read."""
    if path.name not in ("arrays.safetensors", "environments.safetensors"):
        return
    meta = path.with_name("meta.json")
    header = json.loads(meta.read_text())
    about = header if path.name == "arrays.safetensors" else header["environments"]
    about["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    meta.write_text(json.dumps(header))
