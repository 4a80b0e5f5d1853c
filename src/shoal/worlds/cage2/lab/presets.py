"""Settings with which CAGE2 is trained, as far as they differ from the defaults."""

from __future__ import annotations

from shoal.training.lab import Preset

_WORKFLOW = {"workflow": "critical_first", "alignment_weight": 30.0}

_DEFENDER = {
    "num_envs": 128,
    "total_steps": 4_000_000,
    "eval_every": 500_000,
    "eval_episodes": 1000,
    "checkpoint_every": 4_000_000,
    "algo": {
        "num_steps": 100,
        "epochs": 3,
        "minibatches": 8,
        "hidden": [64, 64],
        "lr": 1e-3,
        "lr_final": 2e-5,
        "entropy": 0.02,
        "entropy_final": 3e-4,
        "target_kl": None,
        "normalise_obs": False,
        "normalise_reward": True,
    },
}

PRESETS = {
    "ppo": Preset(
        "defends as well as it can: few actions, and all that Blue can know",
        {
            **_DEFENDER,
            "extra": {"user_cost": 0.5},
            "env": {
                "actions": "reduced",
                "mask": "evidence",
                "scan_memory": True,
                "decoy_memory": True,
                "host_memory": True,
            },
        },
    ),
    "winner": Preset(
        "sees what the challenge's winning entry saw",
        {**_DEFENDER, "env": {"actions": "reduced", "scan_memory": True}},
    ),
    "plain": Preset("sees 52 bits and has all 145 actions", _DEFENDER),
    "original": Preset(
        "follows a workflow with the settings of the system that workflows come from",
        {
            "num_envs": 25,
            "total_steps": 125_000,  # at most 50 episodes of 100 steps in every lane
            "eval_episodes": 100,
            "env": {**_WORKFLOW, "compliance": "action-order"},
            "extra": {"stop_compliance": 0.95, "min_episodes": 10},
            "algo": {
                "num_steps": 100,
                "epochs": 4,
                "minibatches": 1,
                "lr": 2e-3,
                "gamma": 0.99,
                "gae_lambda": 1.0,
                "clip": 0.2,
                "entropy": 0.01,
                "target_kl": None,
                "normalise_obs": False,
                "normalise_reward": True,
            },
        },
    ),
    "fast": Preset(
        "follows a workflow with settings that learn in a fraction of the time",
        {
            "num_envs": 50,
            "total_steps": 1_000_000,
            "eval_episodes": 100,
            "env": _WORKFLOW,
            "algo": {
                "num_steps": 100,
                "epochs": 4,
                "minibatches": 4,
                "lr": 2e-3,
                "entropy": 0.01,
                "target_kl": None,
                "normalise_obs": False,
                "normalise_reward": True,
            },
        },
    ),
}
