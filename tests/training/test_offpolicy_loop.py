"""Agents with a replay memory in the loop: exact resume, updates counted in steps, true successors in the memory."""

import numpy as np
import pytest

import shoal
from shoal.agents.config import DDDQNConfig, SACConfig
from shoal.errors import ConfigError, RunError
from shoal.training.checkpoint import Checkpoints
from shoal.training.config import TrainConfig, find_algo
from shoal.training.loop import Loop
from shoal.training.metrics import deterministic, read_rows
from tests.toy import Walk
from tests.training.in_memory import Memory, assert_resumes_exactly

SMALL = {"num_steps": 4, "hidden": (16,), "batch_size": 16, "warmup": 64, "replay_capacity": 200}
VARIANTS = {
    "sac": (SACConfig(**SMALL), {"actions": "box"}),
    "sac by autograd, scaled": (SACConfig(**SMALL, fast=False, scale_obs=True), {"actions": "box"}),
    "sac n-step by priority, pink": (SACConfig(**SMALL, n_step=3, prioritised=True, noise="pink"), {"actions": "box"}),
    "sac discrete": (SACConfig(**SMALL), {"masked": True}),
    "dddqn": (DDDQNConfig(**SMALL), {}),
    "dddqn n-step by priority, masked dict": (
        DDDQNConfig(**SMALL, n_step=4, prioritised=True, tau=0.01, updates_per_step=0.3),
        {"masked": True, "obs": "dict"},
    ),
}


def make_loop(algo, total_steps=640, num_envs=8, **walk):
    config = TrainConfig("walk", num_envs, total_steps, seed=3, checkpoint_every=256, algo=algo)
    batch = Walk(num_envs, **walk)
    spaces = batch.single_observation_space, batch.single_action_space
    return Loop(batch, find_algo(algo.name).agent_class()(*spaces, algo, seed=3), config, Memory())


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_resumed_run_ends_with_the_same_weights_and_metrics(variant):
    algo, walk = VARIANTS[variant]
    assert_resumes_exactly(lambda: make_loop(algo, **walk))


@pytest.mark.parametrize("num_envs", [1, 4, 16])
@pytest.mark.parametrize("ratio", [0.25, 1.0])
def test_updates_are_counted_in_environment_steps_whatever_the_lanes(num_envs, ratio):
    algo = DDDQNConfig(**{**SMALL, "updates_per_step": ratio})
    loop = make_loop(algo, total_steps=512, num_envs=num_envs)
    loop.train()
    # the iteration that ends the warm-up earns the first updates
    learned_from = 512 - (64 - num_envs * 4)
    assert loop.agent.num_updates == int(ratio * learned_from)


@pytest.mark.parametrize("num_envs", [1, 4, 16])
def test_by_the_rule_of_the_batch_more_lanes_make_as_many_updates_per_batch_step(num_envs):
    loop = make_loop(DDDQNConfig(**{**SMALL, "update_rule": "batch"}), total_steps=512, num_envs=num_envs)
    loop.train()
    assert loop.agent.num_updates == (512 - (64 - num_envs * 4)) // num_envs


def test_a_warm_up_shorter_than_a_batch_loses_no_updates():
    loop = make_loop(DDDQNConfig(**{**SMALL, "warmup": 8, "batch_size": 100}), total_steps=200, num_envs=2)
    loop.train()
    assert loop.agent.num_updates == 200


@pytest.mark.parametrize("n_step", [1, 3])
def test_observations_are_scaled_however_short_the_warm_up(n_step):
    algo = SACConfig(**{**SMALL, "warmup": 8, "batch_size": 100, "scale_obs": True, "n_step": n_step})
    loop = make_loop(algo, total_steps=200, num_envs=2, actions="box")
    loop.train()
    assert (loop.agent.scale != 1.0).any()


def test_the_memory_holds_true_successors_also_where_episodes_end():
    algo = DDDQNConfig(**{**SMALL, "replay_capacity": 1000})
    loop = make_loop(algo, total_steps=160, num_envs=2, limit=5)
    loop.train()
    rows, at = loop.agent.replay.window(), loop.agent.columns
    place, clock = rows[:, at.obs].T
    moved = place + 0.3 * (rows[:, at.action][:, 0] - 1)
    np.testing.assert_allclose(rows[:, at.next_obs], np.stack([moved, clock + 0.2], 1), atol=1e-5)
    np.testing.assert_allclose(rows[:, at.reward], 1 - abs(moved), atol=1e-5)
    beyond = np.abs(moved) > 2
    np.testing.assert_allclose(rows[:, at.discount], np.where(beyond, 0.0, 0.99))
    assert (clock > 0.7).any(), "episodes that the clock ended are among them, with their discount"


def test_a_run_on_disk_resumes_exactly_with_its_replay_memory(tmp_path):
    settings = {
        "num_envs": 4, "checkpoint_every": 600, "runs_dir": tmp_path, "quiet": True,
        "algo": {**SMALL, "name": "sac", "prioritised": True, "n_step": 2},
    }  # fmt: skip
    whole = shoal.train("pendulum", total_steps=1600, **settings)
    part = shoal.train("pendulum", total_steps=1600, hooks=None, **{**settings, "seed": 0})
    assert [deterministic(row) for row in read_rows(whole.run / "metrics.jsonl")] == [
        deterministic(row) for row in read_rows(part.run / "metrics.jsonl")
    ]
    # go back to the first checkpoint, as after a kill: rows written since then lie in the spare places
    for folder in sorted((part.run / "checkpoints").glob("step_*"), key=lambda f: int(f.name[5:]))[1:]:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    first = next((part.run / "checkpoints").glob("step_*")).name
    (part.run / "checkpoints" / "latest").unlink()
    (part.run / "checkpoints" / "latest").write_text(first)
    resumed = shoal.train(resume=part.run, quiet=True)
    assert [deterministic(row) for row in read_rows(whole.run / "metrics.jsonl")] == [
        deterministic(row) for row in read_rows(resumed.run / "metrics.jsonl")
    ]
    arrays = (Checkpoints(part.run / "checkpoints").folder_of("latest") / "arrays.safetensors").stat().st_size
    assert arrays < 100_000, "the memory itself is not copied into the checkpoint"


def test_a_replay_file_that_was_changed_is_refused(tmp_path):
    algo = {**SMALL, "name": "sac"}
    run = shoal.train("pendulum", total_steps=400, num_envs=4, runs_dir=tmp_path, quiet=True, algo=algo).run
    file = run / "replay" / "rows.f32"
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(RunError, match=r"rows\.f32 has [\d,]+ bytes instead of"):
        shoal.train(resume=run, total_steps=800, quiet=True)


def test_a_memory_smaller_than_one_round_of_steps_is_refused():
    with pytest.raises(ConfigError, match="Raise replay_capacity to at least 256"):
        TrainConfig("walk", num_envs=64, algo=DDDQNConfig(**SMALL))


def test_run_folders_say_how_many_lanes(tmp_path):
    run = shoal.train("pendulum", total_steps=40, num_envs=3, runs_dir=tmp_path, quiet=True, algo="sac").run
    assert run.name.endswith("_vec3")
