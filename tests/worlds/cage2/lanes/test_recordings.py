"""The world replays recorded episodes of the original bit for bit, and the check would notice if it did not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.parity.__main__ import main as parity
from tests.parity.cage2_frequencies import check_frequencies
from tests.parity.cage2_replay import replay_file

RECORDINGS = Path(__file__).parent / "recordings"
TRACES = sorted(RECORDINGS.glob("trace_*.npz"))


def test_the_recordings_are_there():
    assert len(TRACES) == 6, f"{RECORDINGS} must have the six recordings; without them nothing below is tested"


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_recorded_episodes_replay_exactly(path):
    result = replay_file(path)
    assert result["steps"] == 100 * result["episodes"] > 0
    assert {name: count for name, count in result["mismatches"].items() if count} == {}


@pytest.mark.parametrize(
    ("field", "found_in"),
    [("reward10", "reward"), ("obs_cage", "obs_cage"), ("portmem", "portmem"), ("bline_state", "stage")],
)
def test_a_changed_recording_is_noticed(tmp_path, field, found_in):
    source = RECORDINGS / "trace_cage2_bline_mixed.npz"
    trace = dict(np.load(source))
    trace[field].reshape(-1)[-1] ^= 1 << 4  # the last value, one bit that is within the 52 of an observation
    np.savez(tmp_path / source.name, **trace)
    wrong = replay_file(tmp_path / source.name)["mismatches"]
    assert {name.removeprefix("agent ") for name, count in wrong.items() if count} == {found_in}


def test_the_command_counts_steps_and_fails_on_a_mismatch(tmp_path, capsys):
    source = RECORDINGS / "trace_debugged_bline_random.npz"
    trace = dict(np.load(source))
    np.savez(tmp_path / source.name, **trace)
    assert parity(["cage2", str(tmp_path), "--replay-only"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["episodes"], report["steps"], report["mismatches"]) == (4, 400, 0)
    trace["reward10"][2, 50] -= 1
    np.savez(tmp_path / source.name, **trace)
    assert parity(["cage2", str(tmp_path), "--replay-only"]) == 1


def test_the_command_explains_an_empty_folder_and_an_unknown_world(tmp_path, capsys):
    assert parity(["cage2", str(tmp_path)]) == 2
    assert parity(["atlantis", str(tmp_path)]) == 2
    errors = capsys.readouterr().err
    assert "no recordings" in errors
    assert "atlantis" in errors


def test_draws_have_the_frequencies_of_the_original():
    assert [case for case in check_frequencies() if not case["ok"]] == []
