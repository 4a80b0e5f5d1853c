"""What kg brings to training: a network that scores the successors of a state, statistics of proofs, a curriculum."""

from __future__ import annotations

from typing import Any

from shoal.errors import ConfigError


def build_network(batch: Any, config: Any) -> Any:
    """The policy network for the lanes of `batch`."""
    from shoal.worlds.kg.network import make_network

    return make_network(batch, config.algo)


def build_hooks(batch: Any, config: Any, *, curriculum: list[int] | None = None) -> dict[str, Any]:
    """Proof statistics in the log, and with `curriculum` phases of rising depth.

    Args:
        curriculum: greatest annotated depths of the training queries, e.g. [2, 3, 6]: each lasts an equal share of the
            run, and a last phase asks every query.
    """
    from shoal.worlds.kg.progress import DepthCurriculum, ProofStatistics

    statistics = ProofStatistics(batch.data.kb.vocabulary)
    hooks: dict[str, Any] = {"recorders": (statistics,), "callbacks": (statistics,)}
    if curriculum is not None:
        if not isinstance(curriculum, list) or not all(isinstance(depth, int) for depth in curriculum):
            raise ConfigError(f"curriculum={curriculum!r} is no list of depths. Write e.g. --curriculum [2,3,6].")
        hooks["curriculum"] = DepthCurriculum(batch, curriculum, config.total_steps)
    return hooks
