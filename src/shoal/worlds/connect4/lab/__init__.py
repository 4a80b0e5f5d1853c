"""The lab of Connect Four."""

from __future__ import annotations

from dataclasses import replace

from shoal.games.lab import LAB as GAME
from shoal.training.lab import Headline, Preset

PRESETS = {
    "ppo": Preset(
        "in one seat, against itself and its past",
        {
            "num_envs": 256, "total_steps": 30_000_000, "eval_every": 3_000_000, "eval_episodes": 100,
            "checkpoint_every": 3_000_000,
            "extra": {
                "seats": "versus", "opponents": ("itself=2", "pool=6", "depth2=1", "depth4=1"), "pool_every": 500_000,
            },
            "algo": {
                "num_steps": 64, "minibatches": 8, "epochs": 3, "lr": 1e-3, "lr_final": 1e-4, "gamma": 0.99,
                "gae_lambda": 0.9, "entropy": 0.01, "hidden": (256, 256),
            },
        },
    ),
}  # fmt: skip


def _serve(opponent: str | None) -> int:
    from shoal.worlds.connect4.lab.mouse import serve

    return serve(opponent)


LAB = replace(
    GAME,
    presets=PRESETS,
    serve=_serve,
    headlines=(
        Headline("eval/won_random", "won against random", ".1%"),
        Headline("eval/won_depth2", "won against depth 2", ".1%"),
        Headline("eval/won_depth4", "won against depth 4", ".1%"),
        *GAME.headlines,
    ),
)
