"""What dvrp brings to training: a network that compares the sixteen offers, and learning who accepts which."""

from __future__ import annotations

from typing import Any, Literal

from shoal.worlds.dvrp.hooks import make_hooks


def build_network(batch: Any, config: Any) -> Any:
    """The network for lanes that quote their offers; None leaves others to the standard one."""
    from shoal.worlds.dvrp.networks import make_network

    return make_network(batch)


def build_hooks(
    batch: Any,
    config: Any,
    *,
    embedding: Literal["embedding", "filter", "none"] = "embedding",
    use_purpose: bool = False,
    background: bool = False,
    epsilon: float = 0.2,
    log_interval: int = 1,
) -> dict[str, Any]:
    """Fields of the trainer's hooks: records of answers, masks from them, exploration, and a line per epoch."""
    return make_hooks(
        config.env,
        embedding=embedding,
        use_purpose=use_purpose,
        background=background,
        epsilon=epsilon,
        log_interval=log_interval,
    )
