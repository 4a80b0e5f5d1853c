"""How an episode is played, and where. No heavy imports: the command line reads these fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.dvrp.city import DAY, City
from shoal.worlds.dvrp.fleet import Fleet, find_unservable
from shoal.worlds.dvrp.pool import WINDOW, Pool

Acceptance = Literal["limits", "types", "logit", "csv"]
ShiftMode = Literal["move", "widen"]
Reward = Literal["incremental", "vs_noop_path", "counterfactual"]
ObsMode = Literal["scaled", "raw"]
_CHOICES = {"acceptance": Acceptance, "shift_mode": ShiftMode, "reward": Reward, "obs_mode": ObsMode}


@dataclass(frozen=True)
class Settings:
    """How an episode is played."""

    customers: int = 30
    """Requests per episode."""
    acceptance: Acceptance = "limits"
    """Who says yes: by each trip's limits, by the traveller's type, by noisy limits, or by recorded answers."""
    beta: float = 0.3
    """Steepness per minute of acceptance="logit"."""
    shift_mode: ShiftMode = "move"
    """What an accepted offer does to a window."""
    reward: Reward = "incremental"
    """What a step pays: the rise in cost; that against the same episode without offers; or the effect of the offer."""
    patience: float = 0.002
    """Price of one accepted minute, in km."""
    perturbation: int = 0
    """Move windows apart by up to so many minutes before the episode, in tens."""
    obs_mode: ObsMode = "scaled"
    """A dict of numbers between 0 and 1, or the plain [n, 6] table of cells and minutes."""
    quotes: bool = False
    """Add to scaled observations what every offer would save by mere insertion into the present plan."""
    trip_ids: bool = False
    """Add to scaled observations which trip is asked for, so that answers to the same trip can be remembered."""
    coordinates: bool = False
    """Add the coordinates of pickups and dropoffs to scaled observations."""
    terminate_on_failure: bool = False
    """End the episode, with a reward of -5000, as soon as the fleet does not suffice."""
    compare_noop: bool = False
    """Also price the same episode without offers, as `noop_cost` in the infos."""

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in get_args(choices):
                known = ", ".join(map(repr, get_args(choices)))
                raise ConfigError(f"{name}={getattr(self, name)!r} is unknown. Use one of {known}.")
        if self.customers < 1:
            raise ConfigError(f"customers={self.customers} makes no episode. Use at least 1.")
        if self.patience < 0 or self.beta <= 0:
            raise ConfigError(f"patience={self.patience} must not be negative and beta={self.beta} must be above 0.")
        if self.perturbation < 0 or self.perturbation % 10:
            raise ConfigError(f"perturbation={self.perturbation} is no multiple of ten minutes.")

    @property
    def follows_noop(self) -> bool:
        """Whether the path without offers is priced beside the real one."""
        return self.compare_noop or self.reward == "vs_noop_path"


class Scenario(NamedTuple):
    """Where it happens, to whom, and with which vehicles."""

    city: City
    pool: Pool
    fleet: Fleet


def check_scenario(scenario: Scenario, settings: Settings) -> None:
    """`ConfigError` if some episode could not be played."""
    pool, customers = scenario.pool, settings.customers
    if customers > pool.size:
        raise ConfigError(
            f"customers={customers} is more than the {pool.size} travellers of the pool. "
            "Ask for fewer customers, or for more travellers."
        )
    if settings.acceptance == "csv" and pool.accepts is None:
        raise ConfigError("acceptance='csv' needs recorded decisions. Load a decisions file, or use 'limits'.")
    exists = np.arange(pool.origin.shape[1]) < pool.num_trips[:, None]
    outside = exists & (
        (np.minimum(pool.origin, pool.dest) < 0) | (np.maximum(pool.origin, pool.dest) >= scenario.city.num_cells)
    )
    if outside.any():
        who, trip = (int(i) for i in np.argwhere(outside)[0])
        raise ConfigError(
            f"Trip {trip + 1} of traveller {who + 1} goes from cell {pool.origin[who, trip]} to cell "
            f"{pool.dest[who, trip]}, but the city has cells 0 to {scenario.city.num_cells - 1}."
        )
    impossible = exists & unservable_trips(scenario)
    if impossible.any():
        who, trip = (int(i) for i in np.argwhere(impossible)[0])
        raise ConfigError(
            f"Trip {trip + 1} of traveller {who + 1} (pickup from {pool.pickup_start[who, trip]}, dropoff from "
            f"{pool.dropoff_start[who, trip]} minutes) cannot be met even by a vehicle that has nothing else to do; "
            f"{impossible.sum()} trips are like that. Widen or drop them."
        )


def unservable_trips(scenario: Scenario) -> np.ndarray:
    """[K, M] bool: trips of the pool whose windows, as asked for, nobody could keep."""
    pool = scenario.pool
    start = np.stack([pool.pickup_start, pool.dropoff_start], -1)[..., None]
    return unservable(scenario, pool.origin, pool.dest, start + np.array([0, WINDOW]))


def unservable(scenario: Scenario, origin: np.ndarray, dest: np.ndarray, window: np.ndarray) -> np.ndarray:
    """[...] bool: single requests that nobody could serve.

    Args:
        origin, dest: [...] cells.
        window: [..., 2, 2] minutes: pickup and dropoff, earliest and latest.
    """
    cells = np.stack([np.full_like(origin, scenario.city.depot), origin, dest], -1)
    depot = np.broadcast_to(np.array([0, DAY]), (*origin.shape, 1, 2))
    tw = np.concatenate([depot, 60 * window.astype(np.int64)], -2)
    return find_unservable(scenario.city, scenario.fleet, cells, tw)[..., 0]
