"""Processes that train runs side by side: how many there are, what each may use, and what becomes of their runs.

A process stays for many runs, so Python, torch and compiled code are loaded once. Each has its share of the processors
for all that it does: threads of torch and of kernels, and worker processes. None of these changes a run's numbers. The
first run says how much memory it needs, and only as many go on beside it as fit into what is free.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError
from shoal.options import Values
from shoal.platform import CORES, free_memory, num_cores, out_of_reach

SHARE_OF_MEMORY = 0.8  # of what is free, for all processes together
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", CORES)
ENDING_S = 30.0


@dataclass(frozen=True)
class Job:
    """A run to train."""

    name: str
    request: Values
    """What `child.train_seed` takes."""


@dataclass(frozen=True)
class Event:
    """Something that happened to a job. An `ended`, `failed` or `died` one is its last."""

    job: Job
    kind: str
    """began, row, ended, failed, or died: its process is gone, which need not be its own fault."""
    content: Any = None


Said = queue.SimpleQueue[tuple["Trainer", Values | None]]
"""What processes have said: who, and an answer, or None for a process that is gone."""


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
        self._said: Said = queue.SimpleQueue()
        logs_of = (logs / f"process_{number}.log" for number in range(processes))
        self._trainers = [Trainer(log, self._cpus, self._said) for log in logs_of]

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
            with contextlib.suppress(queue.Empty):  # waiting without end would hold up Ctrl-C on Windows
                yield from self._events(*self._said.get(timeout=0.5))

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

    def _events(self, trainer: Trainer, answer: Values | None) -> Iterator[Event]:
        job = trainer.job
        if job is None:  # it died while it had nothing to do, which the next job will meet
            return
        if answer is None:
            trainer.job = None
            why = f"its process ended with {trainer.death()}"
            self._trainers[self._trainers.index(trainer)] = Trainer(trainer.log, self._cpus, self._said)
            self._needs = self._needs or 1  # the first one will not tell any more
            yield Event(job, "died", why)
            return
        ((kind, content),) = answer.items()
        if kind == "needs":
            self._needs = max(self._needs, content)
            return
        if kind in ("ended", "failed"):
            trainer.job = None
        yield Event(job, kind, content)


class Trainer:
    """One process and the job that it is at. It puts what it says into `said`, and None when it is gone."""

    def __init__(self, log: Path, cpus: int, said: Said) -> None:
        self.log, self._said = log, said
        self.job: Job | None = None
        self._numbers, self._number = itertools.count(), -1
        path = os.pathsep.join(dict.fromkeys(entry for entry in sys.path if entry))
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "shoal.experiments.child"],
                env={**os.environ, **_threads(cpus), "PYTHONPATH": path},
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                **out_of_reach(),  # Ctrl-C is for the parent, who passes it on
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with open(self._process.stdout.fileno(), closefd=False) as answers:
            for line in answers:
                self._said.put((self, json.loads(line)))
        self._said.put((self, None))

    def begin(self, job: Job) -> None:
        """Have a run trained."""
        self.job, self._number = job, next(self._numbers)
        self._write({**job.request, "number": self._number})
        if not self._listener.is_alive():
            self._said.put((self, None))

    def interrupt(self) -> None:
        """End the run after its iteration; a second time, as soon as Python runs."""
        if self.job is not None and self._process.poll() is None:
            self._write({"interrupt": self._number})

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
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it is dead, which reading from it will tell
            self._process.stdin.write(json.dumps(request).encode() + b"\n")

    def _close_pipes(self) -> None:
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def _threads(cpus: int) -> dict[str, str]:
    """Variables that hold libraries to this many threads, or to fewer where somebody has said so."""
    given = {name: os.environ.get(name, "") for name in THREAD_VARIABLES}
    return {name: str(min(cpus, int(text)) if text.isdigit() else cpus) for name, text in given.items()}
