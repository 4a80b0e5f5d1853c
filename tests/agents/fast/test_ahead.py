"""The learner that a second process compiles is the one that training uses."""

import subprocess
import sys

import pytest
from gymnasium.spaces import Box

import shoal
from shoal.agents.fast import ahead
from shoal.agents.fast.heads import CONTINUOUS, DISCRETE, compiled
from shoal.agents.ppo import PPOConfig
from shoal.jit.entries import entry_module
from shoal.registry import as_world
from shoal.worlds.classic.lanes.cartpole import CartPole
from tests.agents.test_ppo import collected
from tests.vector.kernel.kernels import Mixed


@pytest.mark.parametrize("walk", [{}, {"actions": "multi", "obs": "dict", "masked": True}, {"actions": "box"}])
def test_training_needs_no_other_types_than_those_compiled_ahead(walk):
    continuous = walk.get("actions") == "box"
    ahead.compile_learner(continuous)
    learner = compiled(CONTINUOUS if continuous else DISCRETE)
    before = {name: set(learner[name].signatures) for name in ("add_gradient", "moments", "pack_weights")}
    agent, rollout = collected(PPOConfig(num_steps=16, minibatches=2, epochs=1), **walk)
    agent.update(rollout)
    assert {name: set(learner[name].signatures) for name in before} == before


@pytest.mark.parametrize(
    "name", ["cartpole", "acrobot", "pendulum", "mountaincar-continuous", "hockey", CartPole, Mixed]
)
def test_the_kind_of_actions_is_known_before_there_are_lanes(name):
    batch = shoal.make(name, 1, compiled=False)
    assert as_world(name).continuous == isinstance(batch.single_action_space, Box)
    batch.close()


def test_nothing_is_started_where_the_learner_is_known(monkeypatch):
    ahead.compile_learner(continuous=False)
    assert entry_module(*DISCRETE.learner).is_known()
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **kwargs: pytest.fail("started a process"))
    with ahead.learner_compiled_aside(continuous=False):
        pass


@pytest.mark.slow
def test_another_process_compiles_what_this_one_loads(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path))
    command = "from shoal.agents.fast import ahead; ahead.compile_learner(continuous=False)"
    subprocess.run([sys.executable, "-c", command], check=True)
    program = "import shoal; shoal.train('cartpole', total_steps=2048, runs_dir='runs', quiet=True)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "compiling cartpole" in run.stderr
    assert "compiling ppo_learner" not in run.stderr
    for name in ("gae", "adam_step"):  # for one set of types
        assert len(list(tmp_path.glob(f"__pycache__/{name}_*.nbc"))) == 1
