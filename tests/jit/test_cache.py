"""Compiled code on disk: used again by the next process, and never when it is out of date."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import shoal
from shoal.jit import entry, entry_points, inner
from shoal.jit.folder import cache_dir

SOURCES = Path(shoal.__file__).parents[1]
CONSTANTS = "STEP = {}\n"
PROGRAM = """
import sys
import numpy as np
from constants import STEP
from shoal.jit import entry, inner

@inner()
def add(x):
    return x + STEP

@entry("toy")
def total(x):
    result = x[0] * 0
    for i in range(len(x)):
        result += add(x[i])
    return result

kinds = sys.argv[1].split(",")
print([float(total(np.ones(3, kind))) for kind in kinds], total._call.stats.cache_misses.total())
"""


def start(folder, *arguments, sources=SOURCES):
    environment = {**os.environ, "SHOAL_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(sources)}
    command = [sys.executable, "-B", *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, stdout=-1, stderr=-1)


def output(process):
    text, errors = process.communicate()
    assert process.returncode == 0, errors
    return text.strip()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "constants.py").write_text(CONSTANTS.format(1))
    return tmp_path


def test_a_second_process_loads_and_a_changed_constant_elsewhere_is_compiled_anew(folder):
    assert output(start(folder, "program.py", "f8")) == "[6.0] 1"
    assert output(start(folder, "program.py", "f8")) == "[6.0] 0"
    assert output(start(folder, "program.py", "f8,f4")) == "[6.0, 6.0] 1"
    (folder / "constants.py").write_text(CONSTANTS.format(10))
    assert output(start(folder, "program.py", "f8")) == "[33.0] 1"
    (folder / "constants.py").write_text(CONSTANTS.format(1))
    assert output(start(folder, "program.py", "f8,f4")) == "[6.0, 6.0] 0"


def test_code_that_moves_to_another_module_is_compiled_anew(folder):
    (folder / "program.py").rename(folder / "here.py")
    assert output(start(folder, "-c", "import here", "f8")) == "[6.0] 1"
    (folder / "here.py").rename(folder / "there.py")  # Numba's cache would import the old name again
    assert output(start(folder, "-c", "import there", "f8")) == "[6.0] 1"


def test_processes_that_start_at_once_compile_once_and_do_not_mix_up_types(folder):
    """Numba numbers its files by what it has seen: two types written at once would be one file."""
    kinds = ["f8", "f4", "i8", "f8", "f4", "i8"]
    processes = [start(folder, "program.py", kind) for kind in kinds]
    outputs = [output(process).rsplit(" ", 1) for process in processes]
    assert [result for result, _ in outputs] == ["[6.0]"] * len(kinds)
    assert sum(int(misses) for _, misses in outputs) == len(set(kinds))
    assert output(start(folder, "program.py", "f8,f4,i8")) == "[6.0, 6.0, 6.0] 0"


REAL = {
    "LOG_STD_MAX": (
        "agents/soft_policies.py",
        r"(LOG_STD_MIN, LOG_STD_MAX = -20\.0, )2\.0",
        r"\g<1>1.0",
        """
        from shoal.agents.fast.sac import _squash
        std, inputs = np.zeros((2, 1), np.float32), np.zeros((1, 2), np.float32)
        params, noise = np.full((2, 2), 9, np.float32), np.zeros((2, 1), np.float32)
        _squash(params, noise, std, inputs, inputs, np.zeros(2, np.float32))
        print(np.log(std[0, 0]).round(3))
        """,
        ("2.0", "1.0"),
    ),
    "FORBIDDEN": (
        "agents/choosing.py",
        r"FORBIDDEN = -1e9",
        "FORBIDDEN = -2e9",
        """
        from shoal.agents.fast.heads import mask_outputs
        from shoal.jit import entry_points
        outputs, allowed, index = np.zeros(4096, np.float32), np.zeros((1, 2), np.bool_), np.zeros(1, np.int64)
        entry_points("mask", [mask_outputs])["mask_outputs"](outputs, allowed, index, 0, 1)
        print(float(outputs[0]))
        """,
        ("-1000000000.0", "-2000000000.0"),
    ),
}


@pytest.mark.parametrize(("file", "before", "after", "program", "results"), REAL.values(), ids=REAL)
def test_the_learners_notice_a_changed_constant(tmp_path, file, before, after, program, results):
    copy = tmp_path / "sources"
    shutil.copytree(SOURCES / "shoal", copy / "shoal", ignore=shutil.ignore_patterns("__pycache__", "*.safetensors"))
    lines = ["import numpy as np", *(line.strip() for line in program.strip().splitlines())]
    (tmp_path / "real.py").write_text("\n".join(lines))
    assert output(start(tmp_path, "real.py", sources=copy)) == results[0]
    path = copy / "shoal" / file
    text, count = re.subn(before, after, path.read_text())
    assert count == 1
    path.write_text(text)
    assert output(start(tmp_path, "real.py", sources=copy)) == results[1]


def test_importing_and_decorating_touches_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path / "cache"))

    @entry()
    def twice(x):
        return 2 * x

    assert not (tmp_path / "cache").exists()
    assert twice(4) == 8
    assert twice(x=5) == 10
    assert twice.inner.py_func(6) == twice.py_func(6) == 12
    assert any((tmp_path / "cache").glob("twice_*.py"))


def test_entries_with_examples_are_compiled_at_once_and_announced(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path))

    @inner()
    def rise(x):
        x += 1

    @inner()
    def size(x):
        return len(x)

    for announced in (True, False):
        functions = entry_points("Pair", {rise: (np.zeros(2),), size: (np.zeros(2),)})
        assert ("compiling pair, once\n" in capsys.readouterr().err) == announced
        array = np.zeros(3)
        functions["rise"](array)
        assert array.tolist() == [1, 1, 1]
        assert functions["size"](array) == 3
        assert [len(function.overloads) for function in functions.values()] == [1, 1]


def test_an_unwritable_folder_is_replaced(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(blocked))
    assert cache_dir().is_dir()
