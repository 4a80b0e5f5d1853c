"""The traveller pool: who lives where, which trips they make and how flexible they are; and episodes drawn from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.errors import ConfigError
from shoal.seeding import uniform_at
from shoal.worlds.dvrp.lanes.city import City

STRICT, ERRAND, LEISURE = range(3)
WINDOW = 30
"""Minutes that a pickup or dropoff window is wide."""

LIMITS = np.array(
    [
        [(0, 10), (0, 20), (10, 30)],  # 0: late dropoff only
        [(10, 0), (20, 0), (30, 10)],  # 1: early pickup only
        [(0, 0), (0, 0), (10, 10)],  # 2: inflexible
        [(10, 10), (20, 20), (30, 30)],  # 3: both
    ],
    np.int16,
)
"""[type, purpose, 2] minutes (early, late) that a traveller tolerates."""

_TYPE_SHARES = np.array([8, 7, 6, 9])


class Pool(NamedTuple):
    """K travellers with M trip slots each; slots from `num_trips[i]` on are empty. Times are minutes of the day."""

    type: np.ndarray  # [K] int16 true flexibility type, 0 to 3
    origin: np.ndarray  # [K, M] int16 cell
    dest: np.ndarray  # [K, M] int16 cell
    pickup_start: np.ndarray  # [K, M] int16
    dropoff_start: np.ndarray  # [K, M] int16
    purpose: np.ndarray  # [K, M] int16: STRICT, ERRAND or LEISURE
    limit: np.ndarray  # [K, M, 2] int16 (early, late)
    num_trips: np.ndarray  # [K] int64
    home: np.ndarray | None = None  # [K] int16 cell, where it is known
    work: np.ndarray | None = None  # [K] int16 cell, where it is known
    accepts: np.ndarray | None = None  # [K, M, 4, 16] bool: recorded answers, as each type would give them

    @property
    def size(self) -> int:
        """K."""
        return len(self.type)

    def check_customers(self, customers: int) -> None:
        """`ConfigError` if an episode would need more travellers than there are."""
        if customers > self.size:
            raise ConfigError(
                f"customers={customers} is more than the {self.size} travellers of the pool. "
                "Ask for fewer customers, or for more travellers."
            )


class Episode(NamedTuple):
    """The requests of B episodes in order of arrival, each array [B, n]; `limit` [B, n, 2]. Minutes."""

    user: np.ndarray  # 1-based
    trip: np.ndarray  # which of the user's trips
    type: np.ndarray
    purpose: np.ndarray
    origin: np.ndarray
    dest: np.ndarray
    pickup_start: np.ndarray
    dropoff_start: np.ndarray
    limit: np.ndarray


def synthetic_pool(city: City, seed: int = 11, num_travellers: int = 30, num_trips: int = 40) -> Pool:
    """Commuters of a synthetic city with homes, workplaces and the habits of four types."""
    if num_travellers < 1 or num_trips < 1:
        raise ConfigError(f"travellers and trips_each must be at least 1, not {num_travellers} and {num_trips}.")
    H, person = city.num_cells, np.arange(num_travellers)
    types = np.empty(num_travellers, np.int16)
    shuffled = np.argsort(uniform_at(seed, 10, person), kind="stable")
    types[shuffled] = np.repeat(np.arange(4), _type_counts(num_travellers))
    home = np.floor(H * uniform_at(seed, 11, person)).astype(np.int64)
    work = np.floor(H * uniform_at(seed, 12, person)).astype(np.int64)
    work = np.where(work == home, (work + 1) % H, work)
    trip = person[:, None] * num_trips + np.arange(num_trips)
    origin, dest, start, purpose = _trips(seed, trip, home[:, None], work[:, None], H)
    ride = 5 * np.ceil(city.duration[origin, dest] / 300)
    return Pool(
        type=types,
        origin=origin.astype(np.int16),
        dest=dest.astype(np.int16),
        pickup_start=start.astype(np.int16),
        dropoff_start=(start + ride).astype(np.int16),
        purpose=purpose.astype(np.int16),
        limit=LIMITS[types[:, None], purpose],
        num_trips=np.full(num_travellers, num_trips),
        home=home.astype(np.int16),
        work=work.astype(np.int16),
    )


def draw_episode(pool: Pool, seed: np.ndarray, num_customers: int) -> Episode:
    """Episodes of `num_customers` requests: travellers 1 to n, one trip each, in random order.

    Args:
        seed: [B] uint64; an episode is a function of its seed alone.
    """
    pool.check_customers(num_customers)
    person, seed = np.arange(num_customers), np.asarray(seed)[:, None]
    trip = np.floor(pool.num_trips[:num_customers] * uniform_at(seed, 20, person)).astype(np.int64)
    order = np.argsort(uniform_at(seed, 21, person), axis=1, kind="stable")
    trip = np.take_along_axis(trip, order, 1)
    of_trip = {name: getattr(pool, name)[order, trip] for name in Episode._fields[3:]}
    return Episode((order + 1).astype(np.int16), trip.astype(np.int16), pool.type[order], **of_trip)


def _type_counts(num_travellers: int) -> np.ndarray:
    """How many of each type, by largest remainder; ties go to the lower type."""
    quota = num_travellers * _TYPE_SHARES / _TYPE_SHARES.sum()
    counts = np.floor(quota).astype(np.int64)
    largest = np.argsort(-(quota - counts), kind="stable")[: num_travellers - counts.sum()]
    counts[largest] += 1
    return counts


def _trips(
    seed: int, trip: np.ndarray, home: np.ndarray, work: np.ndarray, num_cells: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Origin, destination, pickup start and purpose of trip numbers [K, M]."""
    kind, way, hour = uniform_at(seed, 13, trip), uniform_at(seed, 14, trip), uniform_at(seed, 15, trip)
    purpose = np.where(kind < 0.35, STRICT, np.where(kind < 0.65, ERRAND, LEISURE))
    outward = way < 0.5
    commute_start = np.where(outward, 360 + 30 * np.floor(8 * hour), 930 + 30 * np.floor(9 * hour))
    elsewhere = np.floor(num_cells * uniform_at(seed, 16, trip)).astype(np.int64)
    free_origin = np.where(way < 0.6, home, np.where(way < 0.8, work, elsewhere))
    free_dest = np.floor(num_cells * uniform_at(seed, 17, trip)).astype(np.int64)
    strict = purpose == STRICT
    origin = np.where(strict, np.where(outward, home, work), free_origin)
    dest = np.where(strict, np.where(outward, work, home), free_dest)
    start = np.where(strict, commute_start, 480 + 30 * np.floor(24 * hour))
    return origin, dest, start, purpose
