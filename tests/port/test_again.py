"""The proof that goes on while a compiled class is used."""

from __future__ import annotations

import io
import pickle

import gymnasium as gym
import numpy as np
import pytest

import shoal
from shoal.port import again
from shoal.port.constants import fingerprint_now
from shoal.port.module import digest, load_kernel, write_module
from shoal.port.ported import Ported, port
from shoal.port.proof import Proof
from shoal.port.refusal import PortError
from shoal.port.watch import watch
from shoal.port.writer import translate
from shoal.vector.lanes.making import EnvMaker
from tests.port.test_refusals import Rare


class Ended:
    """A process that has ended."""

    def __init__(self, code: int, said: str) -> None:
        self.returncode, self.stdout = code, io.BytesIO(said.encode())

    def poll(self) -> int:
        return self.returncode


def task(tmp_path, wrong: bool) -> again.Task:
    source = translate(watch(Rare()), "Rare")
    path = tmp_path / f"Rare_{digest(source.text, source.tables)}.py"
    source.text = source.text.replace("0.2", "0.25") if wrong else source.text
    write_module(source, path)
    load_kernel(path, "Rare")
    proof = Proof(0, 0, 0.0, "")
    return again.Task(EnvMaker(Rare), Ported("Rare", path, proof, [], [], [], {}, 1.0, 0.0, 0.0), 7_000_000, 12)


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "code"), [(False, 0), (True, again.DIFFERS)])
def test_a_further_proof_tells_a_difference_by_its_exit_code(tmp_path, capsys, wrong, code):
    assert again.prove_again(io.BytesIO(pickle.dumps(task(tmp_path, wrong)))) == code
    assert ("compiled and" in capsys.readouterr().out) == wrong


def test_a_difference_stops_the_next_step(monkeypatch, tmp_path):
    monkeypatch.setattr(again, "FIRST_S", 0.0)
    monkeypatch.setattr(again, "LOOK_EVERY", 1)
    monkeypatch.setattr(again, "begin", lambda task: Ended(again.DIFFERS, "x is 1 compiled and 2 in the original."))
    further = again.Further(task(tmp_path, wrong=False))
    further.look()
    with pytest.raises(PortError, match=r"A further proof has found a difference. x is 1 .* saved so far is kept"):
        further.look()


@pytest.mark.slow
def test_a_difference_ends_a_training_and_what_was_saved_stays(monkeypatch, tmp_path):
    monkeypatch.setattr(again, "FIRST_S", 0.0)
    monkeypatch.setattr(again, "LOOK_EVERY", 1)
    ported = port(EnvMaker(Rare), announce=False)
    proven = ported.path.read_text()
    try:
        ported.path.write_text(proven.replace("0.2", "0.25"))  # in one step of twenty
        with pytest.raises(PortError, match=r"A further proof has found a difference\. .* compiled and .* original"):
            shoal.train(
                Rare, runs_dir=tmp_path, quiet=True, compiled=True, num_envs=8, total_steps=10**8, checkpoint_every=2000
            )
    finally:
        ported.path.write_text(proven)
    assert list(tmp_path.glob("*/checkpoints/step_*"))


LIMITS = {"fast": 3}


class Limited(gym.Env):
    """Reads a constant of its module."""

    observation_space, action_space = gym.spaces.Box(-10, 10, (1,), np.float32), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += 1
        return np.array([LIMITS["fast"]], np.float32), 0.0, False, self.t >= 9, {}


def test_a_constant_that_has_changed_is_noticed(monkeypatch):
    source = translate(watch(Limited()), "Limited")
    place = f"{__name__}:LIMITS"
    assert source.constants[place] == fingerprint_now(place)
    monkeypatch.setitem(LIMITS, "fast", 4)
    assert source.constants[place] != fingerprint_now(place)
