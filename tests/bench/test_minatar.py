"""The suite "minatar", whole but short."""

import json

import pytest

from shoal.bench.minatar import GAMES, MinAtarArgs, package_loop, package_vector, run
from shoal.errors import ConfigError, UnknownName


def test_the_package_counts_its_steps():
    pytest.importorskip("minatar")
    for game in GAMES:
        assert package_loop(3, game)(5) == package_vector(3, game)(5) == 5


def test_bad_input_is_one_sentence():
    with pytest.raises(UnknownName, match="breakout"):
        MinAtarArgs(games=("brakout",))
    with pytest.raises(ConfigError, match="at least 1"):
        MinAtarArgs(rounds=0)


@pytest.mark.slow
def test_rows_for_every_contender(tmp_path, capsys):
    out = tmp_path / "rows.json"
    assert run(MinAtarArgs(games=("breakout",), num_envs=16, rounds=1, seconds=0.01, out=out)) == 0
    names = {row["name"] for row in json.loads(out.read_text())["rows"]}
    assert {"shoal kernel", "shoal kernel, copies"} <= names
    assert "minatar-breakout, 16 lanes" in capsys.readouterr().out
