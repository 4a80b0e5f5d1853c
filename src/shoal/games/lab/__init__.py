"""The lab of every world with seats: who learns where, opponents and their pool, evaluation and tournaments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.games.lab.options import GameTraining, weights_of
from shoal.options import NoOptions
from shoal.training.lab import Headline, Lab, OwnEvaluation, Tournament, Verdict

if TYPE_CHECKING:
    from shoal.training.acting import Player
    from shoal.training.config import TrainConfig
    from shoal.training.hooks import Hooks
    from shoal.vector.batch import Batch
    from shoal.world import World


def _lanes(batch: Batch, training: GameTraining) -> Batch:
    """Lanes to learn in: every seat a row, or one seat against opponents, at first the bots among them."""
    from shoal.games.lanes.rows import SeatRows
    from shoal.games.lanes.versus import VersusBatch

    if training.seats == "shared":
        return SeatRows(batch)
    seat = VersusBatch(batch)
    weights = weights_of(training.opponents)
    shares = [weights.get(bot, 0.0) for bot in seat.bots]
    seat.set_opponents([], shares if sum(shares) > 0 else [1.0] * len(shares))
    return seat


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
    hooks=_hooks,
    evaluation=OwnEvaluation(NoOptions, _evaluate),
    tournament=_tournament,
)
"""For kernels with seats that have no door of their own; worlds that have one put theirs on top of it."""
