"""The learner that a second process compiles is the one that training uses."""

import subprocess
import sys

import pytest

from shoal.agents.fast import ahead
from shoal.agents.fast.heads import DISCRETE, compiled
from shoal.agents.ppo import PPOConfig
from shoal.jit.entries import entry_module
from tests.agents.test_ppo import collected


@pytest.mark.parametrize("walk", [{}, {"actions": "multi", "obs": "dict", "masked": True}])
def test_training_needs_no_other_types_than_those_compiled_ahead(walk):
    ahead.compile_learner()
    learner = compiled(DISCRETE)
    before = {name: set(learner[name].signatures) for name in ("add_gradient", "moments", "pack_weights")}
    agent, rollout = collected(PPOConfig(num_steps=16, minibatches=2, epochs=1), **walk)
    agent.update(rollout)
    assert {name: set(learner[name].signatures) for name in before} == before


def test_nothing_is_started_where_the_learner_is_known(monkeypatch):
    ahead.compile_learner()
    assert entry_module(*DISCRETE.learner).is_known()
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **kwargs: pytest.fail("started a process"))
    with ahead.learner_compiled_aside():
        pass


@pytest.mark.slow
def test_another_process_compiles_what_this_one_loads(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path))
    subprocess.run([sys.executable, "-c", "from shoal.agents.fast import ahead; ahead.compile_learner()"], check=True)
    program = "import shoal; shoal.train('cartpole', total_steps=2048, runs_dir='runs', quiet=True)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "compiling cartpole" in run.stderr
    assert "compiling ppo_learner" not in run.stderr
