"""A stranger's world: the package that docs/worlds.md builds, installed with pip and used by its name."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```(?:python|toml)\n# (\S+)\n(.*?)```", re.S)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the package's source, and the folder that it was installed into."""
    folder = tmp_path_factory.mktemp("stranger")
    blocks = dict(BLOCK.findall((ROOT / "docs" / "worlds.md").read_text()))
    assert set(blocks) == {"pyproject.toml", "windy/world.py", "windy/lanes.py", "windy/lab.py"}
    for name, text in blocks.items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*pip, "--disable-pip-version-check", "--target", str(folder / "site"), str(folder / "source")], check=True
    )
    return folder


def shoal(place, *words, installed=True, expect=0):
    """What `shoal WORDS` prints, in a process of its own that can import the package."""
    paths = [str(place / ("site" if installed else "source")), str(ROOT / "src")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "120", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "shoal", *map(str, words)], cwd=place, env=env, capture_output=True, text=True
    )
    assert done.returncode == expect, done.stderr + done.stdout
    return done.stdout + done.stderr


TINY = ("--total-steps", "2048", "--algo.num-steps", "32", "--algo.minibatches", "2", "--eval-episodes", "4")


def test_the_package_is_as_short_as_the_page_says():
    blocks = dict(BLOCK.findall((ROOT / "docs" / "worlds.md").read_text()))
    code = [
        line for text in blocks.values() for line in text.splitlines() if line.strip() and line.strip()[:3] != '"""'
    ]
    assert len(code) < 110


def test_it_is_listed_and_its_flags_and_presets_are_explained(place):
    assert "me/Windy-v0" in shoal(place, "envs")
    text = shoal(place, "train", "windy", "--help")
    assert "How often a step is blown back." in text
    assert "arrives after a few seconds" in text
    assert "always to the right" in shoal(place, "play", "windy", "--help")
    assert "Did you mean '--wind'?" in shoal(place, "train", "windy", "--wimd", "1", expect=2)


def test_it_keeps_the_contract(place):
    assert "none broken" in shoal(place, "check", "windy", "--max-examples", "2")


def test_train_resume_eval_play_by_name(place):
    text = shoal(place, "train", "windy", "--wind", "0.1", *TINY, "--runs-dir", place / "runs")
    assert "steps to arrive" in text
    (run,) = (place / "runs").iterdir()
    assert json.loads((run / "config.json").read_text())["env"] == {"length": 10, "wind": 0.1}
    assert "% arrive" in shoal(place, "eval", run, "--arrivals")
    assert "play.html" in shoal(place, "play", run, "--length", "5")
    assert "ctx.arc" in (run / "play.html").read_text()
    assert "100% arrive" in shoal(place, "eval", "windy", "--arrivals", "--wind", "0")
    assert "Resuming" in shoal(place, "train", "--resume", run, "--total-steps", "4096")


def test_without_installing_it_is_named_by_its_place(place):
    text = shoal(place, "train", "windy.world:WORLD", *TINY, "--runs-dir", place / "named", installed=False)
    assert "Done" in text
    (run,) = (place / "named").iterdir()
    assert "mean return" in shoal(place, "eval", run, "--episodes", "4", installed=False)


def test_lanes_of_it_on_runners_and_in_gymnasium(place):
    shoal(place, "train", "windy", *TINY, "--num-envs", "4", "--runners", "2", "--runs-dir", place / "spread")
    code = (
        "import shoal, gymnasium; shoal.make('windy', 2).reset(seed=0); "
        "env = gymnasium.make('me/Windy-v0', wind=0.5); env.reset(seed=0); print(env.step(1)[1]); "
        "print(gymnasium.make_vec('me/Windy-v0', num_envs=3).num_envs)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(place / "site"), str(ROOT / "src")])}
    done = subprocess.run([sys.executable, "-c", code], cwd=place, env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["-1.0", "3"], done.stderr
