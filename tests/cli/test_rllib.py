"""`shoal rllib`, with a Ray of its own."""

import json

import pytest

from shoal.cli import main
from shoal.cluster.start import start_local


def test_a_line_per_iteration_a_checkpoint_and_on_from_it(tmp_path, capsys):
    sizes = ["--num-envs", "8", "--train-batch-size", "256", "--minibatch-size", "64", "--epochs", "1"]
    saved = str(tmp_path / "saved")
    first = ["rllib", "cartpole", "--mode", "packed_vec", *sizes, "--iterations", "2", "--checkpoint", saved]
    again = ["rllib", "cartpole", *sizes, "--num-envs", "16", "--iterations", "1", "--restore", saved]
    with start_local(num_cpus=1):  # which both commands use instead of starting their own
        assert main([*first, "--out", str(tmp_path / "rows.json")]) == 0
        told = capsys.readouterr().out
        assert main(again) == 0
        assert "768 steps" in capsys.readouterr().out
    assert "mode packed_vec, 8 lanes" in told
    assert "512 steps" in told
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [row["steps"] for row in rows] == [256, 512]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["nowhere"], "No environment 'nowhere'"),
        (["cartpole", "--mode", "packed"], "--mode"),
        (["cartpole", "--num-gpus-per-learner", "-1"], "--num-gpus-per-learner must be at least 0, not -1"),
        (["cartpole", "--num-gpus-per-learner", "1000"], "needs 1000 GPU(s), but torch sees"),
        (["cartpole", "--num-learners", "2", "--num-gpus-per-learner", "500"], "needs 1000 GPU(s)"),
        (["cartpole", "--num-env-runners", "3", "--train-batch-size", "100"], "the 192 lanes (= 64 per runner x 3)"),
        (["cartpole", "--iterations", "0"], "must be at least 1, not 0"),
        (["cartpole", "--ray-address", "127.0.0.1:1"], "Nobody answers at '127.0.0.1:1'"),
    ],
)
def test_bad_input_is_one_sentence(capsys, argv, sentence):
    assert main(["rllib", *argv]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert len(told.strip().splitlines()) == 1
