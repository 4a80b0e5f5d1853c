"""One sentence for every way to get a flag wrong."""

import pytest

from shoal.cli import main


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["train", "cartpole", "--num-envs", "abc"], "--num-envs abc cannot be: it takes a whole number."),
        (["train", "cartpole", "--algo.lr", "x"], "--algo.lr x cannot be: it takes a number."),
        (["train", "cartpole", "--num-envs"], "--num-envs needs a value."),
        (["train", "cartpole", "--num-env", "3"], "No option '--num-env'. Did you mean '--num-envs'?"),
        (["eval"], "`shoal eval` needs RUN."),
    ],
)
def test_wrong_flags_are_told_in_one_sentence(argv, sentence, capsys):
    assert main(argv) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith(f"shoal: {sentence}")
    assert complaint.count("\n") == 1
