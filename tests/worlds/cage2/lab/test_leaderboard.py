"""Scores in the nine cells, and the table beside the published ones."""

from __future__ import annotations

import json

import numpy as np
import pytest

from shoal.errors import ConfigError
from shoal.worlds.cage2.lab.baselines import find_baseline
from shoal.worlds.cage2.lab.leaderboard import CELLS, PUBLISHED, Defender, leaderboard_table, score, total
from shoal.worlds.cage2.lanes.names import MONITOR, RESTORE_OP_SERVER
from shoal.worlds.cage2.world import Cage2Options


class RestoreFirst:
    """Restores Op_Server0 in the first step, then does nothing."""

    def __init__(self):
        self.fresh = None

    def __call__(self, obs, info):
        if self.fresh is None:
            self.fresh = np.ones(len(obs), bool)
        action = np.where(self.fresh, RESTORE_OP_SERVER, MONITOR)
        self.fresh[:] = False
        return action

    def forget(self, ended):
        self.fresh[ended] = True


def baseline(name):
    return Defender(name, Cage2Options(), lambda batch: find_baseline(name).make(0))


def test_sleeping_scores_as_published():
    cells = score(baseline("sleep"), "cage2-2022", episodes=150)
    assert [(cell.red, cell.length) for cell in cells] == list(CELLS)
    assert all(cell.low <= cell.mean <= cell.high for cell in cells)
    published = PUBLISHED["20 sleep"]
    for cell, mean in zip(cells, published, strict=False):
        spread = (cell.high - cell.low) / 2 / 1.96  # one standard error of ours, and as much for theirs
        assert abs(cell.mean - mean) < 5 * np.hypot(spread, spread * np.sqrt(0.15)) + 0.5
    assert [cell.mean for cell in cells if cell.red == "sleep"] == [0, 0, 0]
    assert total(cells) == pytest.approx(sum(cell.mean for cell in cells))


def test_the_immunity_trick_is_counted_and_can_be_forbidden():
    defender = Defender("restore first", Cage2Options(), lambda batch: RestoreFirst())
    played = score(defender, "cage2", episodes=20)
    honest = score(defender, "cage2", episodes=20, needs_evidence=True)
    assert all(cell.early_restores == 1 for cell in played)
    assert all(cell.early_restores == 0 for cell in honest)
    bline_100 = CELLS.index(("bline", 100))
    assert played[bline_100].mean > -500 > honest[bline_100].mean


def test_the_table_names_variant_entries_and_intervals():
    cells = score(baseline("react-restore"), "cage2-2022", episodes=10)
    text = leaderboard_table("react-restore", "cage2-2022", cells, cells)
    assert "Variant cage2-2022, 10 episodes per cell" in text
    assert "-51.64" in text
    assert all(name in text for name in PUBLISHED)


def test_one_episode_gives_no_interval():
    with pytest.raises(ConfigError, match="at least 2"):
        score(baseline("sleep"), "cage2", episodes=1)


def test_the_verb_prints_the_table_and_writes_json(tmp_path, capsys):
    from shoal.cli import main

    out = tmp_path / "cells.json"
    assert main(["eval", "cage2", "--policy", "sleep", "--leaderboard", "--episodes", "4", "--out", str(out)]) == 0
    assert "sum of six" in capsys.readouterr().out
    assert len(json.loads(out.read_text())["as_played"]) == 9
    assert main(["eval", "cartpole", "--policy", "sleep", "--leaderboard"]) == 2
    assert main(["eval", "cage2", "--policy", "sleepy", "--leaderboard"]) == 2
    assert "Did you mean 'sleep'" in capsys.readouterr().err
