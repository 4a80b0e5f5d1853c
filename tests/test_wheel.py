"""The wheel alone, in an environment outside the checkout: everything a user needs is in it, and nothing else."""

from __future__ import annotations

import os
import site
import subprocess
import sys
import time
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KERNEL = """
import numpy as np
from gymnasium.spaces import Box, Discrete
import shoal
from shoal.vector.kernel import f64


class Walk(shoal.Kernel):
    observation_space, action_space = Box(-10, 10, (1,), np.float32), Discrete(2)
    state = shoal.record(x=f64)

    def reset(s, p, rng):
        s.x = 0.0

    def step(s, action, p, rng):
        s.x += 2.0 * action - 1.0
        return s.x, abs(s.x) > 5.0, False

    def observe(s, p, out):
        out[0] = s.x


if __name__ == "__main__":
    batch = shoal.make(Walk, 8)
    batch.reset(seed=0)
    batch.step(np.ones(8, np.int64))
    batch.close()
    workers = shoal.make("FrozenLake-v1", 4, backend="workers", num_workers=2)
    workers.reset(seed=0)
    workers.step(np.zeros(4, np.int64))
    workers.close()
    print("both stepped")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """An environment with the wheel, which finds everything else where this one has it."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # a path in such a file is searched, but the files in it that would bring the checkout along are not read
    (packages / "others.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return folder


def python(installed, *words, cwd, expect=0, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"OMP_NUM_THREADS": "1", "COLUMNS": "120", **variables}
    command = [str(installed / "bin" / "python"), *map(str, words)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_it_holds_the_package_whole_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    listed = subprocess.run(["git", "ls-files", "src/shoal"], cwd=ROOT, capture_output=True, text=True, check=True)
    source = {name.removeprefix("src/") for name in listed.stdout.split()}
    wanted = {name for name in source if not name.startswith("shoal/bench/")}
    assert {name for name in names if name.startswith("shoal/")} == wanted
    assert wheel.stat().st_size < 5e6


def test_a_user_trains_evaluates_plays_and_steps_their_own(installed, tmp_path):
    where = python(installed, "-c", "import shoal; print(shoal.__file__)", cwd=tmp_path)
    assert str(installed) in where
    tiny = ("--total-steps", "1024", "--num-envs", "8", "--algo.num-steps", "32", "--eval-episodes", "4")
    python(installed, "-m", "shoal", "train", "cartpole", *tiny, "--run-name", "first", cwd=tmp_path)
    assert "mean" in python(installed, "-m", "shoal", "eval", "runs/first", "--episodes", "4", cwd=tmp_path)
    python(installed, "-m", "shoal", "play", "runs/first", "--max-steps", "20", cwd=tmp_path)
    assert (tmp_path / "runs" / "first" / "play.html").exists()
    python(installed, "-m", "shoal", "export", "runs/first", "--to", "c", cwd=tmp_path)
    (tmp_path / "mine.py").write_text(KERNEL)
    assert "none broken" in python(installed, "-m", "shoal", "check", "mine:Walk", "--max-examples", "2", cwd=tmp_path)
    assert "both stepped" in python(installed, "mine.py", cwd=tmp_path)
    told = python(installed, "-m", "shoal", "bench", cwd=tmp_path, expect=2)
    assert "come with Shoal's source" in told


@pytest.mark.slow
def test_from_an_empty_environment_to_a_first_agent(wheel, tmp_path):
    """With torch already there, and nothing compiled. Prints the seconds, of which a quiet machine needs under 60."""
    venv.create(tmp_path / "env", with_pip=True)
    pip = ("-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt")
    python(tmp_path / "env", *pip, "torch", cwd=tmp_path)
    begin = time.perf_counter()
    python(tmp_path / "env", *pip, f"{wheel}[train]", cwd=tmp_path)
    installed = time.perf_counter()
    fresh = {"HOME": str(tmp_path), "SHOAL_CACHE_DIR": str(tmp_path / "cache")}
    printed = python(tmp_path / "env", "-m", "shoal", "train", "cartpole", cwd=tmp_path, **fresh)
    end = time.perf_counter()
    assert "mean return 500.00" in printed
    print(f"\ninstalled in {installed - begin:.0f} s, trained in {end - installed:.0f} s, {end - begin:.0f} s in all")
