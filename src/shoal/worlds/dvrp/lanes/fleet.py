"""The fleet and its prices: what a plan must keep to, and what it costs. The command line reads these fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shoal.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

    from shoal.worlds.dvrp.lanes.city import City


@dataclass(frozen=True)
class Vehicles:
    """What a vehicle carries, and what driving and stopping cost."""

    capacity: int = 4
    """Seats; every request takes one."""
    vehicle_penalty: float = 100.0
    """Price of a vehicle beyond the fleet, in km (or minutes, see `cost_matrix`)."""
    service_time: int = 0
    """Seconds that a pickup or a dropoff takes."""
    cost_matrix: Literal["distance", "duration"] = "distance"
    """Pay by kilometre, or by minute driven."""

    def __post_init__(self) -> None:
        if self.capacity < 1:
            raise ConfigError(f"capacity must be at least 1 seat, not {self.capacity}.")
        for name in ("vehicle_penalty", "service_time"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must not be negative, but is {getattr(self, name)}.")


@dataclass(frozen=True)
class Fleet(Vehicles):
    """Cost = driven distance + `vehicle_penalty` for every vehicle beyond `size`. Waiting is free."""

    size: int = 5
    """Vehicles that cost nothing extra."""

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
