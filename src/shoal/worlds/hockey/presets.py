"""Settings with which hockey is trained: `PRESETS["hockey"][agent]`, what differs from the defaults."""

from __future__ import annotations

OFF_POLICY = {
    "num_steps": 16,
    "updates_per_step": 0.125,
    "warmup": 20_000,
    "n_step": 3,
    "lr": 1e-3,
    "hidden": (128, 128, 128),
    "scale_obs": True,
}

ON_POLICY = {
    "num_steps": 64,
    "minibatches": 4,
    "lr": 1e-3,
    "lr_final": 1e-4,
    "normalise_obs": True,
    "normalise_reward": True,
    "hidden": (128, 128),
}

PRESETS: dict[str, dict[str, dict]] = {
    "hockey": {
        "ppo": {
            "num_envs": 256,
            "total_steps": 10_000_000,
            "eval_every": 2_000_000,
            "eval_episodes": 200,
            "checkpoint_every": 2_000_000,
            "env": {"opponent": "mixed"},
            "algo": ON_POLICY,
        },
        "sac": {
            "num_envs": 64,
            "total_steps": 1_500_000,
            "eval_every": 100_000,
            "eval_episodes": 100,
            "checkpoint_every": 100_000,
            "env": {"opponent": "mixed"},
            "extra": {"mirror": True},
            "algo": {**OFF_POLICY, "lr_final": 4e-4, "pessimism_final": 0.4},
        },
        "dddqn": {
            "num_envs": 64,
            "total_steps": 800_000,
            "eval_every": 100_000,
            "eval_episodes": 100,
            "checkpoint_every": 200_000,
            "env": {"opponent": "mixed", "actions": "combined", "hold": 4},
            "extra": {"mirror": True},
            "algo": {
                **OFF_POLICY,
                "lr_final": 1e-4,
                "gamma": 0.96,
                "tau": 0.005,
                "loss": "squared",
                "explore": 0.05,
                "reward_scale": 0.2,
            },
        },
        "self-play": {
            "num_envs": 64,
            "total_steps": 500_000,
            "eval_every": 100_000,
            "eval_episodes": 100,
            "checkpoint_every": 200_000,
            "env": {"opponent": "pool"},
            "extra": {"mirror": True, "both_players": True, "self_play": 0.6, "pool_every": 50_000},
            "algo": {**OFF_POLICY, "lr": 3e-4, "lr_final": 3e-5, "pessimism": 0.0},
        },
        "ppo-self-play": {
            "num_envs": 256,
            "total_steps": 10_000_000,
            "eval_every": 2_000_000,
            "eval_episodes": 200,
            "checkpoint_every": 2_000_000,
            "env": {"opponent": "pool"},
            "extra": {"self_play": 0.6, "pool_every": 500_000},
            "algo": {**ON_POLICY, "lr": 5e-4, "lr_final": 5e-5},
        },
    },
}
