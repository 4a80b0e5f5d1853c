"""Experiments as folders hold them, without training: curves that rise to given scores."""

import json

from shoal.experiments.folder import Outcome, create_experiment, write_outcome
from shoal.training.settings import config_values, resolve_config

REPLAY = {"title": "", "renderer": "cartpole", "script": "{aspect: 1, draw() {}}", "fps": 30, "meta": {}}
LANE = {"lane": 0, "frames": [[0, 0], [1, 1]], "actions": [0], "rewards": [1.0], "end": "terminated"}


def experiment(folder, name, scores, world="cartpole", points=20, **settings):
    """An experiment of one seed per score, with everything that a report reads."""
    config = config_values(resolve_config(world, {"total_steps": 1000, **settings}))
    made = create_experiment(folder, config, range(len(scores)), "shoal train", name)
    for seed, score in enumerate(scores):
        run = made.run(seed)
        (run / "replays").mkdir(parents=True)
        rows = [
            {"step": 1000 * k // points, "rollout/ep_rew_mean": score * k / points, "time/time_elapsed": k / 10}
            for k in range(1, points + 1)
        ]
        for k in (points // 2, points):
            rows[k - 1]["eval/mean_reward"] = score * k / points
        (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (run / "evaluations.jsonl").write_text("")
        (run / "config.json").write_text(json.dumps({**config, "seed": seed}))
        (run / "system.json").write_text("{}")
        (run / "replays" / "step_1000.json").write_text(json.dumps({**REPLAY, "lanes": [LANE]}))
        write_outcome(run, Outcome("all 1,000 steps done", 1000, 1000, float(score), 2.0))
    return made
