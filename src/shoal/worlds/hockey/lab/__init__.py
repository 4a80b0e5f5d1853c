"""The lab of hockey: presets, self-play and curricula, games against the bots, tournaments, and a page to play on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.options import NoOptions, Values
from shoal.training.lab import Headline, Lab, NamedPolicy, OwnEvaluation, Tournament, Verdict
from shoal.world import World
from shoal.worlds.hockey.lab.options import PRESETS, SEARCH, HockeyTraining
from shoal.worlds.hockey.world import HockeyOptions

if TYPE_CHECKING:
    from shoal.training.acting import Player
    from shoal.training.config import TrainConfig
    from shoal.training.hooks import Hooks
    from shoal.vector.batch import Batch

STORED = Path(__file__).with_name("stored")


def _hooks(batch: Batch, config: TrainConfig[HockeyOptions, HockeyTraining]) -> Hooks:
    from shoal.worlds.hockey.lab.hooks import make_hooks

    return make_hooks(batch, config)


def _policies(options: HockeyOptions) -> Mapping[str, NamedPolicy]:
    from shoal.worlds.hockey.lab.policies import named_policies

    return named_policies()


def _evaluate(player: Player[HockeyOptions], options: NoOptions, episodes: int | None, seed: int) -> Verdict:
    from shoal.worlds.hockey.lab.games import evaluate

    return evaluate(player, episodes, seed)


def _read_curriculum(values: Values, path: Path) -> Values:
    from shoal.worlds.hockey.lab.curriculum_settings import settings_from

    return settings_from(values, path)


def _tournament(world: World[HockeyOptions]) -> Tournament:
    from shoal.worlds.hockey.lab import games

    return games


def _serve(opponent: str | None) -> int:
    from shoal.worlds.hockey.lab.keyboard import serve

    return serve(opponent)


LAB: Lab[HockeyOptions, HockeyTraining] = Lab(
    options=HockeyTraining,
    presets=PRESETS,
    headlines=(
        Headline("eval/won_weak", "won against weak", ".1%"),
        Headline("eval/won_strong", "won against strong", ".1%"),
        Headline("curriculum/won", "won lately", ".1%"),
        Headline("curriculum/rating", "rating", ".1f"),
    ),
    hooks=_hooks,
    policies=_policies,
    stored=STORED,
    default_policy="sac",
    evaluation=OwnEvaluation(NoOptions, _evaluate),
    read_curriculum=_read_curriculum,
    search=SEARCH,
    tournament=_tournament,
    serve=_serve,
)
