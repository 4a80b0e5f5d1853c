"""One sentence for every way to get a flag wrong."""

from dataclasses import dataclass

import pytest

from shoal.cli import main
from shoal.cli.options import parse


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["train", "cartpole", "--num-envs", "abc"], "--num-envs abc is not valid: it takes a whole number."),
        (["train", "cartpole", "--algo.lr", "x"], "--algo.lr x is not valid: it takes a number."),
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


@dataclass(frozen=True)
class Several:
    """Flags that take lists."""

    sizes: tuple[int, ...] = ()
    names: str | int | tuple[str | int, ...] = ""


@pytest.mark.parametrize(
    ("argv", "value"),
    [
        (["--sizes", "3"], {"sizes": (3,)}),
        (["--sizes", "[3, 4]"], {"sizes": (3, 4)}),
        (["--sizes", "3", "4"], {"sizes": (3, 4)}),
        (["--names", "one"], {"names": "one"}),
        (["--names", '["one", 2]'], {"names": ("one", 2)}),
    ],
)
def test_a_list_is_several_words_or_json(argv, value):
    assert parse(Several, argv, "shoal test") == Several(**value)
