"""What the preset for PPO learns."""

import time

import pytest

import shoal
from shoal.training.acting import Actor
from shoal.worlds.hockey.lab.games import play_rink, summary


@pytest.mark.slow
def test_ppo_beats_the_weak_bot_in_minutes(tmp_path):
    started = time.process_time()
    result = shoal.train("hockey", runs_dir=tmp_path, quiet=True, total_steps=4_000_000, eval_every=0)
    cpu_seconds = time.process_time() - started
    games = play_rink(shoal.make("hockey", 256), Actor(result.agent), 1000, seed=1)
    print(f"{summary(games)['won']:.1%} of 1,000 games won against weak after {cpu_seconds:.0f} CPU-seconds")
    assert summary(games)["won"] >= 0.9
