"""Learning from images beside the peers: the scripts by themselves, and what is made of their answers."""

from __future__ import annotations

import json

import pytest

from shoal.bench import learning
from shoal.bench.atari import CONTENDERS, AtariArgs
from shoal.bench.atari import run as run_atari
from shoal.bench.minatar import MinAtarArgs
from shoal.bench.minatar import run as run_minatar
from shoal.bench.trainers import Work, convolutions, shoal_loop, torch_ppo
from shoal.errors import ConfigError, UnknownName


@pytest.mark.parametrize(
    ("package", "variant"),
    [
        ("ale_py", "ale"),
        ("envpool", "envpool"),
        pytest.param("gymnax", "gymnax", marks=pytest.mark.slow),
    ],
)
def test_the_script_learns_on_lanes_of_others(package, variant):
    pytest.importorskip(package)
    world = "minatar-breakout" if variant == "gymnax" else "ALE/Pong-v5"
    trainer = torch_ppo.start(Work(2, 4, epochs=1, minibatches=2, world=world), variant)
    trainer.iterate(2)
    assert trainer.recent_return() == 0.0


def test_shoal_goes_on_where_it_was():
    trainer = shoal_loop.start(Work(4, 8, epochs=1, minibatches=2, world="minatar-breakout"))
    trainer.iterate(2)
    trainer.iterate(6)
    assert trainer.recent_return() > 0


def test_bare_convolutions_are_those_of_the_standard_network():
    convolutions.start(Work(2, 2, epochs=1, minibatches=1, world="minatar-breakout")).iterate(1)


class Fake:
    """A worker that earns a point per step."""

    def __init__(self, contender, work):
        self.contender, self.work, self.iterations, self.made = contender, work, 1, 0

    def ask(self, iterations, **more):
        self.made += iterations * self.work.batch_size
        return {"steps": iterations * self.work.batch_size, "return": self.made, "wall": 2.0, "cpu": 1.0}

    def close(self):
        pass


@pytest.mark.parametrize("module", ["atari", "minatar"])
def test_rows_and_curves(module, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(learning, "best_worker", lambda contender, work, say: Fake(contender, work))
    monkeypatch.setattr(learning, "installed", lambda only, contenders: list(contenders))
    out = tmp_path / "rows.json"
    if module == "atari":
        assert run_atari(AtariArgs(games=("Pong",), rounds=2, frames=409_600, out=out)) == 0
    else:
        assert run_minatar(MinAtarArgs(games=("asterix",), rounds=2, learn=True, out=out)) == 0
    document = json.loads(out.read_text())
    judged = [row for row in document["rows"] if row["judged"]]
    assert {row["ratio_to_shoal"] for row in judged} == {1.0}
    assert {row["clock"] for row in judged} == {"wall"}
    if module == "atari":
        assert [row["name"] for row in judged] == [contender.name for contender in CONTENDERS]
        assert [row["steps"] for row in document["curves"] if row["name"] == "shoal"][-1] == 102_400
    assert "ppo" in capsys.readouterr().out


def test_bad_input_is_one_sentence():
    with pytest.raises(ConfigError, match="--rounds must be at least 1"):
        AtariArgs(rounds=0)
    with pytest.raises(UnknownName, match="sb3"):
        AtariArgs(only=("sb4",))
