"""What the negotiating agent sees: one row per booked request, and the one now asking in the last row."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.worlds.dvrp.lanes.city import City
from shoal.worlds.dvrp.lanes.offers import ACTIONS, MINUTES, NO_OFFER
from shoal.worlds.dvrp.lanes.pool import Pool
from shoal.worlds.dvrp.lanes.settings import Settings

_MOST = 10.0  # tens of km; a vehicle beyond the fleet costs as much


class Encoder:
    """Turns the raw table [B, n, 6] of cells and minutes into the observation that the settings ask for."""

    def __init__(self, city: City, pool: Pool, settings: Settings) -> None:
        self._settings, self._num_trips, n = settings, pool.origin.shape[1], settings.customers
        high = np.array([city.num_cells, MINUTES, MINUTES] * 2, np.float32)
        self._scale = 1 / high
        self._xy = np.asarray(city.coordinates(), np.float32) / 10  # tens of km: about -1 to 1 in a city
        if settings.obs_mode == "raw":
            self.space: gym.Space = gym.spaces.Box(np.float32(0), np.broadcast_to(high, (n, 6)), dtype=np.float32)
            return
        spaces: dict[str, gym.Space] = {
            "requests": gym.spaces.Box(0, 1, (n, 6), np.float32),
            "progress": gym.spaces.Box(0, 1, (1,), np.float32),
            "mask": gym.spaces.Box(0, 1, (len(ACTIONS),), np.float32),
            "customer": gym.spaces.Discrete(pool.size + 1),
        }
        if settings.trip_ids:
            spaces["trip"] = gym.spaces.Discrete(pool.origin.size + 1)
        if settings.quotes:
            spaces["quotes"] = gym.spaces.Box(-_MOST, _MOST, (len(ACTIONS) + 1,), np.float32)
        if settings.coordinates:
            reach = float(np.abs(self._xy).max())
            spaces["coordinates"] = gym.spaces.Box(-reach, reach, (n, 4), np.float32)
        self.space = gym.spaces.Dict(spaces)

    def encode(
        self,
        table: np.ndarray,
        step: np.ndarray,
        mask: np.ndarray,
        customer: np.ndarray,
        trip: np.ndarray,
        quotes: np.ndarray | None,
    ) -> np.ndarray | dict[str, np.ndarray]:
        """The observation after `step` [B] bookings.

        Args:
            table: [B, n, 6] raw; mask: [B, 16]; customer: [B] who asks, from 1, 0 for nobody.
            trip: [B] which of the customer's trips is asked for, from 0.
            quotes: [B, 16] km that the request would cost under every offer, or None if they are not shown.
        """
        if self._settings.obs_mode == "raw":
            return table
        obs: dict[str, np.ndarray] = {
            "requests": table * self._scale,
            "progress": (step[:, None] / self._settings.customers).astype(np.float32),
            "mask": mask.astype(np.float32),
            "customer": customer.astype(np.int64),
        }
        if self._settings.trip_ids:
            obs["trip"] = np.where(customer > 0, 1 + (customer - 1) * self._num_trips + trip, 0).astype(np.int64)
        if quotes is not None:
            unshifted = quotes[:, [NO_OFFER]]
            obs["quotes"] = np.clip(np.concatenate([unshifted - quotes, unshifted], 1) / 10, -_MOST, _MOST)
        if self._settings.coordinates:
            ends = self._xy[table[..., ::3].astype(np.int64)]  # [B, n, 2, 2]
            filled = table[..., 4:5] > 0  # a dropoff never opens at midnight
            obs["coordinates"] = ends.reshape(*table.shape[:2], 4) * filled
        return obs
