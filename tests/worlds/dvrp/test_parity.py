"""The parity tool agrees with the recordings, and notices when they are changed."""

import json
import shutil
from pathlib import Path

import numpy as np

from tests.parity.dvrp import main

FIXTURES = Path(__file__).parent / "fixtures"


def test_recordings_are_reproduced(capsys):
    assert main([str(FIXTURES), "--oracles", "ruin"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"]
    assert report["episodes"]["dynamic_n10_random"]["episodes"] == 16
    assert report["oracles"]["ruin"]["dynamic_n10_random"]["gap_percent"] < 0.5


def test_a_changed_recording_is_noticed(tmp_path, capsys):
    for path in FIXTURES.iterdir():
        shutil.copy(path, tmp_path)
    data = dict(np.load(FIXTURES / "dynamic_n10_random.npz"))
    data["tw"][3, 5] += 60
    data["accepted"][0, 0] ^= True
    data["limit"][2, 4, 1] += 10
    np.savez(tmp_path / "dynamic_n10_random.npz", **data)
    assert main([str(tmp_path), "--oracles", "none"]) == 1
    counts = json.loads(capsys.readouterr().out)["episodes"]["dynamic_n10_random"]
    assert counts["accepted mismatches"] == 1
    assert counts["reward mismatches"] == 1
    assert counts["window mismatches"] == 2
    assert counts["limit mismatches"] == 1


def test_a_folder_without_a_city_is_refused(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert "no city.json" in json.loads(capsys.readouterr().out)["error"]
