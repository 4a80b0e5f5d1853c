"""What others have published for Gymnasium's environments, e.g. `shoal train LunarLander-v3 --preset zoo-lunarlander`.

RL Baselines3 Zoo: hyperparams/ppo.yml of DLR-RM/rl-baselines3-zoo. CleanRL: ppo_atari.py of vwxyzjn/cleanrl.
"""

from __future__ import annotations

from shoal.training.lab import Lab, Preset

_AS_PUBLISHED = {"target_kl": None, "normalise_obs": False, "normalise_reward": False}
LAB: Lab = Lab(
    presets={
        "zoo-lunarlander": Preset(
            "PPO for LunarLander, as RL Baselines3 Zoo has it",
            {
                "num_envs": 16,
                "total_steps": 1_000_000,
                "algo": {
                    **_AS_PUBLISHED,
                    "num_steps": 1_024,
                    "epochs": 4,
                    "minibatches": 256,
                    "gamma": 0.999,
                    "gae_lambda": 0.98,
                    "entropy": 0.01,
                },
            },
        ),
        "zoo-bipedalwalker": Preset(
            "PPO for BipedalWalker, as RL Baselines3 Zoo has it",
            {
                "num_envs": 32,
                "total_steps": 5_000_000,
                "algo": {
                    "target_kl": None,
                    "normalise_obs": True,
                    "normalise_reward": True,
                    "num_steps": 2_048,
                    "epochs": 10,
                    "minibatches": 1_024,
                    "gamma": 0.999,
                    "clip": 0.18,
                    "entropy": 0.0,
                },
            },
        ),
        "cleanrl-atari": Preset(
            "PPO for Atari games, 40 million frames, as CleanRL has it",
            {
                "num_envs": 8,
                "total_steps": 10_000_000,
                "algo": {
                    **_AS_PUBLISHED,
                    "num_steps": 128,
                    "epochs": 4,
                    "minibatches": 4,
                    "lr": 2.5e-4,
                    "lr_final": 0.0,
                    "clip": 0.1,
                    "value_clip": 0.1,
                    "value_weight": 0.25,
                },
            },
        ),
    }
)
