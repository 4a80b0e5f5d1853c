"""What only some systems have is asked for in one module, and there is another way for each of it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.platform import descendants_of, move_if_absent, out_of_reach

SOURCE = Path(__file__).parents[1] / "src" / "shoal"
MODULES = {"fcntl", "resource", "msvcrt", "winreg", "termios", "tty", "pty", "pwd", "grp", "posix", "_winapi"}
NAMES = {"memfd_create", "pidfd_open", "sched_getaffinity", "sched_yield", "fork", "getuid", "sysconf", "pipe2", "link"}
ALLOWED = {"platform.py", "vector/workers/linux.py"}
"""The module, and the Linux half of worker batches, which it chooses."""


def uses(path):
    """(line, what) of everything in a file that not every system has."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names if name.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield node.lineno, node.module
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            if node.attr in NAMES:
                yield node.lineno, f"os.{node.attr}"
        elif isinstance(node, ast.keyword) and node.arg in ("pass_fds", "preexec_fn", "start_new_session"):
            yield node.value.lineno, node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("/proc"):
            yield node.lineno, node.value


def test_what_not_every_system_has_is_in_one_module():
    files = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    elsewhere = {
        name: found
        for name, path in files.items()
        if name not in ALLOWED and not name.startswith("bench/") and (found := list(uses(path)))
    }
    assert not elsewhere  # benchmarks are for Linux, and are not part of the wheel
    assert list(uses(files["platform.py"]))  # so that a search which finds nothing is noticed


@pytest.mark.parametrize("links", [True, False])
def test_of_two_files_the_first_keeps_its_name(tmp_path, monkeypatch, links):
    if not links:
        monkeypatch.setattr("os.link", lambda *_: (_ for _ in ()).throw(PermissionError("no links here")))
    for text in ("first", "second"):
        (tmp_path / "new").write_text(text)
        move_if_absent(tmp_path / "new", tmp_path / "kept")
    assert (tmp_path / "kept").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_process_out_of_reach_has_a_session_of_its_own():
    ask = "import os; print(os.getsid(0) == os.getpid())"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, **out_of_reach())
    assert done.stdout.strip() == "True"


def test_descendants_of_nobody_are_none():
    assert descendants_of(2**22 + 1) == []
