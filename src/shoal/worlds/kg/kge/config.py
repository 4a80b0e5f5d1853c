"""`KGEConfig`: how a model is trained, and what suits each kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from shoal.errors import ConfigError, unknown_name

USUAL: dict[str, dict[str, Any]] = {
    "complex": {},
    "rotate": {},
    "rote": {},
    "walks": {"rank": 2, "epochs": 1, "batch_size": 128, "lr": 0.03, "num_negatives": 100, "walk_length": 5},
}
"""What differs from the defaults, by the name of a model."""


@dataclass(frozen=True)
class KGEConfig:
    """How a model is trained."""

    model: Literal["complex", "rotate", "rote", "walks"] = "complex"
    rank: int = 100
    """Complex numbers per entity; for walks the states of the walker."""
    epochs: int = 30
    batch_size: int = 1000
    lr: float = 0.1
    """Of Adagrad; for walks of Adam."""
    regulariser: float = 1e-2
    """Weight of the model's own penalty; walks have none."""
    num_negatives: int | None = None
    """Wrong entities per batch (per question for walks); none is all where these are few, else what suits the model."""
    walk_length: int = 1
    """Facts per question; from 2 on, random walks are asked too, whose ends must be found (Guu et al. 2015). For walks
    the most facts that one may have."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rank", "epochs", "batch_size", "walk_length"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)} leaves nothing to train. It must be at least 1.")
        if self.num_negatives is not None and self.num_negatives < 1:
            raise ConfigError(f"num_negatives={self.num_negatives} must be at least 1, or none.")


def usual_config(model: str, **given: Any) -> KGEConfig:
    """What suits `model`, but for what is `given` and not None."""
    if model not in USUAL:
        raise unknown_name("KGE model", model, USUAL, "`shoal kg train-kge --help`")
    chosen = {name: value for name, value in given.items() if value is not None}
    return KGEConfig(**{"model": model, **USUAL[model], **chosen})
