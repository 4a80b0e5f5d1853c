"""The lab of every world with seats: who learns where, opponents and their pool, evaluation and tournaments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.games.lab.options import GameTraining, weights_of
from shoal.options import NoOptions
from shoal.training.lab import Headline, Lab, MakeAgent, OwnEvaluation, Tournament, Verdict

if TYPE_CHECKING:
    from torch import nn

    from shoal.agents.agent import Agent
    from shoal.training.acting import Player
    from shoal.training.config import TrainConfig
    from shoal.training.hooks import Hooks
    from shoal.vector.batch import Batch
    from shoal.world import World


def _lanes(batch: Batch, training: GameTraining) -> Batch:
    """Lanes to learn in: every seat a row, all at once, or one against opponents, at first the bots among them."""
    from shoal.games.lanes.joint import JointBatch
    from shoal.games.lanes.numbered import NumberedSeats
    from shoal.games.lanes.rows import CentralRows, RoleRows, SeatRows
    from shoal.games.lanes.versus import VersusBatch

    if training.seat_number:
        batch = NumberedSeats(batch)
    if training.seats == "shared":
        return CentralRows(batch) if training.central_value else SeatRows(batch)
    if training.seats == "separate":
        return RoleRows(batch, training.roles)
    if training.seats == "joint":
        return JointBatch(batch)
    seat = VersusBatch(batch)
    weights = weights_of(training.opponents)
    shares = [weights.get(bot, 0.0) for bot in seat.bots]
    seat.set_opponents([], shares if sum(shares) > 0 else [1.0] * len(shares))
    return seat


def _network(batch: Batch, config: TrainConfig[Any, GameTraining]) -> nn.Module | None:
    from shoal.games.lab.learners import central_network

    return central_network(batch, config)


def _agent(batch: Batch, config: TrainConfig[Any, GameTraining], make: MakeAgent) -> Agent | None:
    from shoal.games.lab.learners import separate_agents

    return separate_agents(batch, config, make)


def _hooks(batch: Batch, config: TrainConfig[Any, GameTraining]) -> Hooks:
    from shoal.games.lab.hooks import make_hooks

    return make_hooks(batch, config)


def _evaluate(player: Player[Any], options: NoOptions, episodes: int | None, seed: int) -> Verdict | None:
    from shoal.games.lab.tournament import evaluate

    return evaluate(player, options, episodes, seed)


def _tournament(world: World[Any]) -> Tournament:
    from shoal.games.lab.tournament import SeatTournament

    return SeatTournament(world)


LAB: Lab[Any, GameTraining] = Lab(
    options=GameTraining,
    headlines=(Headline("games/rating", "rating", ".1f"),),
    lanes=_lanes,
    network=_network,
    agent=_agent,
    hooks=_hooks,
    evaluation=OwnEvaluation(NoOptions, _evaluate),
    tournament=_tournament,
)
"""For kernels with seats that have no door of their own; worlds that have one put theirs on top of it."""
