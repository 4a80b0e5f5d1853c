"""Settings with which hockey is trained: `PRESETS["hockey"][agent]`, what differs from the defaults."""

from __future__ import annotations

PRESETS: dict[str, dict[str, dict]] = {
    "hockey": {
        "ppo": {
            "num_envs": 256,
            "total_steps": 10_000_000,
            "eval_every": 2_000_000,
            "eval_episodes": 200,
            "checkpoint_every": 2_000_000,
            "env": {"opponent": "mixed"},
            "algo": {
                "num_steps": 64,
                "minibatches": 4,
                "lr": 1e-3,
                "lr_final": 1e-4,
                "normalise_obs": True,
                "normalise_reward": True,
                "hidden": (128, 128),
            },
        },
    },
}
