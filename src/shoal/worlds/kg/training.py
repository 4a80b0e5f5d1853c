"""What kg brings to training: a network that scores the successors of a state."""

from __future__ import annotations

from typing import Any


def build_network(batch: Any, config: Any) -> Any:
    """The policy network for the lanes of `batch`."""
    from shoal.worlds.kg.network import make_network

    return make_network(batch, config.algo, config.seed)
