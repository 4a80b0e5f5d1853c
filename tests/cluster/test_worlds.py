"""Every world on runners: the numbers of one process, with whatever the world adds to the loop."""

import json

import pytest
import ray

import shoal
from shoal.cluster.start import start_local
from tests.cluster.test_fleet import told
from tests.worlds.kg.lanes.data.test_dataset import COUNTRIES

PPO = {"num_steps": 8, "minibatches": 2, "epochs": 1, "hidden": [16], "lr": 1e-3}
OFF_POLICY = {"num_steps": 4, "hidden": [16, 16], "batch_size": 32, "warmup": 64, "replay_capacity": 2000, "n_step": 3}
COMMON = {"num_envs": 8, "eval_episodes": 2, "seed": 3, "quiet": True}


def small(algo, iterations, **settings):
    """Settings of a run of a few iterations that stops half-way for a checkpoint."""
    steps = 8 * algo["num_steps"]
    return {**COMMON, "total_steps": steps * iterations, "checkpoint_every": steps * 3, "algo": algo, **settings}


PHASES = [
    {"name": "shoot", "steps": 640, "environment": {"mode": "TRAIN_SHOOTING"}, "opponent": {"type": "none"},
     "reward_bonus": {}},
    {"name": "play", "episodes": 30, "reward_shaping": {}, "opponent": {"type": "weighted_mixture", "opponents": [
        {"type": "basic_weak", "weight": 1}, {"type": "self_play", "weight": 1}]}},
]  # fmt: skip
RUNS = {
    "kg, a curriculum of depths": (
        "kg",
        small(
            {**PPO, "hidden": [32, 32]}, 6, data=str(COUNTRIES), max_states=16, embedding_size=16,
            state_encoder="role", curriculum=[2, 4],
            # its network works on as many rows as there are distinct states: a few must not be next to none
            num_envs=48, total_steps=48 * 8 * 6,
        ),
    ),
    "dvrp, embedding and exploration": (
        "dvrp",
        small({**PPO, "minibatches": 2}, 12, customers=8, embedding="filter", epsilon=0.3),
    ),
    "cage2, two orders dealt out and a rule that stops": (
        "cage2",
        small(
            {**PPO, "num_steps": 10}, 8, red="bline,meander,sleep", length=[10, 12], workflow=[7, 3],
            alignment_weight=1.0, user_cost=0.5, max_episodes=40,
        ),
    ),
    "hockey, opponents by lane": (
        "hockey",
        small({"name": "sac", **OFF_POLICY, "noise": "pink"}, 20, opponent=["weak", "strong", "none", "mixed"] * 2),
    ),
    "hockey, self-play from a pool": (
        "hockey",
        small(
            {"name": "sac", **OFF_POLICY}, 100, opponent="pool", self_play=0.6, pool_every=400, both_players=True,
            checkpoint_every=1600,
        ),
    ),
    "hockey, discrete with a curriculum": (
        "hockey",
        small(
            {"name": "dddqn", **OFF_POLICY}, 60, opponent="pool", actions="eight",
            curriculum={"curriculum": {"phases": PHASES}},
        ),
    ),
    "cartpole with sac, discrete": ("cartpole", small({"name": "sac", **OFF_POLICY}, 40)),
    "cage2 with dddqn and masks": (
        "cage2", small({"name": "dddqn", **OFF_POLICY, "prioritised": True}, 20, mask="useful", length=20)
    ),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def local_ray():
    with start_local(num_cpus=2):
        yield
    assert not ray.is_initialized()


FAST = ("cage2, two orders", "hockey, self-play")
"""One of each loop; every test starts two processes that load and compile a world, which takes its time."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name.startswith(FAST) else pytest.mark.slow) for name in RUNS]
)
def test_two_runners_are_one_process(tmp_path, name):
    world, settings = RUNS[name]
    alone = shoal.train(world, runs_dir=tmp_path / "alone", **settings)
    shared = shoal.train(world, runs_dir=tmp_path / "shared", runners=2, **settings)
    mine, theirs = told(shared.run), told(alone.run)
    assert json.loads((shared.run / "config.json").read_text())["runners"] == 2
    assert shared.reason == alone.reason
    assert mine["rows"] == theirs["rows"]
    assert mine["episodes"] == theirs["episodes"]
    assert mine["evaluations"] == theirs["evaluations"]
    assert mine["weights"].keys() == theirs["weights"].keys()
    assert [key for key, value in theirs["weights"].items() if mine["weights"][key] != value] == []
