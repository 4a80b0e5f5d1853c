"""`WorkerBatch`: lanes on worker processes, in step or each at its own pace."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from multiprocessing import get_all_start_methods
from typing import Any, Literal

import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError, LaneFault, StateError
from shoal.platform import num_cores
from shoal.trees import Tree, assign_tree
from shoal.vector.batch import Array, Info, check_autoreset_mode, check_num_envs
from shoal.vector.episodes import Rows
from shoal.vector.lanes.base import LaneBatch
from shoal.vector.lanes.group import Report
from shoal.vector.lanes.making import EnvMaker, Source
from shoal.vector.lanes.values import checked_actions
from shoal.vector.workers.crew import Crew, Loss, Reply, pickled
from shoal.vector.workers.flight import Flight
from shoal.vector.workers.measure import measured_num_workers
from shoal.vector.workers.protocol import STEP_ALL

_CONTEXTS = ("forkserver", "fork", "spawn")
_POLICIES = ("raise", "restart")


class WorkerBatch(LaneBatch):
    """`num_envs` lanes of any `gymnasium.Env` on `num_workers` processes.

    `step` moves all lanes together. `send` and `recv` let each lane run at its own pace: `send` actions to some lanes,
    `recv` whichever are back first, act on those, `send` them on.

    A *fault* is a lane that raises, returns something impossible, hangs, or whose process dies. With
    `on_fault="raise"` it raises a `LaneFault` with the original traceback and closes the batch. With
    `on_fault="restart"` a fresh environment takes its place: the episode is truncated with reward 0 and its last good
    observation as `final_obs`, `info["fault"]` [B] says why (a `FaultKind`, where `info["_fault"]`), `faults` keeps
    the last of them with their reasons and `num_faults` counts them. Two faults of a lane in a row are raised.

    Args:
        env: a Gymnasium id, an environment class, or a function that makes one.
        env_kwargs: keyword arguments for each of them.
        env_wrappers: what is put around each of them, as "module:Wrapper".
        num_workers: processes, never more than lanes; by default as many as the cores this process may use. "auto"
            steps one lane for a moment, and takes more for lanes that sleep or wait.
        context: how they are started: by default "forkserver", or "spawn" where that is missing. Both pickle `env`;
            "fork" does not, but copies a process that may have threads.
        step_timeout: seconds a lane may take for one step or reset before it counts as hung; None for ever.
        on_fault: "raise" or "restart".
        autoreset_mode: as for every `Batch`.
        copy: as for every `Batch`.
    """

    def __init__(
        self,
        env: Source,
        num_envs: int,
        *,
        env_kwargs: dict[str, object] | None = None,
        env_wrappers: tuple[str, ...] = (),
        num_workers: int | Literal["auto"] | None = None,
        context: Literal["forkserver", "fork", "spawn"] | None = None,
        step_timeout: float | None = None,
        on_fault: Literal["raise", "restart"] = "raise",
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        copy: bool = True,
    ) -> None:
        num_envs, mode = check_num_envs(num_envs), check_autoreset_mode(autoreset_mode)
        context = context or ("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
        _check_options(context, on_fault, step_timeout)
        if num_workers == "auto":
            lane = WorkerBatch(env, 1, env_kwargs=env_kwargs, env_wrappers=env_wrappers, num_workers=1, context=context)
            num_workers = measured_num_workers(lane, num_envs)
        self.num_workers = _check_num_workers(num_workers, num_envs)
        self._crew = Crew(
            EnvMaker(env, env_kwargs or {}, env_wrappers),
            num_envs,
            self.num_workers,
            context=context,
            autoreset_mode=mode,
            restart=on_fault == "restart",
            step_timeout=step_timeout,
        )
        self._owner_pid = os.getpid()
        self._restarts_lanes = on_fault == "restart"
        self._flight = Flight(num_envs)
        super().__init__(num_envs, self._crew.traits, self._crew.shared.buffers, mode, copy)

    # ------------------------------------------------------------------ each lane at its own pace

    def send(self, action: Array, lanes: Array) -> None:
        """Step `lanes` [n] with `action` [n, *action] and do not wait for them."""
        self._refuse_unless_running("send")
        chosen = self._flight.check_lanes(lanes)
        self._refuse_ended(chosen)
        checked = checked_actions(action, self.single_action_space, len(chosen))
        assign_tree(self.buffers.action, chosen, checked)
        self._launch(chosen)

    def recv(self, min_lanes: int = 1) -> tuple[np.ndarray, Tree, Array, Array, Array, Info]:
        """Wait until at least `min_lanes` lanes are back and return all that are.

        Returns:
            lanes [n], obs [n, *obs], reward [n], terminated [n], truncated [n], info: row k belongs to lane lanes[k],
            in infos and `final_obs` too.
        """
        self._refuse_unless_running("recv")
        if not 1 <= min_lanes <= len(self._flight):
            raise StateError(
                f"recv(min_lanes={min_lanes}) would never return: {len(self._flight)} lanes are in flight. "
                "Ask for 1 up to the number of lanes that were sent and not received."
            )
        self._await_arrivals(min_lanes)
        lanes, resetting, reports = self._flight.land()
        out = self._empty_rows(len(lanes))
        info = self._deliver(lanes, reports, resetting, out)
        return lanes, out.obs, out.reward, out.terminated, out.truncated, info

    def _launch(self, lanes: np.ndarray) -> None:
        with self._abandon_on_error():
            flying = self._flight.depart(lanes, self._lanes_to_reset(lanes))
            for index, worker in enumerate(self._crew.workers):
                words = [lane for lane in flying if lane in worker.lanes]
                if words:
                    self._crew.tell(index, words)

    def _await_arrivals(self, min_lanes: int) -> None:
        with self._abandon_on_error():
            while len(self._flight.ready) < min_lanes:
                busy = {k for k, worker in enumerate(self._crew.workers) if self._flight.busy[worker.lanes].any()}
                for event in self._crew.wait(busy):
                    if isinstance(event, Loss):
                        self._begin_lost_lanes_anew(event)
                    elif event.error is not None:
                        raise event.error
                    elif event.lane is not None:
                        self._flight.arrive([event.lane])
                    else:
                        self._flight.arrive(event.result.lanes, event.result.reports)

    # ------------------------------------------------------------------ all lanes together

    def _run_reset(self, lanes: np.ndarray, seeds: list[int | None], options: dict[str, object] | None) -> list[Report]:
        self._flight.refuse_unless_empty("reset")
        untold = self._flight.forget_lost(lanes)
        again: dict[int, tuple] = {}
        for index, worker in enumerate(self._crew.workers):
            mine = [k for k, lane in enumerate(lanes.tolist()) if lane in worker.lanes]
            if mine:
                rows = [int(lanes[k]) - worker.lanes[0] for k in mine]
                again[index] = ("reset", rows, [seeds[k] for k in mine], options)
        with self._abandon_on_error():
            for index, call in again.items():
                self._crew.call(index, *call)
            return [*self._gather(again), untold]

    def _run_step(self) -> list[Report]:
        self._flight.refuse_unless_empty("step")
        if self._flight.lost:  # these have begun anew since the last step, and this one is to say so
            self._launch(self._lane_numbers)
            self._await_arrivals(self.num_envs)
            return self._flight.land()[2]
        with self._abandon_on_error():
            for index in range(self.num_workers):
                self._crew.tell(index, (STEP_ALL,))
            return self._gather(dict.fromkeys(range(self.num_workers), ("revive_all",)))

    def _gather(self, again: dict[int, tuple]) -> list[Report]:
        """Wait for the workers that were asked. `again` is what to call on the replacement of one that is lost."""
        reports: list[Report] = []
        waiting = set(again)
        while waiting:
            for event in self._crew.wait(waiting):
                if isinstance(event, Loss) and event.worker not in again:
                    self._begin_lost_lanes_anew(event)
                    continue
                if isinstance(event, Loss):
                    self._refuse_loss(event)
                    report = self._crew.replace(event.worker, *again[event.worker])
                    report.faults.extend(event.faults)
                    reports.append(report)
                elif event.error is not None:
                    raise event.error
                elif event.result is not None:
                    reports.append(event.result)
                waiting.discard(event.worker)
        return reports

    def _run_save(self) -> list[bytes]:
        self._flight.refuse_unless_empty("get_state")
        saved = self._call_all("save", dict.fromkeys(range(self.num_workers), ()))
        return [data for index in range(self.num_workers) for data in saved[index]]

    def _run_load(self, saved: list[bytes]) -> None:
        self._flight.refuse_unless_empty("set_state")
        workers = enumerate(self._crew.workers)
        self._call_all("load", {k: (saved[worker.lanes[0] : worker.lanes[-1] + 1],) for k, worker in workers})

    def _run_call(self, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> list[Any]:
        self._flight.refuse_unless_empty("call")
        sent = pickled((args, kwargs), f"The arguments of call({name!r})")
        results = self._call_all("call", dict.fromkeys(range(self.num_workers), (name, sent)))
        return [result for index in range(self.num_workers) for result in results[index]]

    def _run_set_attr(self, name: str, values: list[Any]) -> None:
        self._flight.refuse_unless_empty("set_attr")
        parts = [values[worker.lanes[0] : worker.lanes[-1] + 1] for worker in self._crew.workers]
        sent = [pickled(part, f"The values of set_attr({name!r})") for part in parts]
        self._call_all("set_attr", {index: (name, part) for index, part in enumerate(sent)})

    def _call_all(self, name: str, arguments: dict[int, tuple[object, ...]]) -> dict[int, list[Any]]:
        """The results of a call on each worker; what one of them could not do is raised once all have answered."""
        replies: dict[int, Reply] = {}
        with self._abandon_on_error():
            for index, args in arguments.items():
                self._crew.call(index, name, *args)
            while len(replies) < len(arguments):
                for event in self._crew.wait(arguments.keys() - replies.keys()):
                    if isinstance(event, Loss):
                        raise LaneFault(event.reason, event.lane)
                    replies[event.worker] = event
        for _, reply in sorted(replies.items()):  # of several errors that of the first lane, whoever was faster
            if reply.error is not None:
                raise reply.error
        return {index: reply.result for index, reply in replies.items()}

    # ------------------------------------------------------------------ faults and the end

    def _refuse_loss(self, loss: Loss) -> None:
        if not self._restarts_lanes:
            raise LaneFault(f"{loss.reason} WorkerBatch(on_fault='restart') would go on without it.", loss.lane)

    def _ended(self, lanes: Rows) -> np.ndarray:
        ended = super()._ended(lanes)
        if self._flight.lost:  # nobody has been told that these are over
            ended &= ~np.isin(self._lane_numbers[lanes], list(self._flight.lost))
        return ended

    def _begin_lost_lanes_anew(self, loss: Loss) -> None:
        self._refuse_loss(loss)
        self._crew.replace(loss.worker, "revive_all")
        self._flight.crash(loss.faults)

    @contextlib.contextmanager
    def _abandon_on_error(self) -> Iterator[None]:
        """Whatever interrupts an exchange with the workers, a fault or Ctrl-C, leaves none of them running."""
        try:
            yield
        except BaseException:
            self._crew.close(kill=True)
            self.closed = True
            raise

    def _refuse_unless_running(self, call: str) -> None:
        self._refuse_if_closed(call)
        if not self._was_reset:
            raise StateError(f"{call}() came before reset(). Call reset() first to begin the episodes.")

    def cpu_seconds_elsewhere(self) -> float:
        return sum(worker.cpu_seconds() for worker in self._crew.workers)

    def scheduled_seconds(self) -> tuple[float, float] | None:
        """Seconds that the workers have computed, and have queued for a core, so far; None where it cannot be told."""
        each = [worker.scheduled_seconds() for worker in self._crew.workers]
        known = [seconds for seconds in each if seconds is not None]
        return (sum(s[0] for s in known), sum(s[1] for s in known)) if len(known) == len(each) else None

    def close_extras(self, **kwargs: object) -> None:
        """End the workers. They close their environments, unless they are in the middle of a step."""
        if os.getpid() == self._owner_pid:  # a fork of this process has no say in it
            self._crew.close(kill=len(self._flight) > 0)


def _check_num_workers(num_workers: int | None, num_envs: int) -> int:
    if num_workers is None:
        return min(num_cores(), num_envs)
    if isinstance(num_workers, bool) or not isinstance(num_workers, int | np.integer) or num_workers < 1:
        raise ConfigError(f"num_workers={num_workers!r} is not valid. Pass an int from 1 on.")
    return min(int(num_workers), num_envs)  # an evaluation of the same run may have fewer lanes


def _check_options(context: str, on_fault: str, step_timeout: float | None) -> None:
    if context not in _CONTEXTS:
        raise ConfigError(f"context={context!r} is unknown. Use one of {', '.join(map(repr, _CONTEXTS))}.")
    if context not in get_all_start_methods():
        raise ConfigError(f"context={context!r} does not exist on {sys.platform}. Use 'spawn'.")
    if on_fault not in _POLICIES:
        raise ConfigError(f"on_fault={on_fault!r} is unknown. Use 'raise' or 'restart'.")
    if step_timeout is not None and not step_timeout > 0:
        raise ConfigError(f"step_timeout must be above 0 seconds, not {step_timeout}. Pass None to wait for ever.")
