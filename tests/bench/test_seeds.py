"""The suite "seeds", tiny: what it runs are whole commands."""

import pytest

from shoal.bench.seeds import SeedsArgs, run, spent_by
from shoal.errors import ConfigError


@pytest.mark.slow
def test_commands_are_timed_with_all_their_processes(tmp_path, capsys):
    assert run(SeedsArgs(loop=2, many=2, total_steps=2_048, out=tmp_path / "times.json")) == 0
    said = capsys.readouterr().out
    for name in ("learning 0.", "1 run", "1 seed as an experiment", "2 runs, one after the other", "2 seeds"):
        assert name in said


def test_a_command_that_fails_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"`shoal train nothing` failed: .*nothing"):
        spent_by(str(tmp_path), ["train", "nothing"])
    with pytest.raises(ConfigError, match="must be at least 1"):
        SeedsArgs(loop=0)
