"""The options of the world in three parts: how an episode is played, where, and who plans the routes.

No NumPy in here: the command line reads these fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shoal.errors import ConfigError
from shoal.options import Values
from shoal.worlds.dvrp.lanes.fleet import Vehicles

OracleName = Literal["ruin", "insertion", "neural", "pyvrp"]
Decoding = Literal["greedy", "sample", "multistart", "best_of_k"]
COMPILED = ("ruin", "insertion")
"""Oracles that share the lanes of a call among threads."""
_TAKEN = {
    "ruin": ("iterations",),
    "pyvrp": ("iterations",),
    "neural": ("oracle_checkpoint", "decoding", "oracle_device"),
}


@dataclass(frozen=True)
class Settings:
    """How an episode is played."""

    customers: int = 30
    """Requests per episode."""
    acceptance: Literal["limits", "types", "logit", "csv"] = "limits"
    """Who says yes: by each trip's limits, by the traveller's type, by noisy limits, or by recorded answers."""
    beta: float = 0.3
    """Steepness per minute of acceptance=logit."""
    shift_mode: Literal["move", "widen"] = "move"
    """What an accepted offer does to a window: move it, or open it wider."""
    reward: Literal["incremental", "vs_noop_path", "counterfactual"] = "incremental"
    """What a step pays: the rise in cost; that against the same episode without offers; or the effect of the offer."""
    patience: float = 0.002
    """Price of one accepted minute, in km."""
    perturbation: int = 0
    """Move windows apart by up to this many minutes before the episode, in tens."""
    obs_mode: Literal["scaled", "raw"] = "scaled"
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
        if self.customers < 1:
            raise ConfigError(f"customers must be at least 1, not {self.customers}.")
        if self.patience < 0:
            raise ConfigError(f"patience must not be negative, but is {self.patience}.")
        if self.beta <= 0:
            raise ConfigError(f"beta must be above 0, not {self.beta}.")
        if self.perturbation < 0 or self.perturbation % 10:
            raise ConfigError(f"perturbation must be a multiple of ten minutes, not {self.perturbation}.")

    @property
    def follows_noop(self) -> bool:
        """Whether the path without offers is priced beside the real one."""
        return self.compare_noop or self.reward == "vs_noop_path"


@dataclass(frozen=True)
class Place(Vehicles):
    """City, travellers and fleet: synthetic ones by seed, or a user's files."""

    city_seed: int = 7
    """Streets and speeds of the synthetic city."""
    num_cells: int = 31
    """Cells of the synthetic city."""
    spacing: float = 1.75
    """Kilometres between neighbouring cells."""
    pool_seed: int = 11
    """Homes and habits of the travellers."""
    travellers: int = 30
    """Travellers in the pool; an episode draws its customers from them."""
    trips_each: int = 40
    """Trips that each traveller chooses from."""
    travel_times: str | None = None
    """CSV of driving seconds between cells, instead of the synthetic city."""
    distances: str | None = None
    """CSV of metres between the same cells; without it, set cost_matrix to duration."""
    depot: str | None = None
    """Identifier of the depot's cell in these files; the first column if none is given."""
    trips: str | None = None
    """CSV of travellers and their trips, instead of the synthetic pool."""
    decisions: str | None = None
    """CSV of recorded answers to offers, for acceptance=csv."""
    fleet: int = 5
    """Vehicles that cost nothing extra."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fleet < 0:
            raise ConfigError(f"fleet must not be negative, but is {self.fleet}.")
        if (self.travel_times is None) != (self.trips is None):
            raise ConfigError(
                "A city of your own needs two files: travel_times (driving seconds) and trips (travellers)."
            )


@dataclass(frozen=True)
class OracleChoice:
    """Which oracle prices the plans, and how hard it tries."""

    oracle: OracleName = "ruin"
    """Who plans the routes."""
    iterations: int | None = None
    """Rounds of search per request of ruin and pyvrp; none leaves each its own default."""
    oracle_checkpoint: str | None = None
    """Weights of the neural oracle; none takes those that come with Shoal."""
    decoding: Decoding | None = None
    """How the neural oracle decodes; none is greedy."""
    oracle_device: str | None = None
    """Where the neural oracle runs, e.g. cuda; none is the CPU."""

    def __post_init__(self) -> None:
        taken = _TAKEN.get(self.oracle, ())
        for name in ("iterations", "oracle_checkpoint", "decoding", "oracle_device"):
            if getattr(self, name) is not None and name not in taken:
                takers = " and ".join(repr(oracle) for oracle, names in _TAKEN.items() if name in names)
                raise ConfigError(
                    f"oracle={self.oracle!r} does not take {name}={getattr(self, name)!r}. It is an option of {takers}."
                )

    def oracle_options(self) -> Values:
        """The options that were set, under the names that the oracles use."""
        named = {"iterations": self.iterations, "checkpoint": self.oracle_checkpoint, "decoding": self.decoding}
        named |= {"device": self.oracle_device}
        return {name: value for name, value in named.items() if value is not None}
