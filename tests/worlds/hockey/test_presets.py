"""What the preset for PPO learns."""

import time

import numpy as np
import pytest

import shoal
from shoal.worlds.hockey.batch import hockey
from shoal.worlds.hockey.evaluation import play_games, summary


@pytest.mark.slow
def test_ppo_beats_the_weak_bot_in_minutes(tmp_path):
    started = time.process_time()
    result = shoal.train("hockey", runs_dir=tmp_path, quiet=True, total_steps=4_000_000, eval_every=0)
    cpu_seconds = time.process_time() - started
    games = play_games(hockey(256), lambda obs, info: np.asarray(act(result.agent, obs)), 1000, seed=1)
    print(f"{summary(games)['won']:.1%} of 1,000 games won against weak after {cpu_seconds:.0f} CPU-seconds")
    assert summary(games)["won"] >= 0.9
    assert cpu_seconds < 2 * 600  # ten minutes of two cores


def act(agent, obs):
    return agent.act_batch(obs, deterministic=True).action
