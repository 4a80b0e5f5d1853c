"""Settings with which dvrp is trained. `ppo` (the default) is what learns best here."""

from __future__ import annotations

from shoal.training.lab import Preset

_EPOCHS, _LANES, _CUSTOMERS = 200, 64, 30
_STEPS = _LANES * _CUSTOMERS
_RUN = {"num_envs": _LANES, "checkpoint_every": 10 * _STEPS, "eval_episodes": 64}

PRESETS = {
    "ppo": Preset(
        "what learns best: quotes, habits, reward against the same episode without offers",
        {
            **_RUN,
            "total_steps": _EPOCHS * _STEPS,
            "env": {"quotes": True, "trip_ids": True, "compare_noop": True, "reward": "vs_noop_path"},
            "algo": {
                "num_steps": _CUSTOMERS,
                "minibatches": 4,
                "epochs": 4,
                "lr": 1.5e-3,
                "lr_final": 2e-4,
                "gamma": 1.0,
                "entropy": 0.003,
                "target_kl": None,
                "normalise_obs": False,
                "normalise_reward": True,
            },
        },
    ),
    "original": Preset(
        "the settings of the original system",
        {
            **_RUN,
            "total_steps": 15 * _STEPS,
            "env": {"compare_noop": True},
            "algo": {
                "num_steps": _CUSTOMERS,
                "minibatches": 30,
                "epochs": 10,
                "entropy": 0.05,
                "target_kl": None,
                "normalise_obs": False,
                "normalise_reward": True,
            },
        },
    ),
}
