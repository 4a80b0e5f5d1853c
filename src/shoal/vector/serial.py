"""Lanes in this process, one after the other: for debugging, and the reference that worker batches agree with."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.vector.batch import check_autoreset_mode, check_num_envs
from shoal.vector.lanes.base import LaneBatch
from shoal.vector.lanes.buffers import Buffers
from shoal.vector.lanes.group import LaneGroup, Report
from shoal.vector.lanes.making import EnvMaker, Source, probe


class SerialBatch(LaneBatch):
    """`num_envs` lanes of any `gymnasium.Env` in this process.

    A lane that raises or returns something impossible raises a `LaneFault` whose cause is the original exception, so
    a debugger stops in the environment. After that the batch goes on with `reset()`.

    Args:
        env: a Gymnasium id, an environment class, or a function that makes one.
        env_kwargs: keyword arguments for each of them.
        env_wrappers: what is put around each of them, as "module:Wrapper".
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
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        copy: bool = True,
    ) -> None:
        num_envs, mode = check_num_envs(num_envs), check_autoreset_mode(autoreset_mode)
        make = EnvMaker(env, env_kwargs or {}, env_wrappers)
        traits = probe(make)
        buffers = Buffers.create(traits, num_envs)
        self._group = LaneGroup(make, traits, buffers, autoreset_mode=mode)
        super().__init__(num_envs, traits, buffers, mode, copy)

    @property
    def envs(self) -> list[gym.Env]:
        """The environments, one per lane."""
        return self._group.envs

    def _run_reset(self, lanes: np.ndarray, seeds: list[int | None], options: dict[str, object] | None) -> list[Report]:
        self._was_reset = False  # until every lane has begun: a reset that raises leaves nothing to step
        return [self._group.reset(lanes.tolist(), seeds, options)]

    def _run_step(self) -> list[Report]:
        try:
            return [self._group.step()]
        except BaseException:
            self._was_reset = False  # some lanes have stepped and some have not
            raise

    def _run_save(self) -> list[bytes]:
        return self._group.save()

    def _run_load(self, saved: list[bytes]) -> None:
        self._group.load(saved)

    def _run_call(self, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> list[Any]:
        return self._group.call(name, args, kwargs)

    def _run_set_attr(self, name: str, values: list[Any]) -> None:
        self._group.set_attr(name, values)

    def close_extras(self, **kwargs: object) -> None:
        """Close the environments."""
        self._group.close()
