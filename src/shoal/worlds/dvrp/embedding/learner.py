"""From answers to masks, on a schedule: collect, update every so many steps, hand out new masks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from shoal.errors import ConfigError
from shoal.worlds.dvrp.embedding.habits import balance, learn_chances, no_idea
from shoal.worlds.dvrp.embedding.model import TypeModel, fit
from shoal.worlds.dvrp.embedding.records import FIELDS, NUM_TYPES, Records, posterior
from shoal.worlds.dvrp.offers import ACTIONS, compute_masks_from_flexibility

PASSES = 50
LEARNING_RATE = 1e-3
MIN_RECORDS = 64
MIN_PER_CUSTOMER = 3
MIN_CUSTOMERS = 2
MIN_ACTIONS = 3


@dataclass(frozen=True)
class LearnerSettings:
    """How types are learned."""

    method: Literal["embedding", "filter", "none"] = "embedding"
    """The embedding model, the exact filter, or no learning: everything stays allowed."""
    use_purpose: bool = False
    """Read answers by type and purpose of the trip, instead of by type alone."""
    balanced: bool = True
    """Learn from the answers that all offers would have got, as far as trips are known, not from those made alone."""
    background: bool = False
    """Update in a thread of its own; the masks change when it is done, at the end of an epoch."""
    seed: int = 0
    """Initial weights."""


class TypeLearner:
    """Knows every customer's mask and the chances of offers on every trip, and learns better ones from answers."""

    def __init__(
        self, num_customers: int, num_trips: int, interval: int, settings: LearnerSettings, say: Callable[[str], None]
    ) -> None:
        """Update every `interval` environment steps; `say` is told one sentence about each update."""
        if interval < 1:
            raise ConfigError(f"An embedding interval of {interval} steps is none. Use at least 1.")
        self.interval, self.settings, self._say = interval, settings, say
        self.records = Records()
        self.masks = np.ones((num_customers, len(ACTIONS)), np.bool_)
        self.chances = no_idea(num_customers, num_trips)  # [K, M, 16]
        self.types = np.full(num_customers, -1)
        self.last_update = 0
        generator = torch.Generator().manual_seed(settings.seed)
        self.model = TypeModel(num_customers, generator)
        self.optimizer = torch.optim.Adam(self.model.parameters(), LEARNING_RATE)
        self._thread: threading.Thread | None = None
        self._found: tuple[np.ndarray, np.ndarray, np.ndarray, str] | None = None

    def maybe_update(self, total_steps: int) -> bool:
        """Update if it is time; returns whether the masks have changed."""
        if self.settings.method == "none":
            return False
        due = total_steps - self.last_update >= self.interval
        if due and self._thread is None:
            self.last_update = total_steps
            self._begin_update()
        return self._finish_update(wait=not self.settings.background)

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
            trips, purposes = self.records.trip_counts(*size), self.records.purposes(*size)
            arguments = (counts, told, trips, purposes)
            self._thread = threading.Thread(target=self._update, args=arguments, name="shoal-embedding")
            self._thread.start()

    def _update(self, counts: np.ndarray, told: np.ndarray, trips: np.ndarray, purposes: np.ndarray) -> None:
        records = f"{counts.sum():,} records of {told.sum()} customers"
        chances = learn_chances(trips)
        if self.settings.balanced:
            counts = balance(trips, chances, purposes, counts.shape[1]) * told[:, None, None, None]
        if self.settings.method == "filter":
            types, words = posterior(counts, self.settings.use_purpose).argmax(1), "exact filter"
        else:
            result = fit(self.model, self.optimizer, counts, PASSES, self.settings.use_purpose)
            types = result.probabilities.argmax(1)
            words = f"loss {result.first_loss:.4f} to {result.last_loss:.4f}"
        self._found = types, told, chances, f"embedding: {records}, {words}"

    def _finish_update(self, wait: bool) -> bool:
        """Take over what an update has found, if it is done (or after waiting for it)."""
        if self._thread is None:
            return False
        if wait:
            self._thread.join()
        elif self._thread.is_alive():
            return False
        self._thread = None
        if self._found is None:  # the thread ended in an error, which it has printed
            raise ConfigError("The embedding update failed; its error is above.")
        (types, told, self.chances, words), self._found = self._found, None
        self.types = np.where(told, types, self.types)
        self.masks[told] = compute_masks_from_flexibility(types[told])
        self._say(f"{words}, flexibility distribution {self.flexibility_distribution().tolist()}")
        return True

    # ------------------------------------------------------------------ persistence

    def state_dict(self) -> dict[str, Any]:
        """Model, optimiser, records, masks and counters; waits for an update that is under way."""
        self._finish_update(wait=True)
        state: dict[str, Any] = {f"model.{name}": tensor.clone() for name, tensor in self.model.state_dict().items()}
        for i, moments in self.optimizer.state_dict()["state"].items():
            state |= {f"optimizer.{i}.{name}": torch.as_tensor(value).clone() for name, value in moments.items()}
        state |= {f"records.{name}": self.records.data[name].copy() for name in FIELDS}
        state |= {name: getattr(self, name).copy() for name in ("masks", "types", "chances")}
        state["counters"] = np.array([self.records.total, self.last_update])
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
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


def _below(prefix: str, state: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): torch.as_tensor(v) for name, v in state.items() if name.startswith(prefix)}
