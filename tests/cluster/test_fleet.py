"""Our own trainer on Ray: the same numbers as in one process, and losses that hurt nobody."""

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import ray

import shoal
from shoal.agents.rollout import Rollout
from shoal.cluster.fleet import Fleet
from shoal.cluster.start import start_local
from shoal.errors import ConfigError, LaneFault, RunError
from shoal.registry import as_world
from shoal.training.hooks import Hooks
from shoal.training.loop import Clock
from shoal.training.opening import make_agent
from shoal.training.settings import resolve_config
from shoal.trees import copy_tree, index_tree, named_leaves
from tests.cluster.slow import hold, wait_until_held
from tests.runs.test_train import everything_that_repeats

SMALL = {
    "num_envs": 8,
    "total_steps": 8 * 16 * 6,
    "checkpoint_every": 8 * 16 * 3,
    "eval_episodes": 2,
    "seed": 5,
    "quiet": True,
    "algo": {
        "num_steps": 16, "minibatches": 2, "epochs": 2, "hidden": [16], "lr": 1e-3,
        "normalise_obs": True, "normalise_reward": True,
    },
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def local_ray():
    """Two logical CPUs are enough: no test has more than two runners at once."""
    with start_local(num_cpus=2):
        yield
    assert not ray.is_initialized()


def told(run):
    """What a run left behind, without what only runners log and where they keep their lanes."""
    left = everything_that_repeats(run)
    left["rows"] = [{k: v for k, v in row.items() if not k.startswith("runners/")} for row in left["rows"]]
    left["weights"] = {k: v for k, v in left["weights"].items() if not k.startswith("batch.")}
    return left


class StopAfter:
    """Ends a run after so many iterations."""

    def __init__(self, iterations):
        self.iterations = iterations

    def reason_to_stop(self, loop):
        return "enough" if loop.iteration >= self.iterations else None


def test_two_runners_are_one_process_bit_for_bit_also_when_resumed(tmp_path, monkeypatch):
    stored, put = [], ray.put
    monkeypatch.setattr(ray, "put", lambda value: stored.append(value) or put(value))
    alone = shoal.train("cartpole", runs_dir=tmp_path, **SMALL)
    shared = shoal.train("cartpole", runs_dir=tmp_path, runners=2, hooks=Hooks(stop_rules=(StopAfter(3),)), **SMALL)
    shoal.train(resume=shared.run, quiet=True)
    mine, theirs = told(shared.run), told(alone.run)
    assert mine["weights"] == theirs["weights"]
    assert mine["episodes"] == theirs["episodes"]
    # stopping early adds an evaluation, which the other run had no reason for
    assert [_learning(row) for row in mine["rows"]] == [_learning(row) for row in theirs["rows"]]
    assert len(stored) == 6  # the weights of every version once, however many runners


def _learning(row):
    return {name: value for name, value in row.items() if name.startswith(("train/", "rollout/"))}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "env"),
    [("tests.training.worlds:ArrayWalk", {}), ("tests.training.worlds:EnvWalk", {"backend": "serial"})],
)
def test_every_kind_of_batch_is_the_same_on_runners(tmp_path, world, env):
    alone = shoal.train(world, runs_dir=tmp_path, env=env, **SMALL)
    shared = shoal.train(world, runs_dir=tmp_path, env=env, runners=2, **SMALL)
    assert told(shared.run) == told(alone.run)


class Notes:
    """A recorder that reads every info."""

    def __init__(self):
        self.seen = []

    def after_step(self, t, rollout, info):
        info = copy_tree(info)
        ended = info.pop("_episode", None)
        for name in ("final_info", "final_obs", "episode"):
            if name in info:
                np.testing.assert_array_equal(info.pop(f"_{name}", ended), ended)
                info[name] = index_tree(info[name], ended)  # other rows are unspecified
        if "episode" in info:
            info["episode"].pop("t")
        self.seen.append((t, rollout.reward[t].tobytes(), [(k, v.tobytes()) for k, v in sorted(named_leaves(info))]))
        rollout.reward[t] += 1.0


@pytest.mark.parametrize("world", ["tests.training.worlds:ArrayWalk", pytest.param("cage2", marks=pytest.mark.slow)])
def test_recorders_see_every_step_of_all_lanes_in_order(tmp_path, world):
    alone, shared = Notes(), Notes()
    settings = {**SMALL, "total_steps": 8 * 16 * 2}
    runs = [
        shoal.train(world, runs_dir=tmp_path, hooks=Hooks(recorders=(notes,)), runners=runners, **settings)
        for notes, runners in ((alone, 0), (shared, 2))
    ]
    assert len(alone.seen) == 32
    assert shared.seen == alone.seen
    assert told(runs[1].run) == told(runs[0].run)


