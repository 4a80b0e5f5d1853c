"""The loop: exact resume, hooks, faults, and that it learns."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from shoal.agents.config import PPOConfig
from shoal.agents.ppo import PPO
from shoal.errors import ConfigError, LaneFault
from shoal.options import Duration, fit
from shoal.training.config import TrainConfig
from shoal.training.hooks import Hooks
from shoal.training.loop import Loop
from shoal.training.metrics import PHASES
from tests.toy import Walk
from tests.training.in_memory import Memory, assert_resumes_exactly


def make_loop(algo: PPOConfig | None = None, hooks: Hooks | None = None, total_steps=640, num_envs=8, **walk) -> Loop:
    algo = algo or PPOConfig(num_steps=16, minibatches=2)
    config = TrainConfig("walk", num_envs, total_steps, seed=3, checkpoint_every=256, algo=algo)
    batch = Walk(num_envs, **walk)
    agent = PPO(batch.single_observation_space, batch.single_action_space, algo, seed=3)
    return Loop(batch, agent, config, Memory(), hooks)


VARIANTS = {
    "discrete": (PPOConfig(num_steps=16, minibatches=2), {}),
    "plain": (PPOConfig(num_steps=16, minibatches=2, fast=False), {}),
    "masked multi dict": (PPOConfig(num_steps=16, minibatches=2), {"actions": "multi", "obs": "dict", "masked": True}),
    "masked discrete": (PPOConfig(num_steps=16, minibatches=2, entropy=0.01), {"masked": True}),
    "normalised box": (
        PPOConfig(num_steps=16, minibatches=2, normalise_obs=True, normalise_reward=True, lr_final=1e-5),
        {"actions": "box"},
    ),
    "squashed": (PPOConfig(num_steps=16, minibatches=2, squash=True, value_clip=0.2), {"actions": "box"}),
    "gru": (PPOConfig(num_steps=16, minibatches=2, memory="gru", memory_size=8), {}),
    "lstm": (PPOConfig(num_steps=16, minibatches=2, memory="lstm", memory_size=8), {"actions": "box"}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_resumed_run_ends_with_the_same_weights_and_metrics(variant):
    algo, walk = VARIANTS[variant]
    assert_resumes_exactly(lambda: make_loop(algo, **walk))


def test_the_same_seed_gives_the_same_run():
    first, second = make_loop(), make_loop()
    first.train(), second.train()
    assert first.run.rows == second.run.rows
    assert first.run.returns == second.run.returns


def test_steps_are_counted_over_all_lanes():
    loop = make_loop(total_steps=300)
    assert "300" in loop.train()
    assert loop.step == 384  # whole iterations of 8 lanes x 16 steps
    assert [row["step"] for row in loop.run.rows] == [128, 256, 384]
    assert loop.run.checkpoints[-1][1]["step"] == 384


def test_the_loop_learns_to_stay_in_the_middle():
    algo = PPOConfig(num_steps=32, minibatches=4, lr=3e-3)
    loop = make_loop(algo, total_steps=40_000, num_envs=16)
    loop.train()
    returns = loop.run.returns
    assert np.mean(returns[-100:]) > 6.0 > np.mean(returns[:100])


def test_a_nan_reward_names_lane_step_and_quantity():
    loop = make_loop(poison=(21, 5))
    with pytest.raises(LaneFault, match=r"reward of lane 5 is nan in step 4"):
        loop.train()
    assert loop.step == 128


def test_a_finished_run_refuses_to_go_on():
    loop = make_loop()
    loop.train()
    again = make_loop()
    again.restore(*loop.run.checkpoints[-1][:2])
    with pytest.raises(ConfigError, match=r"already has 640 of 640 steps"):
        again.train()


def test_minibatches_that_do_not_divide_are_refused_with_a_remedy():
    with pytest.raises(ConfigError, match=r"minibatches=5 does not divide the batch of 256 .* Try 4"):
        TrainConfig("walk", num_envs=8, algo=PPOConfig(minibatches=5))


def test_every_second_of_an_iteration_belongs_to_a_section():
    loop = make_loop()
    loop.train()
    seconds = {k: v for k, v in loop.last_metrics.items() if k.startswith("time/")}
    assert set(seconds) == {f"time/{name}" for name in (*PHASES, "cpu_cores")}
    assert all(value >= 0 for value in seconds.values())
    assert sum(loop.clock.shares().values()) == pytest.approx(1.0)


class Counter:
    """Every hook in one, each noting that it was asked."""

    def __init__(self):
        self.steps, self.iterations, self.phases = torch.zeros((), dtype=torch.int64), 0, []

    def after_step(self, t, rollout, info):
        self.steps += 1
        rollout.reward[t] += 1.0

    def after_iteration(self, loop):
        self.iterations += 1
        return {"eval/mean_reward": float(self.iterations)}

    def advance(self, loop):
        if len(self.phases) <= loop.step // 256:
            self.phases.append(f"phase {len(self.phases)}")
            return self.phases[-1]
        return None

    def reason_to_stop(self, loop):
        return "enough" if self.iterations == 3 else None

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]


def test_every_hook_is_asked_at_its_moment():
    counter = Counter()
    hooks = Hooks(recorders=(counter,), callbacks=(counter,), curriculum=counter, stop_rules=(counter,))
    loop = make_loop(hooks=hooks)
    assert loop.train() == "enough"
    assert int(counter.steps) == 3 * 16
    assert loop.iteration == 3
    assert counter.phases == ["phase 0", "phase 1"]
    assert loop.phase == "phase 1"
    assert [score for _, _, score in loop.run.checkpoints] == [1.0, 2.0, 3.0]
    saved = [name for name in loop.run.checkpoints[0][0] if name.startswith("hooks.")]
    assert saved == ["hooks.curriculum.steps"]  # once, though it plays four parts


def test_stop_ends_after_the_iteration_and_saves():
    class Interrupt:
        def after_iteration(self, loop):
            loop.stop("interrupted")

    loop = make_loop(hooks=Hooks(callbacks=(Interrupt(),)))
    assert loop.train() == "interrupted"
    assert loop.run.checkpoints[-1][1]["step"] == 128


def test_short_iterations_share_a_row_and_resume_exactly(monkeypatch):
    monkeypatch.setattr("shoal.training.config.MAX_ROWS", 4)

    def short(checkpoint_every=10_000):
        config = TrainConfig(
            "walk",
            num_envs=4,
            total_steps=160,
            checkpoint_every=checkpoint_every,
            algo=PPOConfig(num_steps=1, minibatches=1, epochs=1, hidden=(8,)),
        )
        batch = Walk(4)
        agent = PPO(batch.single_observation_space, batch.single_action_space, config.algo)
        return Loop(batch, agent, config, Memory())

    loop = short()
    loop.train()
    assert [row["step"] for row in loop.run.rows] == [40, 80, 120, 160]
    assert_resumes_exactly(partial(short, 60))


def test_checkpoints_can_be_made_by_the_clock(monkeypatch):
    loops = []
    monkeypatch.setattr("shoal.training.loop.perf_counter", lambda: float(loops[0].iteration if loops else 0))
    loop = make_loop()
    loops.append(loop)
    loop.config = replace(loop.config, checkpoint_every=Duration("3s"))
    loop.train()
    assert [meta["step"] for _, meta, _ in loop.run.checkpoints] == [384, 640]  # an iteration takes a second


@pytest.mark.parametrize("text", ["10", "0m", "10 days", "m", "-5m"])
def test_what_is_not_a_span_of_time_is_refused(text):
    with pytest.raises(ConfigError, match="span of time"):
        fit(text, int | Duration, "checkpoint_every")
    assert fit("1.5h", int | Duration, "checkpoint_every").seconds == 5400
