"""The games step as the package does: recordings of it, and the package itself where it is installed."""

import importlib.util
import json
from pathlib import Path

import pytest

from tests.parity.minatar import GAMES, difference, live_cases, main, play_ours, play_package, read

RECORDINGS = Path(__file__).parent / "recordings"
needs_package = pytest.mark.skipif(importlib.util.find_spec("minatar") is None, reason="minatar is not installed")


def test_recordings_are_reproduced(capsys):
    assert main([str(RECORDINGS)]) == 0
    report = json.loads(capsys.readouterr().out)["games"]
    assert {game: report[game]["transitions"] for game in GAMES} == dict.fromkeys(GAMES, 3_000)
    assert all(report[game]["episodes"] > 0 and report[game]["reward"] > 0 for game in GAMES)


@pytest.mark.parametrize("game", GAMES)
def test_the_uncompiled_kernel_begins_as_the_recording(game):
    case, recorded = read(RECORDINGS / f"{game}.npz")
    end = int(recorded.terminated[:150].sum())
    beginning = recorded._replace(
        **{name: getattr(recorded, name)[:150] for name in ("action", "board", "reward", "terminated")},
        first_board=recorded.first_board[:end],
    )
    assert difference(beginning, play_ours(case, beginning.action, compiled=False)) is None


def test_other_rules_are_told_apart():
    case, recorded = read(RECORDINGS / "breakout.npz")
    wrong = play_ours(case._replace(sticky=0.2), recorded.action)
    assert "differs" in str(difference(recorded, wrong))


@needs_package
@pytest.mark.parametrize("game", GAMES)
def test_the_installed_package_plays_the_same(game):
    for case in live_cases(game, 2_000):
        theirs = play_package(case)
        assert difference(theirs, play_ours(case, theirs.action)) is None
