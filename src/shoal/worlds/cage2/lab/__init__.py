"""What cage2 brings to training, evaluation and play."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from shoal.training.lab import Headline, Lab, NamedPolicy, OwnEvaluation, Verdict
from shoal.worlds.cage2.lab.options import Cage2Evaluation, Cage2Training
from shoal.worlds.cage2.lab.presets import PRESETS
from shoal.worlds.cage2.world import Cage2Options

if TYPE_CHECKING:
    from shoal.training.acting import Player
    from shoal.training.config import TrainConfig
    from shoal.training.hooks import Hooks
    from shoal.vector.batch import Batch


def _hooks(batch: Batch, config: TrainConfig[Cage2Options, Cage2Training]) -> Hooks:
    from shoal.worlds.cage2.lab.hooks import make_hooks

    return make_hooks(config)


def _policies(options: Cage2Options) -> Mapping[str, NamedPolicy]:
    from shoal.worlds.cage2.lab.policies import policies_for

    return policies_for(options)


def _evaluate(player: Player[Cage2Options], how: Cage2Evaluation, episodes: int | None, seed: int) -> Verdict | None:
    """The nine cells of the leaderboard if they were asked for; None for the mean return."""
    if not how.leaderboard:
        return None
    from shoal.worlds.cage2.lab.leaderboard import evaluate

    return evaluate(player, episodes, seed)


LAB = Lab(
    options=Cage2Training,
    presets=PRESETS,
    headlines=(
        Headline("rollout/compliance", "compliance", ".1%"),
        Headline("rollout/env_return", "environment return", ".2f"),
        Headline("rollout/fixes", "fixes", ".1f"),
    ),
    hooks=_hooks,
    policies=_policies,
    default_policy="react-restore",
    evaluation=OwnEvaluation(Cage2Evaluation, _evaluate),
)
