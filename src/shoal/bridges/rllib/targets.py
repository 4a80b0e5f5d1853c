"""`Trajectory`, T steps of N lanes as arrays, and the rows that PPO learns from: the same arithmetic for every mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from shoal.agents.rollout import gae
from shoal.bridges.rllib.envs import CUT
from shoal.bridges.rllib.lanes import Cut
from shoal.trees import Tree, concatenate_trees, index_tree, map_tree

Values = Callable[[Tree], np.ndarray]
"""The value network without gradients: observations [R, ...] -> [R] float32."""


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

    def __len__(self) -> int:
        return self.reward.size

    env_steps = agent_steps = __len__

    def __getitem__(self, rows: slice) -> Trajectory:
        return self.slice(rows)

    def slice(self, rows: slice, len_lookback_buffer: int | None = None) -> Trajectory:
        """The lanes that make up `rows` of the T * N steps: several learners share whole lanes, so that each has the
        full horizon."""
        start, stop, _ = rows.indices(len(self))
        if start % self.num_steps or stop % self.num_steps:
            raise ValueError(f"Steps {start} to {stop} are not whole lanes of {self.num_steps} steps.")
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


def read_packed(episode: SingleAgentEpisode, same_step: bool) -> Trajectory:
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


# ---------------------------------------------------------------------- targets


class Rows(NamedTuple):
    """R flat rows."""

    obs: Tree  # [R, ...]
    action: np.ndarray  # [R, ...]
    log_prob: np.ndarray  # [R]
    dist_inputs: np.ndarray  # [R, A]
    advantage: np.ndarray  # [R] not yet standardised
    target: np.ndarray  # [R]
    skip: np.ndarray | None  # [R] rows that are no experience


def lane_targets(lanes: Trajectory, values: Values, gamma: float, lam: float) -> tuple[np.ndarray, np.ndarray]:
    """Advantages and value targets [T, N]. The end of the fragment bootstraps from its last row, as truncation does."""
    T, N = lanes.reward.shape
    value = values(flat_rows(lanes.obs)).reshape(T + 1, N)
    next_value = value[1:].copy()
    cuts = [(t, cut) for t, cut in lanes.cuts if len(cut.lanes)]
    if cuts:
        rows = np.concatenate([t * N + cut.lanes for t, cut in cuts])
        next_value.reshape(-1)[rows] = values(concatenate_trees([cut.obs for _, cut in cuts]))
    reward, *flags = map(np.ascontiguousarray, (lanes.reward, lanes.terminated, lanes.truncated))
    advantage = gae(reward, value[:-1], next_value, *flags, gamma, lam)
    return advantage, advantage + value[:-1]


def lane_rows(lanes: Trajectory, values: Values, gamma: float, lam: float) -> Rows:
    """All rows of a trajectory, those to skip included."""
    advantage, target = lane_targets(lanes, values, gamma, lam)
    obs = flat_rows(index_tree(lanes.obs, slice(0, -1)))
    columns = (flat_rows(column) for column in (lanes.action, lanes.log_prob, lanes.dist_inputs, advantage, target))
    return Rows(obs, *columns, None if lanes.skip is None else flat_rows(lanes.skip))  # type: ignore[call-arg]


def episode_rows(episodes: Sequence[SingleAgentEpisode], values: Values, gamma: float, lam: float) -> Rows:
    """All rows of RLlib's own episodes, each of its own length, laid end to end: an end cuts the trace."""
    lengths = np.array([len(episode) for episode in episodes])
    obs = concatenate_trees([episode.get_observations() for episode in episodes])  # length + 1 rows each
    last = np.cumsum(lengths + 1) - 1  # row of each episode's last observation
    acted = np.ones(last[-1] + 1, np.bool_)
    acted[last] = False
    value = values(obs)
    reward = np.concatenate([episode.get_rewards() for episode in episodes]).astype(np.float32)
    terminated, ended = np.zeros((2, len(reward)), np.bool_)
    ended[np.cumsum(lengths) - 1] = True
    terminated[np.cumsum(lengths) - 1] = [episode.is_terminated for episode in episodes]
    columns = reward, value[acted], np.delete(value, last - lengths), terminated, ended & ~terminated
    rewards, now, beyond, ends, cuts = (column[:, None] for column in columns)  # one lane
    advantage = gae(rewards, now, beyond, ends, cuts, gamma, lam)[:, 0]
    log_prob, dist_inputs = (
        np.concatenate([episode.get_extra_model_outputs(key) for episode in episodes])
        for key in ("action_logp", "action_dist_inputs")
    )
    action = np.concatenate([episode.get_actions() for episode in episodes])
    return Rows(index_tree(obs, acted), action, log_prob, dist_inputs, advantage, advantage + value[acted], None)


def standardise(advantage: np.ndarray, skip: np.ndarray | None) -> np.ndarray:
    """Zero mean and unit variance over the rows that count; RLlib's lower bound on the deviation."""
    counted = advantage if skip is None else advantage[~skip]
    return (advantage - counted.mean()) / max(1e-4, counted.std())


def join(parts: Sequence[Rows], keep_skipped: bool) -> Rows:
    """One set of rows; those to skip are dropped, unless every learner must have as many rows as the others."""
    columns = concatenate_trees([tuple(part[:6]) for part in parts])
    skips = [part.skip for part in parts if part.skip is not None]
    if not skips or keep_skipped:
        return Rows(*columns, concatenate_trees(skips) if skips else None)  # type: ignore[call-arg]
    return Rows(*index_tree(columns, ~concatenate_trees(skips)), None)  # type: ignore[call-arg]


def flat_rows(tree: Tree) -> Tree:
    """[T, N, ...] -> [T * N, ...]"""
    return map_tree(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), tree)
