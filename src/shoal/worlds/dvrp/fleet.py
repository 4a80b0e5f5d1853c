"""The fleet and its prices: what a plan must keep to, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.dvrp.city import DAY, City


@dataclass(frozen=True)
class Fleet:
    """Cost = driven distance + `vehicle_penalty` for every vehicle beyond `size`. Waiting is free."""

    size: int = 5
    """Vehicles that cost nothing extra."""
    capacity: int = 4
    """Seats; every request takes one."""
    vehicle_penalty: float = 100.0
    """Price of a vehicle beyond the fleet, in km (or minutes, see `cost_matrix`)."""
    service_time: int = 0
    """Seconds that a pickup or a dropoff takes."""
    cost_matrix: Literal["distance", "duration"] = "distance"
    """Pay by kilometre, or by minute driven."""

    def __post_init__(self) -> None:
        if self.capacity < 1 or self.size < 0:
            raise ConfigError(f"A fleet of {self.size} vehicles with {self.capacity} seats serves nobody.")
        if self.vehicle_penalty < 0 or self.service_time < 0:
            raise ConfigError(
                f"vehicle_penalty={self.vehicle_penalty} and service_time={self.service_time} must not be negative."
            )
        if self.cost_matrix not in ("distance", "duration"):
            raise ConfigError(f"cost_matrix={self.cost_matrix!r} is unknown. Use 'distance' or 'duration'.")

    @property
    def unit(self) -> int:
        """Entries of the price matrix per unit of cost: metres per km, or seconds per minute."""
        return 1000 if self.cost_matrix == "distance" else 60

    @property
    def penalty(self) -> int:
        """`vehicle_penalty` in the unit of the price matrix."""
        return round(self.vehicle_penalty * self.unit)

    def price(self, city: City) -> np.ndarray:
        """[H, H] int32: what driving from row to column costs, in metres or seconds."""
        if self.cost_matrix == "duration":
            return city.duration
        if city.distance is None:
            raise ConfigError("This city has no distance matrix. Load one, or set cost_matrix='duration'.")
        return city.distance


def find_unservable(city: City, fleet: Fleet, cells: np.ndarray, tw: np.ndarray) -> np.ndarray:
    """Requests that not even a vehicle of their own could serve.

    Args:
        cells: [..., N] nodes: the depot, then pickup and dropoff of every request.
        tw: [..., N, 2] seconds.

    Returns:
        [..., n] bool.
    """
    pickup, dropoff = cells[..., 1::2], cells[..., 2::2]
    open_p, close_p = tw[..., 1::2, 0], tw[..., 1::2, 1]
    open_d, close_d = tw[..., 2::2, 0], tw[..., 2::2, 1]
    start = np.maximum(city.duration[city.depot, pickup], open_p)
    end = np.maximum(start + fleet.service_time + city.duration[pickup, dropoff], open_d)
    home = end + fleet.service_time + city.duration[dropoff, city.depot]
    return (start > close_p) | (end > close_d) | (home > DAY)
