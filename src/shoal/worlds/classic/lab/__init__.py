"""Settings with which the classic worlds learn, and rules that solve them without learning.

`tests/training/test_learning.py` shows that each reaches its threshold, from every seed it tries.
"""

from __future__ import annotations

from shoal.training.lab import Lab, Preset
from shoal.worlds.classic.lab.controllers import balance, policies_of, pump_elbow, rock, rock_continuous, swing_up

_AS_IT_IS = {"entropy": 0.0, "target_kl": None, "normalise_obs": False, "normalise_reward": False}
CARTPOLE: Lab = Lab(
    presets={
        "ppo": Preset(
            "a perfect policy in seconds",
            {
                "num_envs": 64,
                "total_steps": 200_000,
                "eval_every": 40_000,
                "algo": {
                    **_AS_IT_IS,
                    "num_steps": 32,
                    "epochs": 10,
                    "minibatches": 8,
                    "lr": 1e-3,
                    "lr_final": 0.0,
                    "gamma": 0.98,
                },
            },
        ),
        "dddqn": Preset(
            "the same from a replay memory",
            {
                "num_envs": 8,
                "total_steps": 120_000,
                "eval_every": 20_000,
                "algo": {
                    "num_steps": 16,
                    "updates_per_step": 0.5,
                    "warmup": 1_000,
                    "batch_size": 128,
                    "replay_capacity": 100_000,
                    "lr": 1e-3,
                    "lr_final": 0.0,
                    "gamma": 0.97,
                    "reward_scale": 0.1,
                    "n_step": 3,
                    "target_every": 200,
                    "hidden": (64, 64),
                    "explore": 0.3,
                    "epsilon_final": 0.02,
                },
            },
        ),
    },
    policies=policies_of(balance),
    default_policy="controller",
)
ACROBOT: Lab = Lab(
    presets={
        "ppo": Preset(
            "above the bar within a hundred steps",
            {
                "num_envs": 64,
                "total_steps": 500_000,
                "eval_every": 100_000,
                "algo": {
                    **_AS_IT_IS,
                    "num_steps": 128,
                    "epochs": 4,
                    "minibatches": 8,
                    "lr": 1e-3,
                    "lr_final": 0.0,
                    "normalise_obs": True,
                },
            },
        ),
    },
    policies=policies_of(pump_elbow),
    default_policy="controller",
)
PENDULUM: Lab = Lab(
    presets={
        "ppo": Preset(
            "upright within a second",
            {
                "num_envs": 64,
                "total_steps": 400_000,
                "eval_every": 100_000,
                "algo": {
                    **_AS_IT_IS,
                    # a whole episode: no lane ends early, so a shorter rollout would show all in the same part
                    "num_steps": 200,
                    "epochs": 10,
                    "minibatches": 32,
                    "lr": 1e-3,
                    "lr_final": 0.0,
                    "gamma": 0.95,
                    "gae_lambda": 0.9,
                    "normalise_reward": True,
                },
            },
        ),
        "sac": Preset(
            "as good in a fraction of the steps",
            {
                "num_envs": 8,
                "total_steps": 16_000,
                "eval_every": 4_000,
                "algo": {
                    "num_steps": 25,
                    "warmup": 1_000,
                    "lr": 1e-3,
                    "lr_final": 1e-4,
                    "gamma": 0.98,
                    "tau": 0.01,
                    "replay_capacity": 100_000,
                    "hidden": (64, 64),
                },
            },
        ),
    },
    policies=policies_of(swing_up),
    default_policy="controller",
)
MOUNTAINCAR: Lab = Lab(
    presets={
        "ppo": Preset(
            "the flag within 120 steps",
            {
                "num_envs": 64,
                "total_steps": 1_000_000,
                "eval_every": 200_000,
                "algo": {
                    **_AS_IT_IS,
                    "num_steps": 16,
                    "epochs": 4,
                    "minibatches": 8,
                    "lr": 1e-3,
                    "lr_final": 0.0,
                    "gae_lambda": 0.98,
                    "normalise_obs": True,
                    "normalise_reward": True,
                },
            },
        ),
    },
    policies=policies_of(rock),
    default_policy="controller",
)
MOUNTAINCAR_CONTINUOUS: Lab = Lab(
    presets={
        "ppo": Preset(
            "the flag with little thrust",
            {
                "num_envs": 64,
                "total_steps": 400_000,
                "eval_every": 100_000,
                "algo": {
                    **_AS_IT_IS,
                    "num_steps": 128,
                    "epochs": 4,
                    "minibatches": 8,
                    "lr": 1e-3,
                    "lr_final": 0.0,
                    "normalise_obs": True,
                    "normalise_reward": True,
                },
            },
        ),
    },
    policies=policies_of(rock_continuous),
    default_policy="controller",
)
