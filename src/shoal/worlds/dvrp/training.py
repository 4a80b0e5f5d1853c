"""What dvrp brings to training: a network that compares the sixteen offers."""

from __future__ import annotations

from typing import Any


def build_network(batch: Any, config: Any) -> Any:
    """The network for lanes that quote their offers; None leaves others to the standard one."""
    from shoal.worlds.dvrp.networks import make_network

    return make_network(batch)
