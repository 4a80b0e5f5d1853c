"""The suites by name. A new suite is one module with `run(argv) -> exit code`, and one line here."""

from __future__ import annotations

SUITES = {
    "kg": ("shoal.bench.kg", "proof search: the compiled engine, the tensor engine, and lanes on worker processes"),
    "offpolicy": ("shoal.bench.offpolicy", "SAC and DDDQN on hockey, learning included, against Stable-Baselines3"),
    "oracle": ("shoal.bench.oracle", "routing oracles of dvrp against proven optima"),
    "rllib": ("shoal.bench.rllib", "RLlib on Shoal's lanes by mode, and the other bridges, against their own batches"),
    "runners": ("shoal.bench.runners", "what training on Ray costs, and what that predicts for more runners"),
    "step": ("shoal.bench.step.suite", "environment steps per second against the peers installed here"),
    "train": ("shoal.bench.train", "PPO on CartPole, learning included, against the peers installed here"),
    "workflow": ("shoal.bench.workflow", "PPO on cage2 that follows a workflow, with the original's settings"),
}