class KillSomeone:
    """Kills the process of a runner after an iteration."""

    def __init__(self, after):
        self.after = after

    def after_iteration(self, loop):
        if loop.iteration == self.after:
            ray.kill(loop.batch.runners[1])


def test_a_dead_runner_is_replaced_and_nothing_is_counted_twice(tmp_path):
    """Here with runners that collect ahead: what the dead one had been asked for is collected by the new one."""
    hooks = Hooks(callbacks=(KillSomeone(2),))
    result = shoal.train("cartpole", runs_dir=tmp_path, hooks=hooks, runners=2, staleness=1, **SMALL)
    assert result.metrics["step"] == SMALL["total_steps"]
    assert result.metrics["runners/restarts"] == 1
    left = everything_that_repeats(result.run)
    assert all(np.isfinite(row["train/loss"]) for row in left["rows"])
    assert sum(int(length) for _, length in left["episodes"]) <= SMALL["total_steps"]


def test_off_policy_agents_collect_ahead_and_outlive_a_runner(tmp_path):
    algo = {"name": "sac", "num_steps": 4, "hidden": [16], "batch_size": 16, "warmup": 64, "n_step": 3}
    settings = {**SMALL, "algo": {**algo, "replay_capacity": 1000}, "total_steps": 8 * 4 * 10}
    hooks = Hooks(callbacks=(KillSomeone(4),))
    result = shoal.train("cartpole", runs_dir=tmp_path, hooks=hooks, runners=2, staleness=1, **settings)
    assert result.metrics["runners/restarts"] == 1
    assert result.metrics["train/n_updates"] > 0
    assert result.agent.replay.count == settings["total_steps"] - 8 * 2, "but the last two steps of every lane"


def test_a_runner_killed_while_it_collects(tmp_path):
    """The others' fragments are kept; the lost one is collected anew."""
    env = {"backend": "serial", "env_kwargs": {"folder": str(tmp_path)}}
    config = resolve_config("tests.cluster.slow:HeldWalk", {**_plain(SMALL), "runners": 2, "env": env})
    fleet = Fleet(ray, as_world(config.world), config)
    try:
        agent, rollout = _prepared(fleet, config)
        pid = ray.get(fleet.runners[0].pid.remote())
        hold(tmp_path, pid)
        threading.Thread(target=kill_when_held, args=(tmp_path, pid), daemon=True).start()
        fleet.collect(fleet, agent, rollout, Hooks(), Clock())
        assert fleet.restarts == [1, 0]
        assert fleet.fragments_lost == 1
        assert np.isfinite(rollout.reward).all()
        # the replacement began new episodes: its first row is a first row
        assert (rollout.obs[0, :4, 1] == 0).all()
    finally:
        fleet.close()


def kill_when_held(folder, pid):
    wait_until_held(folder)
    os.kill(pid, signal.SIGKILL)


def _plain(settings):
    return {key: value for key, value in settings.items() if key != "quiet"}


def _prepared(fleet, config):
    agent = make_agent(as_world(config.world), config, fleet)
    rollout = Rollout(fleet, agent)
    fleet.reset_into(rollout.step_buffers(rollout.num_steps - 1), seed=config.seed)
    return agent, rollout


def test_faults_of_a_lane_are_told_and_not_retried(tmp_path):
    with pytest.raises(LaneFault, match=r"Runner \d.*the cart left the rails"):
        shoal.train("tests.cluster.slow:BrokenWalk", runs_dir=tmp_path, runners=2, env={"backend": "serial"}, **SMALL)


def test_bad_input_is_named(tmp_path):
    with pytest.raises(ConfigError, match="cannot be shared by 3 runners"):
        shoal.train("cartpole", runs_dir=tmp_path, runners=3, **SMALL)
    with pytest.raises(ConfigError, match="one list for all lanes, which runners do not share"):
        shoal.train("kg", runs_dir=tmp_path, runners=1, mode="pool", num_envs=4, quiet=True)
    memory = {**SMALL["algo"], "memory": "gru", "normalise_obs": False}
    with pytest.raises(ConfigError, match="without memory"):
        shoal.train("cartpole", runs_dir=tmp_path, runners=1, staleness=1, **{**SMALL, "algo": memory})
    assert not list(Path(tmp_path).iterdir())


def test_more_runners_than_places_do_not_hang():
    config = resolve_config("cartpole", {**_plain(SMALL), "runners": 4})
    with pytest.raises(RunError, match="did not start within 4 s; the cluster has 2 CPUs"):
        Fleet(ray, as_world("cartpole"), config, patience_s=4.0)
