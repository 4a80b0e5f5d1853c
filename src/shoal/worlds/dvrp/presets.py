"""Settings with which dvrp is trained: what differs from the defaults."""

from __future__ import annotations

PRESETS: dict[str, dict[str, dict]] = {
    "dvrp": {
        "ppo": {
            "num_envs": 64,
            "total_steps": 192_000,  # 100 epochs of one episode of 30 requests in every lane
            "eval_every": 48_000,
            "eval_episodes": 256,
            "algo": {"num_steps": 30, "minibatches": 4},
        },
    },
}
