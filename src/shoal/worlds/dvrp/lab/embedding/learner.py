"""From answers to masks, on a schedule: collect, update after every interval, hand out new masks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch

from shoal.errors import ConfigError
from shoal.worlds.dvrp.lab.embedding.habits import balance, learn_chances, no_idea
from shoal.worlds.dvrp.lab.embedding.model import TypeModel, fit
from shoal.worlds.dvrp.lab.embedding.records import FIELDS, NUM_TYPES, Records, posterior
from shoal.worlds.dvrp.lab.options import NegotiationOptions
from shoal.worlds.dvrp.lanes.offers import ACTIONS, compute_masks_from_flexibility

PASSES, LEARNING_RATE = 50, 1e-3
MIN_RECORDS, MIN_PER_CUSTOMER, MIN_CUSTOMERS, MIN_ACTIONS = 64, 3, 2, 3  # without these there is no update
State = Mapping[str, torch.Tensor | np.ndarray]
"""What a learner remembers, by name."""


class Update(NamedTuple):
    """What an update has learned."""

    types: np.ndarray  # [K] the likeliest type of every customer
    told: np.ndarray  # [K] bool: customers who have answered often enough
    chances: np.ndarray  # [K, M, 16]
    words: str


class TypeLearner:
    """Knows every customer's mask and the chances of offers on every trip, and learns better ones from answers."""

    def __init__(
        self, size: tuple[int, int], interval: int, options: NegotiationOptions, seed: int, say: Callable[[str], None]
    ) -> None:
        """For `size` customers and trips. Update every `interval` steps, and `say` a sentence about each update."""
        if interval < 1:
            raise ConfigError(f"The embedding interval must be at least 1 step, not {interval}.")
        self.interval, self.options, self._say = interval, options, say
        self.records = Records()
        num_customers, num_trips = size
        self.masks = np.ones((num_customers, len(ACTIONS)), np.bool_)
        self.chances = no_idea(num_customers, num_trips)  # [K, M, 16]
        self.types = np.full(num_customers, -1)
        self.last_update = 0
        self.model = TypeModel(num_customers, torch.Generator().manual_seed(seed))
        self.optimizer = torch.optim.Adam(self.model.parameters(), LEARNING_RATE)
        self._thread: threading.Thread | None = None
        self._update: Update | None = None

    def maybe_update(self, total_steps: int) -> bool:
        """Update if it is time; returns whether the masks have changed."""
        if self.options.embedding == "none":
            return False
        due = total_steps - self.last_update >= self.interval
        if due and self._thread is None:
            self.last_update = total_steps
            self._begin_update()
        return self._finish_update(wait=not self.options.background)

    def flexibility_distribution(self) -> np.ndarray:
        """[4] how many customers are believed to be of each type; those not yet known are left out."""
        return np.bincount(self.types[self.types >= 0], minlength=NUM_TYPES)

    # ------------------------------------------------------------------ updates

    def _begin_update(self) -> None:
        counts = self.records.counts(len(self.masks))
        told = counts.sum((1, 2, 3)) >= MIN_PER_CUSTOMER
        counts = counts * told[:, None, None, None]
        offered = int((counts.sum((0, 1, 3)) > 0).sum())
        if len(self.records) < MIN_RECORDS:
            self._say(f"embedding: no update, {len(self.records)} records are fewer than {MIN_RECORDS}.")
        elif told.sum() < MIN_CUSTOMERS or offered < MIN_ACTIONS:
            self._say(
                f"embedding: no update, {told.sum()} customers with {MIN_PER_CUSTOMER} records and {offered} "
                f"different offers; {MIN_CUSTOMERS} and {MIN_ACTIONS} are needed."
            )
        else:
            size = self.chances.shape[:2]
            arguments = (counts, told, self.records.trip_counts(*size), self.records.purposes(*size))
            self._thread = threading.Thread(target=self._learn, args=arguments, name="shoal-embedding")
            self._thread.start()

    def _learn(self, counts: np.ndarray, told: np.ndarray, trips: np.ndarray, purposes: np.ndarray) -> None:
        records = f"{counts.sum():,} records of {told.sum()} customers"
        chances = learn_chances(trips)
        if self.options.balanced:
            counts = balance(trips, chances, purposes, counts.shape[1]) * told[:, None, None, None]
        if self.options.embedding == "filter":
            types, words = posterior(counts, self.options.use_purpose).argmax(1), "exact filter"
        else:
            result = fit(self.model, self.optimizer, counts, PASSES, self.options.use_purpose)
            types = result.probabilities.argmax(1)
            words = f"loss {result.first_loss:.4f} to {result.last_loss:.4f}"
        self._update = Update(types, told, chances, f"embedding: {records}, {words}")

    def _finish_update(self, wait: bool) -> bool:
        """Take over what an update has learned, if it is done (or after waiting for it)."""
        if self._thread is None:
            return False
        if wait:
            self._thread.join()
        elif self._thread.is_alive():
            return False
        self._thread = None
        if self._update is None:  # the thread ended in an error, which it has printed
            raise ConfigError("The embedding update failed; its error is above.")
        (types, told, self.chances, words), self._update = self._update, None
        self.types = np.where(told, types, self.types)
        self.masks[told] = compute_masks_from_flexibility(types[told])
        self._say(f"{words}, flexibility distribution {self.flexibility_distribution().tolist()}")
        return True

    # ------------------------------------------------------------------ persistence

    def state_dict(self) -> dict[str, torch.Tensor | np.ndarray]:
        """Model, optimiser, records, masks and counters; waits for an update that is under way."""
        self._finish_update(wait=True)
        state: dict[str, torch.Tensor | np.ndarray] = {
            f"model.{name}": tensor.clone() for name, tensor in self.model.state_dict().items()
        }
        for i, moments in self.optimizer.state_dict()["state"].items():
            state |= {f"optimizer.{i}.{name}": torch.as_tensor(value).clone() for name, value in moments.items()}
        state |= {f"records.{name}": self.records.data[name].copy() for name in FIELDS}
        state |= {name: getattr(self, name).copy() for name in ("masks", "types", "chances")}
        state["counters"] = np.array([self.records.total, self.last_update])
        return state

    def load_state_dict(self, state: State) -> None:
        """Go on where `state_dict` left off."""
        self.model.load_state_dict(_below("model.", state))
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for name, tensor in _below("optimizer.", state).items():
            index, _, field = name.partition(".")
            moments.setdefault(int(index), {})[field] = tensor
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        for name in FIELDS:
            self.records.data[name][:] = np.asarray(state[f"records.{name}"])
        for name in ("masks", "types", "chances"):
            setattr(self, name, np.asarray(state[name]).copy())
        self.records.total, self.last_update = (int(n) for n in np.asarray(state["counters"]))


def _below(prefix: str, state: State) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): torch.as_tensor(v) for name, v in state.items() if name.startswith(prefix)}
