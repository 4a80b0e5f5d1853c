"""From an environment to a proven kernel: watch, translate, compile, prove; and what was proven is kept.

What is kept is known by a digest of the class, its constants and our own source; it counts as long as every file that
the translation read is unchanged.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import gymnasium as gym
import numpy as np

from shoal.errors import KernelWarning
from shoal.jit.digest import digest_of
from shoal.port.constants import fingerprint_now
from shoal.port.joining import describe
from shoal.port.known import keep_factor
from shoal.port.lanes import PortedKernel
from shoal.port.layouts import ConstL, OpaqueL, RngL, same
from shoal.port.module import digest, load_kernel, port_folder, write_module
from shoal.port.proof import LANES, Proof, prove
from shoal.port.refusal import Outgrown
from shoal.port.values import attributes_of, is_helper
from shoal.port.variants import VarL
from shoal.port.watch import apart, unwrap, watch
from shoal.port.writer import Source, translate
from shoal.vector.kernel import KernelBatch
from shoal.vector.lanes.making import EnvMaker

MEASURED_LANES = 1024
ROOMS = (1, 8, 64)
"""How many times more items than is likely lists are given, one after the other, until they fit."""


@dataclass(frozen=True)
class Ported:
    """A proven kernel, and what is known about it."""

    name: str
    path: Path
    """The module of the kernel."""
    proof: Proof
    notes: list[str]
    inexact: list[str]
    reached: list[str]
    attributes: dict[str, str]
    """What became of every attribute, in words."""
    factor: float
    """Steps per CPU-second of 1,024 compiled lanes against those of the original in a loop."""
    tolerance: float
    seconds: float
    """What watching, translating, compiling and proving took."""
    room: int = 1
    """How many times longer than is likely lists may grow."""

    def kernel(self) -> type[PortedKernel]:
        """The kernel's class."""
        return load_kernel(self.path, self.name)


