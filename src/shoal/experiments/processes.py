"""Processes that train runs side by side: how many there are, what each may use, and what becomes of their runs.

A process stays for many runs, so Python, torch and compiled code are loaded once. Each has its share of the processors
for all that it does: threads of torch and of kernels, and worker processes. None of these changes a run's numbers. The
first run says how much memory it needs, and only as many go on beside it as fit into what is free.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError
from shoal.options import Values
from shoal.platform import CORES, free_memory, num_cores
from shoal.training.interrupt import INTERRUPTED

SHARE_OF_MEMORY = 0.8  # of what is free, for all processes together
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", CORES)
ENDING_S = 30.0
NOT_BEGUN = {"reason": INTERRUPTED, "steps": 0, "total_steps": 0, "score": None, "seconds": 0.0}
"""What is told of a run that was stopped before its first iteration."""


@dataclass(frozen=True)
class Job:
    """A run to train."""

    name: str
    request: Values
    """What `child.train_seed` takes."""


@dataclass(frozen=True)
class Event:
    """Something that happened to a job. A `failed` or `ended` one is its last."""

    job: Job
    kind: str
    """began, row, ended or failed."""
    content: Any = None


def job(name: str, config: Values, run: Path, resume: bool, **more: Any) -> Job:
    """The job that trains `config` in the folder `run`; `more` are `track` and `trust`."""
    request = {"config": config, "runs_dir": str(run.parent), "run_name": run.name, "resume": resume}
    return Job(name, {"track": None, "trust": False, **request, **more, "argv": sys.argv})


def choose_processes(wanted: int | None, runs: int, runners: int = 0) -> int:
    """How many runs are trained at once: one per processor, unless it was said or each has runners of its own."""
    if wanted is not None and wanted < 1:
        raise ConfigError(f"processes must be at least 1, not {wanted}.")
    return max(1, min(runs, wanted or (1 if runners else num_cores())))


class Crew:
    """Processes that train what `work` is given. Enter it to start them, leave it to end them."""

    def __init__(self, processes: int, logs: Path) -> None:
        self.stopping = False
        self._logs = logs
        self._cpus = max(1, num_cores() // processes)
        self._free = free_memory()
        self._needs = 0
        self._most = processes
        self._trainers = [Trainer(logs / f"process_{number}.log", self._cpus) for number in range(processes)]

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *exception: object) -> None:
        for trainer in self._trainers:
            trainer.close(kill=exception[0] is not None)

    @property
    def at_once(self) -> int:
        """Runs that may be trained at once, by what is known of their memory."""
        if not self._needs or self._free is None:
            return self._most
        return max(1, min(self._most, int(SHARE_OF_MEMORY * self._free // self._needs)))

    def work(self, next_job: Callable[[], Job | None]) -> Iterator[Event]:
        """Train what `next_job` gives until it gives None and all has ended. It is asked when a process is free."""
        while True:
            for trainer in self._idle():
                given = None if self.stopping else next_job()
                if given is None:
                    break
                trainer.begin(given)
                yield Event(given, "began")
            busy = [trainer for trainer in self._trainers if trainer.job is not None]
            if not busy:
                return
            for trainer in _ready(busy):
                yield from self._events(trainer)

    def stop(self) -> None:
        """End all runs after their iteration, with a checkpoint, and begin no more. A signal's handler may call it."""
        self.stopping = True
        for trainer in self._trainers:
            trainer.interrupt()

    def interrupt(self, job: Job) -> None:
        """End one run after its iteration."""
        for trainer in self._trainers:
            if trainer.job is job:
                trainer.interrupt()

    def _idle(self) -> list[Trainer]:
        busy = sum(trainer.job is not None for trainer in self._trainers)
        room = (1 if not self._needs else self.at_once) - busy
        return [trainer for trainer in self._trainers if trainer.job is None][: max(0, room)]

    def _events(self, trainer: Trainer) -> Iterator[Event]:
        job = trainer.job
        assert job is not None
        answers = trainer.answers()
        if answers is None:
            why = trainer.death()
            self._trainers[self._trainers.index(trainer)] = Trainer(trainer.log, self._cpus)
            self._needs = self._needs or 1  # the first one will not tell any more
            if self.stopping and why == signal.SIGINT.name:  # it was told to stop before it could listen
                yield Event(job, "ended", NOT_BEGUN)
            else:
                yield Event(job, "failed", f"its process ended with {why}")
            return
        for answer in answers:
            ((kind, content),) = answer.items()
            if kind == "needs":
                self._needs = max(self._needs, content)
                continue
            if kind in ("ended", "failed"):
                trainer.job = None
            yield Event(job, kind, content)


class Trainer:
    """One process and the job that it is at."""

    def __init__(self, log: Path, cpus: int) -> None:
        self.log = log
        self.job: Job | None = None
        self._part = b""
        requests, self._requests = os.pipe()
        self.pipe, answers = os.pipe()
        path = os.pathsep.join(dict.fromkeys(entry for entry in sys.path if entry))
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "shoal.experiments.child", str(requests), str(answers)],
                pass_fds=(requests, answers),
                env={**os.environ, **_threads(cpus), "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for the parent, who passes it on
            )
        os.close(requests)
        os.close(answers)

    def begin(self, job: Job) -> None:
        """Have a run trained."""
        self.job = job
        self._write(job.request)

    def interrupt(self) -> None:
        """End the run after its iteration; a second time, at once."""
        if self.job is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def answers(self) -> list[Values] | None:
        """What it has said since; None if it is dead. Waits if there is nothing."""
        part = os.read(self.pipe, 1 << 16)
        if not part:
            return None
        *lines, self._part = (self._part + part).split(b"\n")
        return [json.loads(line) for line in lines]

    def death(self) -> str:
        """How the process ended, in words."""
        code = self._process.wait()
        self._close_pipes()
        if code < 0:
            name = signal.Signals(-code).name
            return name + (", perhaps because memory ran out" if name == "SIGKILL" else "")
        return f"exit code {code}; {self.log} says why"

    def close(self, kill: bool) -> None:
        """End the process, which is idle; or kill it."""
        if kill:
            self._process.kill()
        else:
            self._write({"end": True})
        try:
            self._process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close_pipes()
        if self.log.exists() and not self.log.stat().st_size:
            self.log.unlink()

    def _write(self, request: Values) -> None:
        with contextlib.suppress(BrokenPipeError):  # it is dead, which reading from it will tell
            os.write(self._requests, json.dumps(request).encode() + b"\n")

    def _close_pipes(self) -> None:
        os.close(self._requests)
        os.close(self.pipe)


def _threads(cpus: int) -> dict[str, str]:
    """Variables that hold libraries to so many threads, or to fewer where somebody has said so."""
    given = {name: os.environ.get(name, "") for name in THREAD_VARIABLES}
    return {name: str(min(cpus, int(text)) if text.isdigit() else cpus) for name, text in given.items()}


def _ready(trainers: list[Trainer], seconds: float = 0.5) -> list[Trainer]:
    """Those that have something to say, after waiting for a moment."""
    with selectors.DefaultSelector() as selector:
        for trainer in trainers:
            selector.register(trainer.pipe, selectors.EVENT_READ, trainer)
        return [key.data for key, _ in selector.select(seconds)]
