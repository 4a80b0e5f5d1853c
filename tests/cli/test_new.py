"""`shoal new`: what it writes runs and passes its own test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.cli import main

ROOT = Path(__file__).parents[2]


def run(folder, *words):
    paths = [str(folder), str(ROOT / "src")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *words], cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.parametrize(("kind", "inside"), [("kernel", ""), ("env", ""), ("world", "windy_grid")])
def test_its_own_test_passes(kind, inside, tmp_path, capsys):
    assert main(["new", kind, "windy-grid", "--folder", str(tmp_path)]) == 0
    assert "Next: " in capsys.readouterr().out
    done = run(tmp_path / inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_a_new_world_is_a_world(tmp_path):
    main(["new", "world", "windy", "--folder", str(tmp_path)])
    code = "import shoal; shoal.make('windy.world:WORLD', 2, width=5, compiled=False).reset(seed=0)"
    done = run(tmp_path / "windy", "-c", code)
    assert done.returncode == 0, done.stderr
    lab = run(tmp_path / "windy", "-c", "from windy.lab import LAB; print(sorted(LAB.presets))")
    assert lab.stdout.strip() == "['ppo']", lab.stderr


def test_nothing_is_overwritten_and_names_are_names(tmp_path, capsys):
    for name, words in (("2048", "cannot name"), ("random", "exists already. Choose another.")):
        assert main(["new", "kernel", name, "--folder", str(tmp_path)]) == 2
        assert words in capsys.readouterr().err
    assert main(["new", "kernel", "windy", "--folder", str(tmp_path)]) == 0
    assert main(["new", "kernel", "windy", "--folder", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
