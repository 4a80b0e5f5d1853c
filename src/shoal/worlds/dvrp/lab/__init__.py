"""What dvrp brings to training: a network that scores offers, what learns from answers, how savings are measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from shoal.options import NoOptions
from shoal.training.lab import Headline, Lab, NamedPolicy, OwnEvaluation, Shorthands, Verdict
from shoal.worlds.dvrp.lab.options import Counts, NegotiationOptions, translate
from shoal.worlds.dvrp.lab.presets import PRESETS
from shoal.worlds.dvrp.world import DvrpOptions

if TYPE_CHECKING:
    from shoal.training.acting import Player
    from shoal.training.config import TrainConfig
    from shoal.training.hooks import Hooks
    from shoal.worlds.dvrp.lab.network import OfferNetwork
    from shoal.worlds.dvrp.lanes.environment import DvrpBatch

    Config = TrainConfig[DvrpOptions, NegotiationOptions]


def _network(batch: DvrpBatch, config: Config) -> OfferNetwork | None:
    """The network for scaled observations; raw ones are left to the standard network."""
    import gymnasium as gym

    from shoal.worlds.dvrp.lab.network import OfferNetwork

    space = batch.single_observation_space
    return OfferNetwork(space) if isinstance(space, gym.spaces.Dict) else None


def _hooks(batch: DvrpBatch, config: Config) -> Hooks:
    from shoal.training.hooks import Hooks
    from shoal.worlds.dvrp.lab.negotiation import Negotiation

    negotiation = Negotiation(batch, config)
    return Hooks(recorders=(negotiation,), callbacks=(negotiation,))


def _policies(options: DvrpOptions) -> Mapping[str, NamedPolicy]:
    from shoal.worlds.dvrp.lab.policies import POLICIES

    return POLICIES


def _evaluate(player: Player[DvrpOptions], options: NoOptions, episodes: int | None, seed: int) -> Verdict:
    from shoal.worlds.dvrp.lab.evaluation import evaluate

    return evaluate(player, episodes, seed)


LAB: Lab[DvrpOptions, NegotiationOptions] = Lab(
    options=NegotiationOptions,
    presets=PRESETS,
    headlines=(
        Headline("rollout/improvement", "% saved by offers", ".2f"),
        Headline("rollout/cost_km", "cost", ".1f"),
        Headline("rollout/acceptance", "offers accepted", ".1%"),
        Headline("rollout/failure_rate", "fleet too small", ".1%"),
    ),
    network=_network,
    hooks=_hooks,
    policies=_policies,
    default_policy="max",
    evaluation=OwnEvaluation(NoOptions, _evaluate),
    shorthands=Shorthands(Counts, translate),
)
