"""The lab of Connect Four."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.games.lab import LAB as GAME
from shoal.training.lab import Headline, NamedPolicy, Preset
from shoal.worlds.connect4.world import Connect4Options

if TYPE_CHECKING:
    from shoal.agents.offpolicy import Mirror

STORED = Path(__file__).with_name("stored")

PRESETS = {
    "ppo": Preset(
        "in one seat, against the bots that look ahead",
        {
            "num_envs": 256, "total_steps": 18_000_000, "eval_every": 2_500_000, "eval_episodes": 100,
            "checkpoint_every": 250_000,
            "extra": {
                "seats": "versus", "opponents": ("depth2=4", "depth4=3", "depth6", "random=1.5", "one-ply=0.5"),
                "eval_against": ("random", "depth2", "depth4"),
            },
            "algo": {
                "num_steps": 64, "minibatches": 8, "epochs": 2, "lr": 7e-4, "lr_final": 2e-5, "gae_lambda": 0.9,
                "entropy": 0.01, "entropy_final": 0.002, "hidden": (256, 256), "activation": "relu",
                "target_kl": None, "normalise_obs": False, "normalise_reward": False,
            },
        },
    ),
}  # fmt: skip


def _policies(options: Connect4Options) -> Mapping[str, NamedPolicy]:
    from shoal.agents.frozen import FrozenPolicy, stored_policies
    from shoal.games.lab.entrants import Seated

    def named(policy: FrozenPolicy) -> NamedPolicy:
        about = f"trained by `{policy.about['command']}`"
        return NamedPolicy(about, lambda batch: Seated(policy, batch.single_observation_space))

    return {name: named(FrozenPolicy.load(path)) for name, path in stored_policies(STORED).items()}


def _mirror(options: Connect4Options) -> Mirror:
    """Left and right change places."""
    import numpy as np

    from shoal.agents.offpolicy import Mirror
    from shoal.worlds.connect4.lanes.board import CELLS, COLUMNS

    cells = np.arange(2 * CELLS).reshape(-1, COLUMNS)[:, ::-1].ravel()
    order = np.append(cells, 2 * CELLS)
    return Mirror(np.ones(len(order), np.float32), np.arange(COLUMNS)[::-1].copy(), order)


def _serve(opponent: str | None) -> int:
    from shoal.worlds.connect4.lab.mouse import serve

    return serve(opponent)


LAB = replace(
    GAME,
    presets=PRESETS,
    mirror=_mirror,
    policies=_policies,
    stored=STORED,
    default_policy="ppo",
    serve=_serve,
    by_hand=True,
    headlines=(
        Headline("eval/won_random", "won against random", ".1%"),
        Headline("eval/won_depth2", "won against depth 2", ".1%"),
        Headline("eval/won_depth4", "won against depth 4", ".1%"),
        *GAME.headlines,
    ),
)
