"""Request sets with proven optimal costs, regenerated from their seeds: the yardstick of every oracle.

The numbers that cannot be regenerated (offers made, optimal costs) come with the package in `optima.npz`.
"""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np

from shoal.worlds.dvrp.lanes.city import DAY
from shoal.worlds.dvrp.lanes.offers import ACTIONS, NO_OFFER, accept_by_limits, shift_windows
from shoal.worlds.dvrp.lanes.pool import WINDOW, draw_episode
from shoal.worlds.dvrp.lanes.scenario import Scenario


class Instances(NamedTuple):
    """I request sets of one size with their optimal costs in metres: [I], or [I, n] for every prefix."""

    cells: np.ndarray  # [I, N]
    tw: np.ndarray  # [I, N, 2] seconds
    optimum: np.ndarray  # [I] or [I, n] int64 metres


class Deltas(NamedTuple):
    """Single accepted offers and what they do to the optimal cost of a prefix of k requests."""

    k: np.ndarray  # [I]
    cells: np.ndarray  # [I, N]
    tw_noop: np.ndarray  # [I, N, 2] seconds, the last of the k requests unshifted
    tw_offer: np.ndarray  # [I, N, 2] seconds, the last of the k requests shifted
    optimum_noop: np.ndarray  # [I] metres
    optimum_offer: np.ndarray  # [I] metres


def book(
    scenario: Scenario, episode_seed: np.ndarray, actions: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make the offers `actions` [I, n] in these episodes [I]. Returns cells [I, N], tw [I, N, 2], accepted [I, n]."""
    episode = draw_episode(scenario.pool, episode_seed, actions.shape[1])
    accepted = accept_by_limits(episode.limit, actions)
    start = np.stack([episode.pickup_start, episode.dropoff_start], -1)[..., None]
    shift = np.where(accepted[..., None], ACTIONS[actions], 0)
    window = shift_windows(start + np.array([0, WINDOW]), shift, widen=False)
    ends = np.stack([episode.origin, episode.dest], -1).reshape(len(actions), -1)
    depot = np.full((len(actions), 1), scenario.city.depot)
    day = np.broadcast_to(np.array([0, DAY]), (len(actions), 1, 2))
    tw = np.concatenate([day, 60 * window.reshape(len(actions), -1, 2)], 1)
    return np.concatenate([depot, ends], 1).astype(np.int32), tw.astype(np.int32), accepted


def load_static(scenario: Scenario, customers: int) -> Instances:
    """Independent request sets of one size (10, 20 or 30) in the default city."""
    return _load(scenario, f"static_{customers}")


def load_dynamic(scenario: Scenario, customers: int) -> Instances:
    """Episodes of one size (10, 20 or 30) with the optimal cost after every step."""
    return _load(scenario, f"dynamic_{customers}")


def _load(scenario: Scenario, name: str) -> Instances:
    data = _optima()
    return Instances(*book(scenario, data[f"{name}_seed"], data[f"{name}_actions"])[:2], data[f"{name}_cost"])


def load_deltas(scenario: Scenario) -> Deltas:
    """Offers with a proven effect."""
    data = _optima()
    k, actions = data["delta_k"], data["delta_actions"]
    unshifted = actions.copy()
    unshifted[np.arange(len(k)), k - 1] = NO_OFFER
    cells, tw_offer, _ = book(scenario, data["delta_seed"], actions)
    _, tw_noop, _ = book(scenario, data["delta_seed"], unshifted)
    return Deltas(k, cells, tw_noop, tw_offer, data["delta_noop"], data["delta_offer"])


def clairvoyant_gain(customers: int) -> float | None:
    """Per cent that offers and routes chosen with all requests and limits known would save; proven for n = 10, 20."""
    data = _optima()
    if f"clairvoyant_{customers}_cost" not in data:
        return None
    best, seeds = data[f"clairvoyant_{customers}_cost"], data[f"clairvoyant_{customers}_seed"]
    seed, actions, cost = (data[f"dynamic_{customers}_{name}"] for name in ("seed", "actions", "cost"))
    plain = (actions == NO_OFFER).all(1)
    noop = dict(zip(seed[plain], cost[plain, -1], strict=True))
    before = np.array([noop[seed] for seed in seeds])
    known = best > 0
    return 100 * float(1 - best[known].sum() / before[known].sum())


def _optima() -> dict[str, np.ndarray]:
    with (files(__package__) / "optima.npz").open("rb") as file, np.load(file) as data:
        return {name: data[name].astype(np.int64) for name in data}
