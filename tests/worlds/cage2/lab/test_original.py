"""The preset `original` is the system that workflows come from, and converges as its document says."""

from __future__ import annotations

import json
import re

import numpy as np

from shoal.cli import main
from shoal.registry import as_world
from shoal.training.settings import resolve_config


def test_its_settings_are_the_originals():
    config = resolve_config(as_world("cage2"), {}, preset="original")
    assert (config.num_envs, config.env.length, config.algo.num_steps, config.algo.minibatches) == (25, 100, 100, 1)
    assert (config.algo.epochs, config.algo.lr, config.algo.gamma, config.algo.gae_lambda) == (4, 2e-3, 0.99, 1.0)
    assert (config.algo.clip, config.algo.entropy, config.algo.hidden) == (0.2, 0.01, (64, 64))
    assert config.total_steps == 25 * 50 * 100
    assert (config.env.compliance, config.env.alignment_weight) == ("action-order", 30.0)
    assert (config.extra.stop_compliance, config.extra.min_episodes) == (0.95, 10)
    true_state = resolve_config(as_world("cage2"), {"env": {"compliance": "true-state"}}, preset="original")
    assert true_state.env.compliance == "true-state"


def test_it_begins_at_random_rises_and_stops_within_a_few_hundred_episodes(tmp_path, capsys):
    assert main(["train", "cage2", "--preset", "original", "--seed", "0", "--runs-dir", str(tmp_path)]) == 0
    reason = re.search(r"compliance (0\.\d+) reached 0.95 after ([\d,]+) episodes", capsys.readouterr().out)
    (run,) = tmp_path.iterdir()
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    compliance = np.array([row["rollout/compliance"] for row in rows])
    assert len(compliance) * 25 == int(reason[2].replace(",", ""))  # an update is one episode in each of 25 lanes
    assert compliance[0] < 0.5  # the first 25 episodes are played by an untrained network
    thirds = [part.mean() for part in np.array_split(compliance, 3)]
    assert thirds[0] + 0.1 < thirds[1] < thirds[2] - 0.05
    assert 10 * 25 <= len(compliance) * 25 < 1000
    assert float(reason[1]) >= 0.95 > compliance[:10].max()
