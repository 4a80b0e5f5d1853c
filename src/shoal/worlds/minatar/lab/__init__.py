"""Settings with which the games learn."""

from __future__ import annotations

from shoal.training.lab import Lab, Preset

_PPO = Preset(
    "learns within minutes",
    {
        "num_envs": 64,
        "total_steps": 2_000_000,
        "eval_every": 500_000,
        "algo": {
            "num_steps": 128,
            "epochs": 4,
            "minibatches": 8,
            "lr": 2.5e-3,
            "lr_final": 0.0,
            "entropy": 0.01,
            "target_kl": None,
            "normalise_obs": False,
            "normalise_reward": False,
            "hidden": (128, 128),
            "activation": "relu",
        },
    },
)
_DDDQN = Preset(
    "the same from a replay memory",
    {
        "num_envs": 16,
        "total_steps": 2_000_000,
        "eval_every": 200_000,
        "algo": {
            "num_steps": 16,
            "updates_per_step": 0.1,
            "warmup": 5_000,
            "batch_size": 128,
            "replay_capacity": 100_000,
            "lr": 5e-4,
            "n_step": 3,
            "hidden": (128, 128),
            "explore": 0.1,
            "epsilon_final": 0.02,
        },
    },
)
GAME: Lab = Lab(presets={"ppo": _PPO, "dddqn": _DDDQN})
"""The five games are learned by the same settings, as they are meant to be."""
