"""All workers of a batch: wait for whoever answers, notice who died or hangs, put another in their place."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError, LaneFault
from shoal.vector.lanes.faults import Fault, FaultKind
from shoal.vector.lanes.making import EnvMaker, Traits
from shoal.vector.workers.link import Worker, describe_lanes
from shoal.vector.workers.memory import Shared
from shoal.vector.workers.process import Assignment
from shoal.vector.workers.protocol import DONE, FAILED, Hangup, linger, make_watch

_BEFORE = "before its lanes were made"


class Reply(NamedTuple):
    """A worker answered: it finished `lane` (None: all it was asked for), sent a result, or could not do it."""

    worker: int
    lane: int | None = None
    result: Any = None
    error: Exception | None = None


class Loss(NamedTuple):
    """A worker died, or hung and was killed."""

    worker: int
    lane: int | None  # the lane it was working on, if any
    reason: str
    kinds: dict[int, FaultKind]  # of every lane it had

    @property
    def faults(self) -> list[Fault]:
        """One fault for each lane that was lost."""
        return [Fault(lane, kind, self.reason) for lane, kind in self.kinds.items()]


class Crew:
    """The worker processes behind a batch.

    Args:
        make: makes one environment.
        context: "forkserver", "fork" or "spawn".
        restart: workers replace lanes that fault.
        step_timeout: seconds a lane may take for one step or reset; None for ever.
    """

    shared: Shared
    traits: Traits

    def __init__(
        self,
        make: EnvMaker,
        num_envs: int,
        num_workers: int,
        *,
        context: str,
        autoreset_mode: AutoresetMode,
        restart: bool,
        step_timeout: float | None,
    ) -> None:
        self._make, self._context = make, context
        self._pickled = None if context == "fork" else _pickle(make, context)
        self._num_envs, self._num_workers = num_envs, num_workers
        self._mode, self._restart = autoreset_mode, restart
        self._step_timeout = step_timeout
        self._watch = make_watch()
        # looking four times as often as a lane may take bounds how late a hang is noticed by a quarter
        self._poll_ms = None if step_timeout is None else max(1, int(step_timeout * 250))
        self._lane_seen: list[int | None] = [None] * num_workers
        self._seen_at = [0.0] * num_workers
        self._plain_replies = [Reply(index) for index in range(num_workers)]
        self.workers: list[Worker] = []
        try:
            self._start_all()
        except BaseException:
            self.close(kill=True)
            raise

    # ------------------------------------------------------------------ start and end

    def _start_all(self) -> None:
        for index in range(self._num_workers):
            self.workers.append(self._hire(index))
        self.workers[0].hand_over(None, None)
        self.traits = self._await(0, _BEFORE)
        self.shared = Shared(self.traits, self._num_envs, self._num_workers)
        self.shared.current[:] = -1
        for worker in self.workers:
            worker.hand_over(self.traits if worker is not self.workers[0] else None, self.shared.block)
        for index in range(self._num_workers):
            self._await(index, _BEFORE)

    def _hire(self, worker: int) -> Worker:
        bounds = np.linspace(0, self._num_envs, self._num_workers + 1).astype(int)
        siblings = tuple(w.conn.fileno() for w in self.workers) if self._context == "fork" else ()
        assignment = Assignment(
            worker=worker,
            num_workers=self._num_workers,
            num_envs=self._num_envs,
            first_lane=int(bounds[worker]),
            stop_lane=int(bounds[worker + 1]),
            autoreset_mode=self._mode,
            restart=self._restart,
            parent_pid=os.getpid(),
            inherited_fds=siblings,
        )
        hired = Worker(self._context, assignment, self._make, self._pickled)
        self._watch.add(worker, hired.channel, hired.process.pid, hired.process.sentinel)
        return hired

    def _await(self, index: int, moment: str, timeout: float | None = None) -> Any:
        """The result of this one worker, which must not fail now."""
        worker = self.workers[index]
        alone = make_watch()
        alone.add(index, worker.channel, worker.process.pid, worker.process.sentinel)
        came_back = alone.wait(None if timeout is None else int(timeout * 1000))
        alone.remove(index)
        if not came_back:
            raise LaneFault(
                f"Worker {index} ({describe_lanes(worker.lanes)}) did not come back within {timeout} s {moment}."
            )
        try:
            reply = self._read(index)
        except Hangup:
            raise LaneFault(f"{worker.obituary()} {moment}. What it printed before says why.") from None
        if reply.error is not None:
            raise reply.error
        return reply.result

    def replace(self, index: int, call: str, *arguments: Any) -> Any:
        """A new worker takes the place of a lost one and at once makes `call`; returns its result."""
        self._dismiss(self.workers.pop(index))  # popped first: a forked worker must not close what is closed already
        self.workers.insert(index, self._hire(index))
        self.workers[index].hand_over(self.traits, self.shared.block)
        self._await(index, "while its lanes were made again")
        self.shared.current[index] = -1
        self.workers[index].call(call, *arguments)
        patience = None if self._step_timeout is None else self._step_timeout * len(self.workers[index].lanes)
        return self._await(index, "while its lanes began again after a fault", patience)

    def _dismiss(self, worker: Worker, kill: bool = True) -> None:
        self._watch.remove(worker.assignment.worker)
        worker.close(kill)

    def close(self, kill: bool) -> None:
        """End all workers and let go of the shared memory."""
        if not kill:
            for worker in self.workers:
                worker.ask_to_close()  # all at once, then wait for each
        while self.workers:
            self._dismiss(self.workers.pop(), kill)
        if hasattr(self, "shared"):
            self.shared.block.close()
            del self.shared

    # ------------------------------------------------------------------ talk

    def tell(self, index: int, words: Sequence[int]) -> None:
        """Send words to a worker. If it is dead, `wait` will say so."""
        self._expect(index)
        with contextlib.suppress(Hangup):
            self.workers[index].channel.write_words(words)

    def call(self, index: int, name: str, *arguments: Any) -> None:
        """Have a worker call one of its methods. If it is dead, `wait` will say so."""
        self._expect(index)
        with contextlib.suppress(Hangup, OSError):
            self.workers[index].call(name, *arguments)

    def wait(self, waiting: set[int]) -> list[Reply | Loss]:
        """What happened next: replies of the workers in `waiting`, or the loss of any. Sleeps until something does."""
        while True:
            # while a worker has nothing to do there is a core to wait on
            events = linger(lambda: self._watch.wait(0)) if len(waiting) < self._num_workers else []
            events = events or self._watch.wait(self._poll_ms)
            if not events:
                lost = [self._lose(index, hung=True) for index in waiting if self._is_stuck(index)]
                if lost:
                    return list(lost)
                continue
            replies: list[Reply | Loss] = []
            dead = []
            for index, speaks in events:
                try:
                    if speaks:
                        replies.append(self._read(index))
                    else:
                        dead.append(index)
                except Hangup:
                    dead.append(index)
            if not dead:
                return replies
            # whoever died may have answered before, and is mourned at the next call then
            heard = {reply.worker for reply in replies}
            return replies + [self._lose(index) for index in dict.fromkeys(dead) if index not in heard]

    def _read(self, index: int) -> Reply:
        worker = self.workers[index]
        word = worker.channel.read_word()
        self._expect(index)
        if word == DONE:
            return self._plain_replies[index]
        if word >= 0:
            return Reply(index, lane=word)
        try:
            result = worker.conn.recv()
        except EOFError:
            raise Hangup from None
        return Reply(index, error=result) if word == FAILED else Reply(index, result=result)

    # ------------------------------------------------------------------ losses

    def _expect(self, index: int) -> None:
        """The worker has shown signs of life, or has just been asked for some."""
        if self._step_timeout is not None:
            self._lane_seen[index], self._seen_at[index] = None, time.monotonic()

    def _is_stuck(self, index: int) -> bool:
        """Whether the worker has been at the same lane for `step_timeout`."""
        assert self._step_timeout is not None
        lane, now = int(self.shared.current[index, 0]), time.monotonic()
        if self._lane_seen[index] is None:
            self._lane_seen[index] = lane
        elif lane != self._lane_seen[index]:
            self._lane_seen[index], self._seen_at[index] = lane, now
        return now - self._seen_at[index] >= self._step_timeout

    def _lose(self, index: int, hung: bool = False) -> Loss:
        worker, lane = self.workers[index], int(self.shared.current[index, 0])
        if hung:
            worker.process.kill()
            reason = f"Lane {lane} did not come back from step() or reset() within step_timeout={self._step_timeout} s"
        else:
            at_work = f" while lane {lane} was at work" if lane >= 0 else ""
            reason = f"{worker.obituary()}{at_work}"
        kinds = {k: FaultKind.HUNG if hung and k == lane else FaultKind.LOST for k in worker.lanes}
        shared_fate = f"; it is the worker of {describe_lanes(worker.lanes)}" if hung else ""
        return Loss(index, lane if lane >= 0 else None, f"{reason}{shared_fate}.", kinds)


def _pickle(make: EnvMaker, context: str) -> bytes:
    try:
        return cloudpickle.dumps(make)
    except Exception as error:
        raise ConfigError(
            f"env cannot be sent to the workers, which context={context!r} does by pickling it "
            f"({type(error).__name__}: {error}). Make what it needs inside the factory, or use context='fork'."
        ) from error


def pickled(value: object, what: str) -> bytes:
    """`value` as a worker can read it, or a `ConfigError` before anything is sent."""
    try:
        return cloudpickle.dumps(value)
    except Exception as error:
        raise ConfigError(f"{what} cannot be sent to the workers: {type(error).__name__}: {error}.") from error
