"""Log files: read back by TensorBoard itself, in Stable-Baselines3's formats, cut back exactly."""

import csv
import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import RunError
from shoal.options import build
from shoal.training.metrics import EpisodeWindow, MetricsLog, deterministic, masked_crc, read_rows


def read_events(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


@given(st.binary(max_size=300))
def test_the_crc_is_tensorboards(data):
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    assert masked_crc(data) == masked_crc32c(data)


def test_tensorboard_reads_the_events(tmp_path):
    log = MetricsLog(tmp_path, "cartpole")
    for step in range(0, 70_000_000_000, 7_000_000_000):
        log.row(step, {"rollout/ep_rew_mean": step / 2, "train/loss": -0.5})
    log.row(70_000_000_001, {"train/loss": math.nan, "train/huge": 1e300})
    log.close()
    events = read_events(tmp_path)
    assert events["rollout/ep_rew_mean"] == [(s, np.float32(s / 2)) for s in range(0, 70_000_000_000, 7_000_000_000)]
    assert math.isnan(events["train/loss"][-1][1])
    assert events["train/huge"] == [(70_000_000_001, math.inf)]
    assert read_rows(tmp_path / "metrics.jsonl")[-1] == {
        "step": 70_000_000_001,
        "train/loss": None,
        "train/huge": 1e300,
    }


def test_monitor_is_in_sb3s_format(tmp_path):
    log = MetricsLog(tmp_path, "cartpole")
    log.episodes(np.array([1.5, -2.0], np.float32), np.array([10, 20]), 0.25)
    log.episodes(np.array([3.0]), np.array([5]), 0.5)
    log.close()
    with open(tmp_path / "monitor.csv") as file:
        first = file.readline()
        rows = list(csv.DictReader(file))
    assert first[0] == "#"
    assert json.loads(first[1:])["env_id"] == "cartpole"
    assert [(float(row["r"]), int(row["l"]), float(row["t"])) for row in rows] == [
        (1.5, 10, 0.25),
        (-2.0, 20, 0.25),
        (3.0, 5, 0.5),
    ]


def test_files_are_cut_back_to_a_checkpoint(tmp_path):
    log = MetricsLog(tmp_path, "w")
    log.row(1, {"a": 1.0})
    log.episodes(np.ones(1), np.ones(1, int), 1.0)
    lengths = log.sync()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    log.row(2, {"a": 2.0})
    log.evaluation(2, {"mean": 1.0})
    log.episodes(np.ones(5), np.ones(5, int), 2.0)
    log.close()
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    again = MetricsLog(tmp_path, "w", lengths)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == after  # until there is something to write
    assert again.sync() == lengths
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    again.row(2, {"a": 3.0})
    again.close()
    assert read_events(tmp_path) == {"a": [(1, 1.0), (2, 3.0)]}


def test_a_file_shorter_than_its_checkpoint_is_refused(tmp_path):
    log = MetricsLog(tmp_path, "w")
    log.row(1, {"a": 1.0})
    lengths = log.sync()
    log.close()
    (tmp_path / "metrics.jsonl").write_text("")
    with pytest.raises(RunError, match=r"metrics.jsonl has 0 bytes, but meta.json of the checkpoint says \d+"):
        MetricsLog(tmp_path, "w", lengths)


def test_a_line_cut_short_by_a_crash_is_left_out_and_a_broken_one_named(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"st')
    assert read_rows(path) == [{"step": 1}]
    path.write_text('{"st\n{"step": 1}\n')
    with pytest.raises(RunError, match="line 1 is not JSON"):
        read_rows(path)


@given(st.lists(st.tuples(st.floats(-1e6, 1e6, width=32), st.integers(1, 1000)), min_size=1, max_size=250), st.data())
def test_the_window_restores_exactly(episodes, data):
    cut = data.draw(st.integers(0, len(episodes)))
    returns, lengths = (np.array(column) for column in zip(*episodes, strict=True))
    whole, first, second = EpisodeWindow(), EpisodeWindow(), EpisodeWindow()
    whole.add(returns, lengths)
    first.add(returns[:cut], lengths[:cut])
    second.restore(build(EpisodeWindow.Saved, json.loads(json.dumps(asdict(first.state()))), "", ""))
    second.add(returns[cut:], lengths[cut:])
    assert second.means() == whole.means()
    assert math.isclose(whole.means()["rollout/ep_len_mean"], lengths[-100:].mean())


def test_wall_clock_values_are_not_part_of_what_repeats():
    row = {"step": 1, "time/fps": 3.0, "time/total_timesteps": 1, "train/loss": 0.1}
    assert deterministic(row) == {"step": 1, "time/total_timesteps": 1, "train/loss": 0.1}
