"""A sample of the original's recordings: the same bars as `python -m tests.parity hockey DIR` on all of them."""

from pathlib import Path

import numpy as np
import pytest

from tests.parity.hockey import compare, main, summarise

RECORDINGS = Path(__file__).parent / "recordings"


@pytest.mark.parametrize(("name", "compiled"), [("keep", True), ("no_keep", False)])
def test_a_sample_of_recorded_transitions_is_reproduced(name, compiled):
    report = summarise({name: compare(dict(np.load(RECORDINGS / f"{name}.npz")), compiled)})
    assert report["passed"], report
    assert report["free"]["count"] > 50
    assert report["contact"]["count"] > 50
    assert report["bots"]["actions"] > 50
    assert report["open_loop"]["together"] == report["open_loop"]["episodes"]


def test_a_wrong_recording_fails():
    d = dict(np.load(RECORDINGS / "no_keep.npz"))
    d["state"] = d["state"] + np.float32(1e-3) * (np.arange(len(d["state"])) % 2)[:, None].astype(np.float32)
    assert not summarise({"wrong": compare(d, compiled=False)})["passed"]


def test_a_folder_without_recordings_is_told(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert "no recordings" in capsys.readouterr().err
