"""What dvrp brings to training: the network that scores offers, and what follows the customers' answers."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym

from shoal.errors import ConfigError


def build_network(batch: Any, config: Any) -> Any:
    """The network for scaled observations; raw ones are left to the standard network."""
    space = batch.single_observation_space
    if not isinstance(space, gym.spaces.Dict):
        return None
    from shoal.worlds.dvrp.network import OfferNetwork

    return OfferNetwork(space)


def build_hooks(
    batch: Any,
    config: Any,
    *,
    embedding: Literal["embedding", "filter", "none"] = "embedding",
    use_purpose: bool = False,
    balanced: bool = True,
    background: bool = False,
    epsilon: float = 0.2,
    log_interval: int = 1,
) -> dict[str, tuple]:
    """Fields of the trainer's hooks. Raw observations do not show the customer, so nothing is learned about them."""
    if config.algo.name != "ppo":
        raise ConfigError(f"Negotiation explores beyond its masks by PPO's behaviour; {config.algo.name} has none.")
    from shoal.worlds.dvrp.embedding.learner import LearnerSettings
    from shoal.worlds.dvrp.negotiation import Negotiation

    method = embedding if batch.settings.obs_mode == "scaled" else "none"
    learning = LearnerSettings(method, use_purpose, balanced, background, config.seed)
    negotiation = Negotiation(batch, config, learning, epsilon, log_interval)
    return {"recorders": (negotiation,), "callbacks": (negotiation,)}
