"""Settings with which knowledge graphs are learned: `PRESETS["kg"][name]`, what differs from the defaults.

`ppo` (the default) needs no data; the others are named after the data set that they suit, to be given with `--data`.
"""

from __future__ import annotations

_PPO = {"num_steps": 32, "epochs": 4, "minibatches": 8, "lr": 1e-3, "lr_final": 1e-4, "hidden": (128, 128, 128)}
_LEARNING = {**_PPO, "entropy": 0.05, "entropy_final": 0.005, "value_clip": 0.2, "target_kl": 0.07}

PRESETS: dict[str, dict[str, dict]] = {
    "kg": {
        "ppo": {
            "num_envs": 128,
            "total_steps": 300_000,
            "eval_episodes": 200,
            "env": {"end_action": True, "max_depth": 10, "state_encoder": "role"},
            "algo": _LEARNING,
        },
        "countries_s3": {
            "num_envs": 128,
            "total_steps": 600_000,
            "eval_episodes": 200,
            "env": {
                "max_states": 20,
                "max_depth": 10,
                "end_action": True,
                "corruption": ["tail"],
                "state_encoder": "role",
            },
            "algo": _LEARNING,
        },
        "family": {
            "num_envs": 128,
            "total_steps": 1_500_000,
            "eval_episodes": 200,
            "env": {"max_states": 130, "max_depth": 6, "end_action": True, "state_encoder": "role"},
            "algo": _LEARNING,
        },
        "wn18rr": {
            "num_envs": 128,
            "total_steps": 1_000_000,
            "eval_episodes": 200,
            "env": {"max_states": 64, "max_depth": 6, "end_action": True, "state_encoder": "role"},
            "algo": _LEARNING,
        },
    },
}
