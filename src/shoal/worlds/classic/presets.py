"""Settings with which the classic worlds learn: `PRESETS[world][agent]`, what differs from the defaults."""

from __future__ import annotations

PRESETS: dict[str, dict[str, dict]] = {
    "cartpole": {
        "ppo": {
            "num_envs": 64,
            "total_steps": 200_000,
            "eval_every": 40_000,
            "algo": {"num_steps": 32, "epochs": 10, "minibatches": 8, "lr": 1e-3, "lr_final": 0.0, "gamma": 0.98},
        }
    },
    "acrobot": {
        "ppo": {
            "num_envs": 64,
            "total_steps": 1_000_000,
            "eval_every": 200_000,
            "algo": {"num_steps": 128, "epochs": 4, "minibatches": 8, "lr": 1e-3, "normalise_obs": True},
        }
    },
    "pendulum": {
        "ppo": {
            "num_envs": 64,
            "total_steps": 1_000_000,
            "eval_every": 200_000,
            "algo": {"num_steps": 64, "epochs": 10, "minibatches": 16, "lr": 1e-3, "gamma": 0.9},
        }
    },
    "mountaincar": {
        "ppo": {
            "num_envs": 64,
            "total_steps": 2_000_000,
            "eval_every": 400_000,
            "algo": {"num_steps": 64, "minibatches": 8, "lr": 1e-3, "normalise_obs": True, "normalise_reward": True},
        }
    },
    "mountaincar-continuous": {
        "ppo": {
            "num_envs": 64,
            "total_steps": 1_000_000,
            "eval_every": 200_000,
            "algo": {"num_steps": 128, "minibatches": 8, "lr": 1e-3, "normalise_obs": True, "normalise_reward": True},
        }
    },
}
