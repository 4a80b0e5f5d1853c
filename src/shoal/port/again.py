"""The proof goes on while a compiled class is used: now and then another process replays it with new seeds.

Rare branches may be reached then that the first proof did not. The process runs at the lowest priority and shares
nothing with the run; a difference that it finds is raised by the next step, which stops the run. What was saved stays.

`python -m shoal.port.again` is that process: it reads what to prove from its input.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from typing import IO, Any

import cloudpickle

from shoal.port.module import digest
from shoal.port.ported import Ported
from shoal.port.proof import prove
from shoal.port.refusal import PortError
from shoal.port.watch import watch
from shoal.port.writer import translate
from shoal.vector.kernel import KernelBatch
from shoal.vector.lanes.making import EnvMaker

FIRST_S, EVERY_S = 60.0, 600.0
"""How long a batch is used before the first further proof, and between two of them."""
LOOK_EVERY = 256
"""Steps of a batch between two looks at the clock."""
DIFFERS = 3


@dataclass(frozen=True)
class Task:
    """What is to be proven once more, from which seed on."""

    maker: EnvMaker
    ported: Ported
    first_seed: int
    steps: int | None = None


class Further:
    """Further proofs, one at a time, as long as a batch is stepped."""

    def __init__(self, task: Task) -> None:
        self._task, self._steps = task, 0
        self._next = time.monotonic() + FIRST_S
        self._process: subprocess.Popen[bytes] | None = None

    def look(self) -> None:
        """Count a step; now and then begin a proof, or raise what one has found."""
        self._steps += 1
        if self._steps % LOOK_EVERY:
            return
        if self._process is not None and self._process.poll() is not None:
            self._end(self._process)
        if self._process is None and time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY_S
            self._process = begin(self._task)
            self._task = replace(self._task, first_seed=self._task.first_seed + 1_000_000)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        self._process = None
        said = process.stdout.read().decode() if process.stdout is not None else ""
        if process.returncode == DIFFERS:
            raise PortError(f"A further proof has found a difference. {said.strip()} What was saved so far is kept.")

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class PortedBatch(KernelBatch):
    """Lanes of a compiled class, which is proven further while they are stepped."""

    further: Further | None = None

    def step_into(self, action: Any, out: Any) -> Any:
        if self.further is not None:
            self.further.look()
        return super().step_into(action, out)

    def close_extras(self, **kwargs: object) -> None:
        if self.further is not None:
            self.further.close()
        super().close_extras(**kwargs)


def begin(task: Task) -> subprocess.Popen[bytes] | None:
    """A process that proves; None where the environment cannot be handed to one."""
    try:
        message = cloudpickle.dumps(task)
    except Exception:  # whatever somebody's class says to being pickled
        return None
    command = [sys.executable, "-m", "shoal.port.again"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.write(message)
    process.stdin.close()
    return process


def prove_again(message: IO[bytes]) -> int:
    """Prove what the message asks for; `DIFFERS` and a sentence on stdout if it is not true."""
    task: Task = pickle.load(message)
    source = translate(watch(task.maker()), task.ported.name, task.ported.room)
    if not task.ported.path.stem.endswith(digest(source.text, source.tables)):
        return 0  # the class was changed since; what runs is the old one
    try:
        prove(task.maker, task.ported.kernel(), source, task.ported.tolerance, task.steps, first_seed=task.first_seed)
    except PortError as error:
        print(error)
        return DIFFERS
    return 0


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(19)
    sys.exit(prove_again(sys.stdin.buffer))
