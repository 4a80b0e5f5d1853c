"""The environments that RLlib is given, one kind per mode, all around the same `Lanes`.

Importing this module enters `ENV_NAME` in RLlib's registry, so that a checkpoint finds its environment in any process.
"""

from __future__ import annotations

from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from ray.tune.registry import register_env

from shoal.bridges.batches import check_autoreset
from shoal.bridges.rllib.lanes import Lanes
from shoal.errors import ConfigError, StateError
from shoal.registry import make
from shoal.trees import Tree, copy_tree, index_tree

ENV_NAME = "shoal"
StepResult = tuple[Tree, np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]
CUT = "cut"
"""The info under which `packed_vec` hands on lanes that were truncated: a `Cut`."""


class LaneEnv(VectorEnv):
    """What the kinds share: `lanes`, and the spaces of `num_envs` environments."""

    closed = True  # until `__init__` has run: what was never made must not be closed when it is collected

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.metadata = {"autoreset_mode": lanes.batch.metadata["autoreset_mode"]}
        self._announce(lanes.num_envs, lanes.observation_space, lanes.action_space)
        self.closed = False

    def _announce(self, num_envs: int, observation_space: gym.Space, action_space: gym.Space) -> None:
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = observation_space, action_space
        self.observation_space = batch_space(observation_space, num_envs)
        self.action_space = batch_space(action_space, num_envs)

    def close_extras(self, **kwargs: object) -> None:
        self.lanes.close()


class VecLanes(LaneEnv):
    """`vec`: N lanes as N environments. RLlib takes the step after an end for the reset, so NEXT_STEP it must be."""

    def __init__(self, lanes: Lanes) -> None:
        check_autoreset(lanes.batch, AutoresetMode.NEXT_STEP)
        super().__init__(lanes)

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[Tree, dict[str, np.ndarray]]:
        return copy_tree(self.lanes.reset(seed)), {}  # episodes keep references to what they are given

    def step(self, actions: np.ndarray) -> StepResult:
        moved = self.lanes.step(actions)
        flags = moved.reward.copy(), moved.terminated.copy(), moved.truncated
        return copy_tree(moved.obs), *flags, {}


class PackedLanes(LaneEnv):
    """`packed_vec`: N lanes that RLlib takes for one environment, whose episode never ends.

    An observation is a row of all lanes: `states` [N, ...] and how the step that led there went, `rewards`,
    `terminateds` and `truncateds` [N]. Leading axes are 1, the one environment.
    """

    def __init__(self, lanes: Lanes) -> None:
        super().__init__(lanes)
        N = lanes.num_envs
        flag = gym.spaces.MultiBinary(N)
        row = gym.spaces.Dict(
            states=batch_space(lanes.observation_space, N),
            rewards=gym.spaces.Box(-np.inf, np.inf, (N,), np.float32),
            terminateds=flag,
            truncateds=flag,
        )
        self._announce(1, row, batch_space(lanes.action_space, N))

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[Tree, dict[str, np.ndarray]]:
        N = self.lanes.num_envs
        return self._row(self.lanes.reset(seed), np.zeros(N, np.float32), *np.zeros((2, N), np.bool_)), {}

    def step(self, actions: np.ndarray) -> StepResult:
        moved = self.lanes.step(actions[0])
        infos: dict[str, np.ndarray] = {}
        if moved.cut is not None and len(moved.cut.lanes):
            infos[CUT] = np.empty(1, object)
            infos[CUT][0] = moved.cut
        never = np.zeros(1, np.bool_)
        mean = np.add.reduce(moved.reward, keepdims=True) / self.lanes.num_envs
        return self._row(*moved[:4]), mean, never, never, infos

    def _row(self, obs: Tree, reward: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> Tree:
        row = {"states": obs, "rewards": reward, "terminateds": terminated, "truncateds": truncated}
        return index_tree(copy_tree(row), None)


class ColumnLanes(LaneEnv):
    """`columnar`: N lanes that only `ColumnarEnvRunner` drives, through `lanes`."""

    def reset(self, **given: object) -> NoReturn:
        raise StateError("These lanes are stepped by ColumnarEnvRunner alone: use ppo_config(..., mode='columnar').")

    step = reset  # type: ignore[assignment]


KINDS = {"vec": VecLanes, "packed_vec": PackedLanes, "columnar": ColumnLanes}
"""The environments by mode."""


def make_env(context: dict[str, Any]) -> LaneEnv:
    """What RLlib's `vector_entry_point` calls; `context` is the `env_config` with RLlib's `num_envs` added.

    Its keys: `world` (anything `shoal.make` takes), `mode`, `lanes` (N) and `options` of `shoal.make`.
    """
    mode, options = context["mode"], dict(context.get("options", {}))
    if mode not in KINDS:
        raise ConfigError(f"mode={mode!r} is unknown. Use one of {', '.join(KINDS)}.")
    if mode == "vec":
        options.setdefault("autoreset_mode", AutoresetMode.NEXT_STEP)
    return KINDS[mode](Lanes(make(context["world"], context["lanes"], **options)))


register_env(ENV_NAME, make_env)
