"""The lab of spread."""

from __future__ import annotations

from dataclasses import replace

from shoal.games.lab import LAB as GAME
from shoal.training.lab import Preset

PRESETS = {
    "ppo": Preset(
        "one network for all three particles",
        {
            "num_envs": 32, "total_steps": 2_000_000, "eval_every": 500_000, "eval_episodes": 300,
            "checkpoint_every": 1_000_000,
            "extra": {"seats": "shared"},
            "algo": {
                "num_steps": 25, "minibatches": 4, "epochs": 8, "lr": 1e-3, "lr_final": 1e-4, "gamma": 0.9,
                "entropy": 0.0, "target_kl": None, "hidden": (128, 128),
                "normalise_obs": True, "normalise_reward": True,
            },
        },
    ),
}  # fmt: skip

LAB = replace(GAME, presets=PRESETS, headlines=())
