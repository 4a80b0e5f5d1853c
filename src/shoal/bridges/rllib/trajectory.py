"""`Trajectory`: T steps of N lanes as arrays, and how they are read from a packed episode."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shoal.bridges.rllib.envs import CUT
from shoal.bridges.rllib.lanes import Cut
from shoal.vector.spaces import index_tree

Tree = Any


@dataclass(frozen=True)
class Trajectory:
    """Experience of one env runner. To RLlib it is an episode of T * N steps that can be cut between lanes."""

    obs: Tree  # [T + 1, N, ...]
    action: np.ndarray  # [T, N, ...] as drawn, before clipping
    log_prob: np.ndarray  # [T, N]
    dist_inputs: np.ndarray  # [T, N, A]
    reward: np.ndarray  # [T, N]
    terminated: np.ndarray  # [T, N]
    truncated: np.ndarray  # [T, N]
    skip: np.ndarray | None = None  # [T, N] NEXT_STEP: rows that only reset their lane
    cuts: list[tuple[int, Cut]] = field(default_factory=list)  # SAME_STEP: (t, lanes truncated in step t)

    @property
    def num_steps(self) -> int:
        return len(self.reward)

    @property
    def num_envs(self) -> int:
        return self.reward.shape[1]

    def __len__(self) -> int:
        return self.reward.size

    def env_steps(self) -> int:
        return len(self)

    def agent_steps(self) -> int:
        return len(self)

    def __getitem__(self, rows: slice) -> Trajectory:
        return self.slice(rows)

    def slice(self, rows: slice, len_lookback_buffer: int | None = None) -> Trajectory:
        """The lanes that make up `rows` of the T * N steps: several learners share whole lanes, so that each has the
        full horizon."""
        start, stop, _ = rows.indices(len(self))
        if start % self.num_steps or stop % self.num_steps:
            raise ValueError(f"Steps {start} to {stop} are no whole lanes of {self.num_steps} steps.")
        first, last = start // self.num_steps, stop // self.num_steps
        lanes = (slice(None), slice(first, last))
        names = ("action", "log_prob", "dist_inputs", "reward", "terminated", "truncated")
        parts = {name: getattr(self, name)[lanes] for name in names}
        skip = None if self.skip is None else self.skip[lanes]
        cuts = [(t, _lanes_between(cut, first, last)) for t, cut in self.cuts]
        return replace(self, obs=index_tree(self.obs, lanes), skip=skip, cuts=cuts, **parts)


def _lanes_between(cut: Cut, first: int, last: int) -> Cut:
    inside = (cut.lanes >= first) & (cut.lanes < last)
    return Cut(cut.lanes[inside] - first, index_tree(cut.obs, inside))


def read_packed(episode: Any, same_step: bool) -> Trajectory:
    """The lanes inside a packed episode chunk of T steps. Row t + 1 of its observations says how step t went."""
    rows = episode.get_observations()  # [T + 1, N] each
    terminated, truncated = rows["terminateds"], rows["truncateds"]
    infos = episode.get_infos()
    return Trajectory(
        obs=rows["states"],
        action=episode.get_actions(),
        log_prob=episode.get_extra_model_outputs("action_logp"),
        dist_inputs=episode.get_extra_model_outputs("action_dist_inputs"),
        reward=rows["rewards"][1:],
        terminated=terminated[1:],
        truncated=truncated[1:],
        skip=None if same_step else (terminated | truncated)[:-1],
        cuts=[(t, info[CUT]) for t, info in enumerate(infos[1:]) if CUT in info],
    )
