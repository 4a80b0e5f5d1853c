"""What importing costs, and what the command line says before it loads anything."""

import subprocess
import sys
from dataclasses import fields

import pytest

import shoal
from shoal import registry
from shoal.errors import ConfigError, UnknownName

HEAVY = ("torch", "numba", "ray", "gymnasium", "numpy")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_loads_nothing_heavy():
    assert run(f"import shoal, sys; print([m for m in {HEAVY} if m in sys.modules])").strip() == "[]"


def test_help_loads_nothing_heavy():
    code = f"import sys; from shoal.cli import main; main(['--help']); print([m for m in {HEAVY} if m in sys.modules])"
    output = run(code)
    assert output.strip().endswith("[]")
    assert "shoal train" in output


@pytest.mark.parametrize("order", ["import shoal, gymnasium", "import gymnasium, shoal"])
def test_worlds_are_registered_whatever_comes_first(order):
    assert run(f"{order}; print('shoal/CartPole-v1' in gymnasium.registry)").strip() == "True"


def test_unknown_names_propose_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'cartpole'"):
        shoal.make("cartpol", 2)
    with pytest.raises(UnknownName, match="Did you mean 'LunarLander-v3'"):
        shoal.make("LunarLander-v4", 2)
    with pytest.raises(UnknownName, match="No option 'opponent' of connect4: it has none"):
        shoal.make("connect4", 2, opponent="depth4")
    with pytest.raises(ConfigError, match=r"no module 'nowhere\.at_all'"):
        shoal.make("nowhere.at_all:Env", 2)


@pytest.mark.parametrize("world", registry.OURS)
def test_every_world_refuses_an_unknown_option_in_the_same_words(world):
    names = [field.name for field in fields(registry.find_world(world).options)]
    meant = rf"\. Did you mean '{names[0]}'\? `shoal train {world} --help` lists all" if names else r": it has none\."
    wrong = f"{names[0]}z" if names else "colour"
    with pytest.raises(UnknownName, match=f"^No option '{wrong}' of {world}{meant}"):
        shoal.make(world, 2, **{wrong: 1})


def test_unknown_verb_is_one_sentence():
    result = subprocess.run([sys.executable, "-m", "shoal", "trian"], capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.startswith("shoal: No verb 'trian'. Did you mean 'train'? `shoal --help` lists all ")


def test_a_file_in_the_current_folder_does_not_stand_in_for_pythons_own(tmp_path):
    (tmp_path / "queue.py").write_text("raise RuntimeError('not the one')")
    (tmp_path / "mine.py").write_text("import queue\n\nAnswer = queue.Queue")
    code = "from shoal.registry import load; print(load('mine:Answer').__module__)"
    command = [sys.executable, "-P", "-c", code]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "queue"
