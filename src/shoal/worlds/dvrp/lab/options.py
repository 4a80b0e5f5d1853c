"""What training can be told about negotiation, and settings as the original system counts them.

No torch in here: the command line reads these fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeGuard

from shoal.errors import ConfigError
from shoal.options import Values
from shoal.training.config import TrainConfig
from shoal.training.settings import merge
from shoal.worlds.dvrp.world import DvrpOptions

_MINIBATCH = 480  # transitions that a gradient step should see, about


@dataclass(frozen=True)
class NegotiationOptions:
    """How customers are learned about, and how offers beyond what is known are tried."""

    embedding: Literal["embedding", "filter", "none"] = "embedding"
    """How types are learned: by the embedding model, by the exact filter, or not at all: everything stays allowed."""
    use_purpose: bool = False
    """Read answers by type and purpose of the trip, instead of by type alone."""
    balanced: bool = True
    """Learn from the answers that all offers would have got, as far as trips are known, not only from those made."""
    background: bool = False
    """Update in a thread of its own; the masks change when it is done, at the end of an epoch."""
    epsilon: float = 0.2
    """Share of offers that the masks forbid, at first; it falls to nothing over the run."""
    log_interval: int = 1
    """Epochs between two printed lines."""

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < 1:
            raise ConfigError(f"epsilon must be at least 0 and below 1, not {self.epsilon}.")
        if self.log_interval < 1:
            raise ConfigError(f"log_interval must be at least 1 epoch, not {self.log_interval}.")


@dataclass(frozen=True)
class Counts:
    """Settings in episodes and epochs instead of environment steps. An epoch is one episode in every lane."""

    episodes: int | None = None
    """Episodes in the whole run, instead of total_steps; whole epochs of them are played."""
    save_interval: int | None = None
    """Epochs between checkpoints, instead of checkpoint_every."""
    eval: bool = False
    """Evaluate at the end, which happens anyway."""

    def __post_init__(self) -> None:
        for name in ("episodes", "save_interval"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} must be at least 1, not {value}.")


def translate(counts: Counts, given: Values, base: Values) -> Values:
    """The settings that follow from `counts` and from `given`, where `base` holds otherwise; nested as config.json is.

    A rollout is one episode of every lane: its length follows the number of customers, unless it is given itself.
    """
    (lanes, customers, _), now = _sizes(merge(base, given)), _sizes(base)
    if not (_is_count(lanes) and _is_count(customers)):
        return {}  # whoever checks the settings says why
    epoch, settings = lanes * customers, Values()
    resized = ("num_envs" in given or "customers" in given.get("env", {})) and now != (lanes, customers, customers)
    if resized and merge(base, given).get("algo", {}).get("name", "ppo") == "ppo":
        settings["algo"] = {"num_steps": customers, "minibatches": _parts(epoch)}
    if counts.episodes is not None:
        settings["total_steps"] = max(1, counts.episodes // lanes) * epoch
    if counts.save_interval is not None:
        settings["checkpoint_every"] = counts.save_interval * epoch
    return settings


def _sizes(settings: Values) -> tuple[object, object, object]:
    """Lanes, customers, and steps of a rollout."""
    lanes = settings.get("num_envs", TrainConfig.num_envs)
    customers = settings.get("env", {}).get("customers", DvrpOptions.customers)
    return lanes, customers, settings.get("algo", {}).get("num_steps")


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and value >= 1


def _parts(epoch: int) -> int:
    """The number of equal minibatches whose size is closest to what is wanted."""
    sizes = (size for k in range(_MINIBATCH) for size in (_MINIBATCH + k, _MINIBATCH - k) if epoch % size == 0)
    return epoch // next(sizes)