def port(
    make: Callable[[], gym.Env], tolerance: float = 0.0, announce: bool = True, steps: int | None = None
) -> Ported:
    """The kernel of an environment: the one that was proven before, over as many `steps` at least, or a new one.

    `PortError` if it cannot be translated or differs from the original by more than `tolerance` (relative, beyond the
    last digits that depend on the machine).
    """
    env = make()
    key = key_of(make, tolerance)
    known = recall(key)
    if known is not None and known.proof.steps >= (steps or 0):
        return known
    start, cpu = time.perf_counter(), time.process_time()
    name = re.sub(r"\W", "", type(env.unwrapped).__name__) or "Environment"
    say = _say if announce else _quiet
    say(f"compiling {name} from its class, once: watching")
    watched = watch(env)
    say(", translating, compiling and proving\n")
    for room in ROOMS:
        source = translate(watched, name, room)
        path = port_folder() / f"{name}_{digest(source.text, source.tables)}.py"
        write_module(source, path)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", KernelWarning)  # what looks like a mistake is the original's own way
                lane_steps = None if steps is None else -(-steps // LANES)
                proof = prove(make, load_kernel(path, name), source, tolerance, lane_steps)
            break
        except Outgrown:
            if room == ROOMS[-1]:
                raise
            say(f"{name} keeps longer lists than was likely: once more with more room\n")
    factor = measured_factor(make, load_kernel(path, name))
    last = (
        f", largest difference {proof.ulps:.0f} units in the last place of {proof.where}"
        if proof.where
        else ", bit for bit"
    )
    say(f"{name}: {proof.steps:,} steps of {proof.episodes:,} episodes equal the original's{last} ")
    say(f"({time.perf_counter() - start:.1f} s, {time.process_time() - cpu:.1f} s of CPU)\n")
    made = Ported(
        name, path, proof, source.notes, source.inexact, source.reached, attribute_words(source), factor, tolerance,
        time.process_time() - cpu, room,
    )  # fmt: skip
    remember(key, made, source)
    if isinstance(make, EnvMaker):
        keep_factor(make.source, make.kwargs, factor)
    return made


def _say(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)


def _quiet(text: str) -> None:
    pass


def attribute_words(source: Source) -> dict[str, str]:
    """`constant 9.8`, `state: an array of float64 of shape (4,)`, `ignored: ...` for every attribute."""
    words: dict[str, str] = {}
    for name, layout in source.layout.attributes.items():
        if isinstance(layout, ConstL):
            words[name] = f"constant {describe(layout)}"
        elif isinstance(layout, RngL):
            words[name] = "random numbers: NumPy's PCG64 in every lane"
        elif isinstance(layout, OpaqueL):
            words[name] = f"ignored: {layout.why}"
        elif isinstance(layout, VarL):
            words[name] = f"state: {' or '.join(map(describe, layout.options))}"
        else:
            words[name] = f"state: {describe(layout)}"
    return words


def measured_factor(make: Callable[[], gym.Env], kernel: type[PortedKernel]) -> float:
    """How many times more steps per CPU-second compiled lanes make than the original in a loop."""
    env = make()
    env.action_space.seed(0)
    env.reset(seed=0)
    actions = [env.action_space.sample() for _ in range(64)]
    start, count = time.process_time(), 0
    while count < 2000 and time.process_time() - start < 0.3:
        _, _, terminated, truncated, _ = env.step(actions[count % 64])
        if terminated or truncated:
            env.reset()
        count += 1
    original = count / max(time.process_time() - start, 1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWarning)
        batch = KernelBatch(kernel, MEASURED_LANES, num_threads=1, copy=False)
    batch.reset(seed=0)
    batch.action_space.seed(0)
    rows = [batch.action_space.sample() for _ in range(8)]
    batch.step(rows[0])
    start, count = time.process_time(), 0
    while count < 400 and time.process_time() - start < 0.3:
        batch.step(rows[count % 8])
        count += 1
    compiled = count * MEASURED_LANES / max(time.process_time() - start, 1e-9)
    batch.close()
    return compiled / original


# ---------------------------------------------------------------------- what is kept


def key_of(make: Callable[[], gym.Env], tolerance: float) -> str:
    """A digest of the class, its arguments and constants, our own source and the machine with its C library.

    What episodes begin with is no constant: it may have been drawn at random when the environment was made.
    """
    base, limit = unwrap(make())
    cls = type(base)
    sha = hashlib.sha256(f"{cls.__module__} {cls.__qualname__} {limit} {tolerance} {np.__version__}".encode())
    sha.update(repr(sorted(make.kwargs.items())).encode() if isinstance(make, EnvMaker) else b"")
    sha.update(digest_of().encode())
    _feed(sha, _kept(base), _beginnings(make()), 0)
    for file in sorted(Path(__file__).parent.glob("*.py")):
        sha.update(file.read_bytes())
    return sha.hexdigest()[:20]


def _kept(base: gym.Env) -> dict[str, object]:
    return {name: value for name, value in vars(base).items() if "np_random" not in name}


def _beginnings(env: gym.Env) -> list[object]:
    """The attributes at the beginning of some episodes."""
    found: list[object] = []
    for seed in range(8):
        try:
            env.reset(seed=seed)
        except Exception:  # told when it is watched
            break
        found.append(apart(_kept(env.unwrapped)))
    return found


def _feed(sha: hashlib._Hash, x: object, others: list[object], depth: int) -> None:
    """Everything about `x` that a translation could fold into code: what `others` have too."""
    sha.update(type(x).__name__.encode())
    if depth > 8 or any(type(y) is not type(x) for y in others):
        return
    if isinstance(x, np.ndarray | str | bytes | int | float | bool | np.generic | set | frozenset | gym.Space | None):
        if all(same(x, y) for y in others):
            plain = x.tolist() if isinstance(x, np.ndarray) else sorted(x) if isinstance(x, set | frozenset) else x
            sha.update(f"{getattr(x, 'dtype', '')} {getattr(x, 'shape', '')} {plain!r}".encode())
    elif isinstance(x, dict):
        for key in x:
            sha.update(repr(key).encode())
            _feed(sha, x[key], [y.get(key) for y in others if isinstance(y, dict)], depth + 1)
    elif isinstance(x, list | tuple):
        for k, item in enumerate(x):
            _feed(sha, item, [y[k] for y in others if isinstance(y, list | tuple) and k < len(y)], depth + 1)
    elif is_helper(x):
        _feed(sha, attributes_of(x), [attributes_of(y) for y in others], depth + 1)


def _file_digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def remember(key: str, made: Ported, source: Source) -> None:
    """Keep what was proven, and what it was made from."""
    files = {file: _file_digest(file) for file in source.files}
    record = {**asdict(made), "path": str(made.path), "files": files, "constants": source.constants}
    (port_folder() / f"{key}.json").write_text(json.dumps(record, indent=1))


def recall(key: str) -> Ported | None:
    """What was proven before, if nothing that it was made from has changed."""
    path = port_folder() / f"{key}.json"
    try:
        record = json.loads(path.read_text())
        files, constants = record.pop("files"), record.pop("constants")
        if any(fingerprint_now(place) != known for place, known in constants.items()):
            return None
        if any(_file_digest(file) != known for file, known in files.items()) or not Path(record["path"]).exists():
            return None
        return Ported(**{**record, "path": Path(record["path"]), "proof": Proof(**record["proof"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None
