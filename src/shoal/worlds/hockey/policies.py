"""Who can be watched and played against: the two built-in bots and a small trained network that comes with Shoal."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import ConfigError, missing_extra

DEFAULT = "agent"
BUNDLED = files(__package__) / "agent.safetensors"
BOTS = ("weak", "strong")
STORED = Path(__file__).with_name("stored")


def find_policy(name: str, env: dict[str, Any]) -> tuple[dict[str, Any], Callable[[Any], Any]]:
    """Options of the lanes and a maker of the policy, for "agent", "weak" or "strong"."""
    if name in BOTS:
        return {"player": name}, SeatedBot
    if name == DEFAULT:
        return {}, lambda batch: Agent()
    stored = stored_policies()
    if name in stored:
        actor = StoredActor(stored[name])
        return {"hold": actor.hold}, lambda batch: actor
    names = ", ".join(map(repr, (DEFAULT, *BOTS, *stored, "random")))
    raise ConfigError(f"hockey has no policy {name!r}. Use {names}, or name a run folder.")


def stored_policies() -> dict[str, Path]:
    """Trained policies that come with Shoal, by name; each file says which command made it."""
    return {path.stem: path for path in sorted(STORED.glob("*.safetensors"))}


class StoredActor:
    """A stored policy, as lanes ask it."""

    def __init__(self, path: Path) -> None:
        from shoal.agents.frozen import FrozenPolicy

        self._policy = FrozenPolicy.load(path)
        self.hold = self._policy.hold

    def __call__(self, obs: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """[B, 18] -> [B, 4]."""
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


class Agent:
    """The bundled network: tanh layers on normalised observations, the mean of its actions."""

    def __init__(self, stored_in: Any = BUNDLED) -> None:
        """`stored_in` is a file that `bundle` wrote."""
        try:
            from safetensors.numpy import load
        except ImportError:
            raise missing_extra("safetensors", "train", "The bundled agent") from None
        stored = load(stored_in.read_bytes())
        self._mean, self._scale = stored["mean"], stored["scale"]
        self._layers = [(stored[f"weight_{k}"], stored[f"bias_{k}"]) for k in range(len(stored) // 2 - 1)]

    def __call__(self, obs: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """[B, 18] -> [B, 4]."""
        if obs.shape[-1] != len(self._mean):
            raise ConfigError(
                f"The bundled agent plays with keep mode and observations of {len(self._mean)} numbers, not "
                f"{obs.shape[-1]}. Leave --keep-mode as it is."
            )
        x = np.clip((obs - self._mean) * self._scale, -10.0, 10.0)
        for k, (weight, bias) in enumerate(self._layers):
            x = x @ weight + bias
            if k < len(self._layers) - 1:
                x = np.tanh(x)
        return np.clip(x, -1.0, 1.0).astype(np.float32)

    def forget(self, ended: np.ndarray) -> None:
        """Nothing is remembered."""
