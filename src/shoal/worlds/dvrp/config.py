"""From options to a batch: the factory behind `shoal.make("dvrp")`, `shoal train dvrp` and `gymnasium.make_vec`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from typing import Any, Literal

from shoal.errors import ConfigError, unknown_name
from shoal.worlds.dvrp.city import City, synthetic_city
from shoal.worlds.dvrp.fleet import Fleet
from shoal.worlds.dvrp.pool import Pool, synthetic_pool
from shoal.worlds.dvrp.settings import Scenario, Settings


@dataclass(frozen=True)
class Place:
    """City and travellers: synthetic ones by seed, or a user's files."""

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


@dataclass(frozen=True)
class OracleChoice:
    """Which oracle prices the plans, and how hard it tries."""

    oracle: Literal["ruin", "insertion", "neural", "pyvrp"] = "ruin"
    """Routing oracle."""
    iterations: int | None = None
    """Rounds of search per request; none leaves each oracle its own default."""
    oracle_checkpoint: str | None = None
    """Weights of the neural oracle; none takes those that come with Shoal."""
    decoding: str | None = None
    """How the neural oracle decodes: greedy, sample, multistart or best_of_k."""
    num_threads: int | None = None
    """Threads of the compiled oracles."""

    def options(self) -> dict[str, Any]:
        """The options that were set, under the names that the oracles use."""
        named = {
            "iterations": self.iterations,
            "checkpoint": self.oracle_checkpoint,
            "decoding": self.decoding,
            "num_threads": self.num_threads,
        }
        return {name: value for name, value in named.items() if value is not None}


_FLEET = {"fleet": "size"}  # what the command line calls a field of `Fleet`
_PARTS = (Settings, Place, OracleChoice, Fleet)


def make(num_envs: int, *, autoreset_mode: Any = "same_step", copy: bool = True, **options: Any) -> Any:
    """A `DvrpBatch`. Options are fields of `Settings`, `Fleet` (its size as `fleet`), `Place` and `OracleChoice`."""
    from shoal.worlds.dvrp.environment import DvrpBatch
    from shoal.worlds.dvrp.oracles import make_oracle

    settings, place, choice, fleet = split_options(options)
    scenario = make_scenario(place, fleet)
    oracle = make_oracle(choice.oracle, scenario.city, fleet, **choice.options())
    return DvrpBatch(num_envs, scenario, oracle, settings, autoreset_mode=autoreset_mode, copy=copy)


def option_defaults() -> dict[str, Any]:
    """Every option of `make` with its default."""
    names = {new: old for old, new in _FLEET.items()}
    return {names.get(field.name, field.name): field.default for part in _PARTS for field in fields(part)}


def _signature() -> inspect.Signature:
    """`make` as it would be with all its options spelled out: the command line makes flags of them."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    lanes = inspect.Parameter("num_envs", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    of_batch = {"autoreset_mode": "same_step", "copy": True}
    options = {**of_batch, **option_defaults()}
    return inspect.Signature([lanes, *(inspect.Parameter(n, keyword, default=d) for n, d in options.items())])


make.__signature__ = _signature()  # type: ignore[attr-defined]


def split_options(options: dict[str, Any]) -> tuple[Settings, Place, OracleChoice, Fleet]:
    """Hand every option to the part that has a field of its name."""
    for name in options:
        if name not in option_defaults():
            raise unknown_name("option of dvrp", name, option_defaults(), "`shoal train dvrp --help`")
    given = {_FLEET.get(name, name): value for name, value in options.items()}
    parts: list[Any] = [
        part(**{field.name: given[field.name] for field in fields(part) if field.name in given}) for part in _PARTS
    ]
    return parts[0], parts[1], parts[2], parts[3]


def make_scenario(place: Place, fleet: Fleet) -> Scenario:
    """City, travellers and fleet."""
    if place.travel_times is None and place.trips is None:
        city: City = synthetic_city(place.city_seed, place.num_cells, place.spacing)
        pool: Pool = synthetic_pool(city, place.pool_seed, place.travellers, place.trips_each)
        return Scenario(city, pool, fleet)
    if place.travel_times is None or place.trips is None:
        raise ConfigError("A user's city needs both files: travel_times (driving seconds) and trips (travellers).")
    from shoal.worlds.dvrp.csv_files import load_city, load_pool

    city = load_city(place.travel_times, place.distances, place.depot)
    pool, _ = load_pool(place.trips, city, fleet, place.decisions)
    return Scenario(city, pool, fleet)
