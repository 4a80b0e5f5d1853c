"""Env runners that fail: twice they get new environments, the third time in a row the run stops.

RLlib itself goes on for ever, and what went wrong is one of many lines of a log. Where a remote runner's process ends
(killed, out of memory), Ray starts another; that too is the end of the run when it happens three times in a row.
"""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from shoal.errors import LaneFault

PATIENCE = 3  # failures in a row
ANSWER_S = 10.0  # how long a runner that did not deliver may take to say why


class RunnerFault(LaneFault):
    """An env runner failed too often; the message has the first traceback."""


class PatientEnvRunner(SingleAgentEnvRunner):
    """RLlib's runner, which gives up after `PATIENCE` failures without a complete sample between them."""

    fault: str | None = None
    """Why this runner gave up."""

    def __init__(self, **kwargs: Any) -> None:
        self._tracebacks: list[str] = []  # since the last complete sample
        super().__init__(**kwargs)

    def sample(self, **kwargs: Any) -> list[SingleAgentEpisode]:
        samples = super().sample(**kwargs)
        self._tracebacks.clear()
        return samples

    def make_env(self) -> None:
        """New environments: at the beginning, and from the handlers of RLlib and ours when the old ones failed."""
        error = sys.exception()
        if self.env is None or error is None:
            return super().make_env()
        while True:
            self._note(error)
            try:
                return super().make_env()
            except Exception as again:
                error = again

    def _note(self, error: BaseException) -> None:
        self._tracebacks.append("".join(traceback.format_exception(error)))
        if len(self._tracebacks) == PATIENCE:
            self.fault = f"{_name(self.worker_index)} failed {PATIENCE} times in a row. The first time:\n\n"
            self.fault += self._tracebacks[0]
            self._tracebacks.clear()
            raise RunnerFault(self.fault) from None

    def apply(self, func: Callable, *args: object, **kwargs: object) -> Any:
        """What a remote runner is called through. RLlib ends its process after any error, and with it the reason."""
        try:
            return func(self, *args, **kwargs)
        except RunnerFault:
            raise
        except Exception as error:
            return super().apply(_fail, error)


def _fail(runner: Any, error: Any, *rest: object) -> NoReturn:
    raise error


def _name(index: int) -> str:
    return f"Env runner {index}" if index else "The env runner"


# ---------------------------------------------------------------------- hooks of the algorithm

_restarts: WeakKeyDictionary[Algorithm, Counter[int]] = WeakKeyDictionary()
"""How often each remote runner came back since it last delivered."""


def count_restarts(*, algorithm: Algorithm, env_runner_indices: list[int], **kwargs: object) -> None:
    """`on_env_runners_recreated`."""
    _restarts.setdefault(algorithm, Counter()).update(env_runner_indices)


def stop_on_faults(*, algorithm: Algorithm, **kwargs: object) -> None:
    """`on_train_result`: raise what a remote runner gave up for. A local one has raised it already."""
    group, restarts = algorithm.env_runner_group, _restarts.setdefault(algorithm, Counter())
    if group is None:
        return
    healthy = set(group.healthy_env_runner_ids())
    failed = [index for index in range(1, group.num_remote_env_runners() + 1) if index not in healthy]
    for index in healthy:
        restarts.pop(index, None)
    if not failed:
        return
    faults: list[str | None] = group.foreach_env_runner(
        _fault_of, local_env_runner=False, healthy_only=False, remote_worker_ids=failed, timeout_seconds=ANSWER_S
    )
    for fault in faults:
        if fault is not None:
            raise RunnerFault(fault)
    for index in failed:
        if restarts[index] >= PATIENCE - 1:
            raise RunnerFault(
                f"The process of env runner {index} ended {PATIENCE} times in a row, without a Python error: "
                "it was killed, or ran out of memory. Its log is in Ray's session folder."
            )


def _fault_of(runner: EnvRunner) -> str | None:
    return runner.fault if isinstance(runner, PatientEnvRunner) else None
