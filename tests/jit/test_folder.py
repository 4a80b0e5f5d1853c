"""The folder of compiled code is kept small, and never loses what somebody is compiling."""

import fcntl
import os
import time

import pytest

from shoal.cli import main
from shoal.errors import ConfigError
from shoal.jit.folder import limit_bytes, mark_used, stored_modules, trim

HOUR = 3600.0


@pytest.fixture
def folder(tmp_path):
    """Modules a, b and c of 1,010 bytes each, last used three, two and one days ago."""
    (tmp_path / "__pycache__").mkdir()
    for days, name in ((3, "a"), (2, "b"), (1, "c")):
        (tmp_path / f"{name}.py").write_text("x" * 10)
        (tmp_path / "__pycache__" / f"{name}.run-1.py311.nbi").write_text("x" * 500)
        (tmp_path / "__pycache__" / f"{name}.run-1.py311.1.nbc").write_text("x" * 500)
        used = time.time() - days * 24 * HOUR
        os.utime(tmp_path / f"{name}.py", (used, used))
    return tmp_path


def names(modules):
    return [module.path.stem for module in modules]


def test_the_modules_not_used_for_longest_go_first(folder):
    assert names(stored_modules(folder)) == ["a", "b", "c"]
    assert names(trim(folder, most=2100)) == ["a"]
    assert sorted(path.name.partition(".")[0] for path in folder.glob("__pycache__/*")) == ["b", "b", "c", "c"]
    mark_used(folder / "b.py")
    assert names(stored_modules(folder)) == ["c", "b"]


def test_what_was_used_lately_stays(folder):
    for name in "abc":
        mark_used(folder / f"{name}.py")
    assert trim(folder, most=0) == []


def test_using_a_module_does_not_change_it_for_numba(folder):
    before = (folder / "a.py").stat().st_mtime_ns
    mark_used(folder / "a.py")
    assert (folder / "a.py").stat().st_mtime_ns == before


def test_what_is_being_compiled_stays(folder):
    with open(folder / "a.py") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert names(trim(folder, most=0)) == ["b", "c"]


def test_shown_and_cleared_from_the_command_line(folder, monkeypatch, capsys):
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(folder))
    assert main(["cache"]) == 0
    assert "3 modules, 0.0 MB of at most 1,000 MB" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert "Removed 3 modules" in capsys.readouterr().out
    assert stored_modules(folder) == []


def test_a_limit_that_is_not_a_number_is_told(monkeypatch):
    monkeypatch.setenv("SHOAL_CACHE_MB", "much")
    with pytest.raises(ConfigError, match="SHOAL_CACHE_MB='much' is not a whole number"):
        limit_bytes()
