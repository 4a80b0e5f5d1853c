"""Settings with which knowledge graphs are learned: `PRESETS["kg"][name]`, what differs from the defaults.

`ppo` (the default) needs no data; the others are named after the data set that they suit, to be given with `--data`.
"""

from __future__ import annotations

from typing import Any

_LEARNING = {
    "num_steps": 32,
    "epochs": 4,
    "minibatches": 4,
    "lr": 1e-3,
    "lr_final": 1e-4,
    "hidden": (64, 64),
    "entropy": 0.05,
    "entropy_final": 0.005,
    "value_clip": 0.2,
    "target_kl": 0.07,
}
# resolving a goal with a constant first keeps states small: the network's cost follows the number of successors
_LANES = {"end_action": True, "state_encoder": "role", "embedding_size": 32, "selection": "bound_first"}


def _preset(total_steps: int, learning: dict[str, Any], **env: Any) -> dict[str, Any]:
    algo, env = {**_LEARNING, **learning}, {**_LANES, **env}
    return {"num_envs": 256, "total_steps": total_steps, "eval_episodes": 200, "env": env, "algo": algo}


_EAGER = {"minibatches": 8, "lr": 2e-3}

PRESETS: dict[str, dict[str, dict]] = {
    "kg": {
        "ppo": _preset(300_000, _EAGER, max_states=64, max_depth=10),
        "countries_s3": _preset(260_000, _EAGER, max_states=20, max_depth=10, corruption=["tail"]),
        "family": _preset(160_000, {}, max_states=32, max_depth=4),
        "wn18rr": _preset(66_000, {}, max_states=32, max_depth=4, embedding_size=16),
    },
}
