"""Who can be watched and played against: the two built-in bots and small trained networks that come with Shoal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import ConfigError, missing_extra

DEFAULT = "sac"
BOTS = ("weak", "strong")
STORED = Path(__file__).with_name("stored")


def find_policy(name: str, env: dict[str, Any]) -> tuple[dict[str, Any], Callable[[Any], Any]]:
    """Options of the lanes and a maker of the policy, for a bot or a stored policy."""
    if name in BOTS:
        return {"player": name}, SeatedBot
    actor = StoredActor(name)
    return {"hold": actor.hold}, lambda batch: actor


def stored_policies() -> dict[str, Path]:
    """Trained policies that come with Shoal, by name; each file says which command made it."""
    return {path.stem: path for path in sorted(STORED.glob("*.safetensors"))}


class StoredActor:
    """A stored policy, as lanes ask it."""

    def __init__(self, name: str = DEFAULT) -> None:
        stored = stored_policies()
        if name not in stored:
            names = ", ".join(map(repr, (*BOTS, *stored, "random")))
            raise ConfigError(f"hockey has no policy {name!r}. Use {names}, or name a run folder.")
        try:
            from shoal.agents.frozen import FrozenPolicy

            self._policy = FrozenPolicy.load(stored[name])
        except ImportError:
            raise missing_extra("safetensors", "train", f"The policy {name!r}") from None
        self.name, self.hold = name, self._policy.hold

    def __call__(self, obs: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """[B, 18] -> [B, 4]."""
        if obs.shape[-1] != self._policy.num_features:
            raise ConfigError(
                f"The policy {self.name!r} plays with keep mode and observations of {self._policy.num_features} "
                f"numbers, not {obs.shape[-1]}. Leave --keep-mode as it is."
            )
        return self._policy(obs)

    def forget(self, ended: np.ndarray) -> None:
        """Nothing is remembered."""


class SeatedBot:
    """A bot plays inside the lanes; the actions given from outside mean nothing."""

    def __init__(self, batch: Any) -> None:
        self._nothing = np.zeros(batch.action_space.shape, batch.action_space.dtype)

    def __call__(self, obs: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        return self._nothing

    def forget(self, ended: np.ndarray) -> None:
        """Nothing is remembered."""
