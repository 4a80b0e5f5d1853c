"""From trajectories to the rows that PPO learns from. The same arithmetic for every mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.agents.gae import gae
from shoal.bridges.rllib.trajectory import Trajectory
from shoal.vector.spaces import concatenate_trees, index_tree

Tree = Any
Values = Callable[[Tree], np.ndarray]
"""The value network without gradients: observations [R, ...] -> [R] float32."""


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
    flat_values = values(flat_rows(lanes.obs))
    value = flat_values.reshape(T + 1, N)
    next_value = value[1:].copy()
    cuts = [(t, cut) for t, cut in lanes.cuts if len(cut.lanes)]
    if cuts:
        beyond = values(concatenate_trees([cut.obs for _, cut in cuts]))
        rows = np.concatenate([t * N + cut.lanes for t, cut in cuts])
        next_value.reshape(-1)[rows] = beyond
    flags = np.ascontiguousarray(lanes.terminated), np.ascontiguousarray(lanes.truncated)
    advantage = gae(np.ascontiguousarray(lanes.reward), value[:-1], next_value, *flags, gamma, lam)
    return advantage, advantage + value[:-1]


def lane_rows(lanes: Trajectory, values: Values, gamma: float, lam: float) -> Rows:
    """All rows of a trajectory, those to skip included."""
    advantage, target = lane_targets(lanes, values, gamma, lam)
    obs = flat_rows(index_tree(lanes.obs, slice(0, -1)))
    columns = (flat_rows(column) for column in (lanes.action, lanes.log_prob, lanes.dist_inputs, advantage, target))
    return Rows(obs, *columns, None if lanes.skip is None else flat_rows(lanes.skip))  # type: ignore[call-arg]


def episode_rows(episodes: Sequence[Any], values: Values, gamma: float, lam: float) -> Rows:
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
    if len(parts) > 1:
        skips = [part.skip for part in parts if part.skip is not None]
        columns = [np.concatenate(column) for column in zip(*(part[1:6] for part in parts), strict=True)]
        skip = np.concatenate(skips) if skips else None
        rows = Rows(concatenate_trees([part.obs for part in parts]), *columns, skip)  # type: ignore[call-arg]
    else:
        rows = parts[0]
    if rows.skip is None or keep_skipped:
        return rows
    kept = ~rows.skip
    return Rows(*(index_tree(column, kept) for column in rows[:6]), None)  # type: ignore[call-arg]


def flat_rows(tree: Tree) -> Tree:
    """[T, N, ...] -> [T * N, ...]"""
    if isinstance(tree, dict):
        return {key: flat_rows(sub) for key, sub in tree.items()}
    return tree.reshape(-1, *tree.shape[2:])
