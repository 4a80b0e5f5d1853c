"""`shoal check` and `shoal envs`, as typed."""

from __future__ import annotations

import pytest

from shoal.cli import main
from shoal.registry import OURS
from tests.vector.kernel.mistakes import program


def test_envs_lists_every_world(capsys):
    assert main(["envs"]) == 0
    printed = capsys.readouterr().out
    assert all(world in printed for world in OURS)


def test_a_kernel_is_checked_and_compared_with_its_own_source(capsys):
    assert main(["check", "cartpole", "--max-examples", "2", "--num-envs", "2", "--num-steps", "30"]) == 0
    printed = capsys.readouterr().out
    assert "none broken" in printed
    assert "compiled and uncompiled give the same trajectories" in printed


def test_the_cause_of_a_kernels_mistake_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong_toy.py").write_text(program(step="s.speed[s.t] = 1.0"))
    assert main(["check", "wrong_toy:Toy"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "index 3 is out of bounds for axis 0 with size 3, in `s.speed[s.t] = 1.0`" in printed
    assert "promise" not in printed


def test_findings_are_sentences_and_the_exit_code_tells(capsys):
    assert main(["check", "CartPole-v1", "--backend", "gymnasium", "--max-examples", "3"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 broken" in printed
    assert "step() after close() was accepted." in printed


def test_a_class_of_the_users_is_loaded_from_its_module(capsys):
    assert main(["check", "tests.testing.broken:Clips", "--max-examples", "2"]) == 1
    assert "an action outside the space" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "hint"), [("cartpol", "Did you mean 'cartpole'?"), ("tests.nowhere:Env", "no module 'tests.nowhere'")]
)
def test_unknown_names_propose_the_nearest(name, hint, capsys):
    assert main(["check", name]) == 2
    assert hint in capsys.readouterr().err


def test_gymnasium_has_no_vector_environment_of_a_kernel(capsys):
    assert main(["check", "cartpole", "--backend", "gymnasium"]) == 2
    assert "is not a Gymnasium id" in capsys.readouterr().err
