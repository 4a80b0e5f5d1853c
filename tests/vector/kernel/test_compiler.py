"""The cache of compiled kernels, and what an author is told about a mistake."""

import importlib
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from shoal.vector.kernel import KernelBatch, compiler
from shoal.vector.kernel.source import SourceSet

HELPER = "def inner(x):\n    return x + {increment}\n\ndef outer(x):\n    return inner(x)\n"
KERNEL = """
    import numpy as np, gymnasium as gym
    import helper
    ITEM = object()
    from shoal.vector.kernel import Kernel, KernelBatch, f32, i32, record

    class Toy(Kernel):
        observation_space = gym.spaces.Box(-1e9, 1e9, (2,), np.float32)
        action_space = gym.spaces.Discrete(2)
        state = record(x=f32, t=i32)
        params = {"table": np.zeros(3)}

        def reset(s, p, rng):
            s.x = 0.0
            s.t = 0

        def step(s, action, p, rng):
            STEP

        def observe(s, p, out):
            OBSERVE

    batch = KernelBatch(Toy, 3)
    batch.reset(seed=0)
    print(*[batch.step(np.array([0, 1, 0]))[0][0, 0] for _ in range(6)])
"""
STEP = "s.x = helper.outer(s.x); return 0.0, False, False"
OBSERVE = "out[0] = s.x; out[1] = 0.0"


def run(folder, step=STEP, observe=OBSERVE, increment=1):
    (folder / "helper.py").write_text(HELPER.format(increment=increment))
    program = textwrap.dedent(KERNEL).replace("STEP", step).replace("OBSERVE", observe)
    (folder / "toy.py").write_text(program)
    environment = {**os.environ, "SHOAL_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run([sys.executable, "toy.py"], cwd=folder, env=environment, capture_output=True, text=True)
    return result


def test_second_process_does_not_compile_and_a_changed_helper_is_noticed(tmp_path):
    first = run(tmp_path)
    assert first.stdout.split() == ["1.0", "2.0", "3.0", "4.0", "5.0", "6.0"], first.stderr
    assert "compiling toy, once\n" in first.stderr
    second = run(tmp_path)
    assert second.stdout == first.stdout
    assert "compiling" not in second.stderr
    changed = run(tmp_path, increment=10)  # two calls deep
    assert changed.stdout.split() == ["10.0", "20.0", "30.0", "40.0", "50.0", "60.0"]
    assert "compiling" in changed.stderr


COUNT = "s.t += 1; return 0.0, False, False"
MISTAKES = {
    "two results": ("return 0.0, False", OBSERVE, ["Toy.step", "toy.py:", "three numbers"]),
    "index": (STEP, "out[0] = s.x; out[2] = 1.0", ["Toy.observe", "toy.py:", "index 2 is out of bounds"]),
    "unknown field": (STEP, "out[0] = s.speed; out[1] = 1.0", ["Toy.observe", "toy.py:", "speed"]),
    "a list": (
        "s.x = [i for i in range(3)][0]; return 0.0, False, False",
        OBSERVE,
        ["Toy.step", "toy.py:", "allocates"],
    ),
    "no such helper": (
        "s.x = helper.missing(s.x); return 0.0, False, False",
        OBSERVE,
        ["Toy.step", "helper.missing", "does not exist"],
    ),
    "a new array": ("s.x = np.zeros(3)[0]; return 0.0, False, False", OBSERVE, ["Toy.step", "toy.py:", "np.zeros"]),
    "a foreign object": ("s.x = ITEM; return 0.0, False, False", OBSERVE, ["Toy.step", "'ITEM', a object"]),
    "NaN reward": (
        "s.t += 1; return 0.0 if s.t < 5 else np.nan, False, False",
        OBSERVE,
        ["Toy.step", "toy.py:", "NaN", "lane 0"],
    ),
    "NaN observation": (COUNT, "out[0] = 1.0 if s.t < 6 else np.nan; out[1] = 0", ["Toy.observe", "NaN", "lane 0"]),
    "outside": (COUNT, "out[0] = 1.0; out[1 if s.t < 6 else 5] = 0", ["Toy.observe", "index 5 is out of bounds"]),
    "endless loop": (
        "while s.t >= 0: s.t += 0\n        return 0.0, False, False",
        OBSERVE,
        ["Toy.step", "a `while` loop has gone round 16,777,216 times", "toy.py:"],
    ),
}


@pytest.mark.parametrize(("step", "observe", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_told_in_a_sentence(tmp_path, step, observe, words):
    result = run(tmp_path, step=step, observe=observe)
    assert result.returncode != 0
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("shoal.errors.KernelError"), result.stderr
    for word in words:
        assert word in last, last


def test_unwritable_cache_falls_back(tmp_path):
    blocked = tmp_path / "cache"
    blocked.write_text("a file where the folder should be")
    result = run(tmp_path)
    assert result.returncode == 0, result.stderr


CHANGING = """
    import numpy as np, gymnasium as gym
    from shoal.vector.kernel import Kernel, i32, record

    PACE = 1

    class Settings:
        PACE = 10

    def move(pos):
        return pos + PACE + Settings.PACE

    class Walk(Kernel):
        observation_space = gym.spaces.Box(-1e9, 1e9, (1,), np.float32)
        action_space = gym.spaces.Discrete(2)
        state = record(pos=i32)

        def reset(s, p, rng):
            s.pos = 0

        def step(s, action, p, rng):
            s.pos = move(s.pos)
            return 0.0, False, False

        def observe(s, p, out):
            out[0] = s.pos
"""


def test_functions_are_looked_through_once_and_again_when_what_they_use_has_changed(tmp_path, monkeypatch):
    (tmp_path / "changing_walk.py").write_text(textwrap.dedent(CHANGING))
    monkeypatch.syspath_prepend(str(tmp_path))
    walk = importlib.import_module("changing_walk")
    made = []
    monkeypatch.setattr(compiler, "SourceSet", lambda *args: made.append(1) or SourceSet(*args))

    def first_step():
        batch = KernelBatch(walk.Walk, 1, compiled=False)
        batch.reset(seed=0)
        return batch.step(np.zeros(1, np.int64))[0].item()

    assert [first_step(), first_step(), len(made)] == [11, 11, 1]
    monkeypatch.setattr(walk, "PACE", 2)
    assert [first_step(), len(made)] == [12, 2]
    monkeypatch.setattr(walk.Settings, "PACE", 20)
    assert [first_step(), len(made)] == [22, 3]
    monkeypatch.setattr(walk, "move", step_back)
    assert [first_step(), len(made)] == [-1, 4]


def step_back(pos):
    return pos - 1
