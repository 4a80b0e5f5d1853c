"""The one way to a contender's process: start a worker, have it do things, hear why it cannot."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path

import pytest

from shoal.bench.contender import Unavailable
from shoal.bench.process import ChildProcess

WORKER = "tests.bench.test_process:Adder"


class Adder:
    """A worker for the tests, with something to tell when it is closed."""

    def __init__(self, total=0, farewell=None):
        self.total, self.farewell = total, farewell
        print("libraries print what they like")

    def add(self, number):
        self.total += number
        return {"total": self.total, "threads": os.environ["OMP_NUM_THREADS"]}

    def refuse(self):
        raise Unavailable("not on a Tuesday")

    def hang(self):
        while True:
            time.sleep(3600)

    def die(self):
        os._exit(3)

    def close(self):
        if self.farewell is not None:
            with open(self.farewell, "w") as file:
                file.write(str(self.total))


@pytest.fixture
def process(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    with closing(ChildProcess({"OMP_NUM_THREADS": "3"})) as process:
        yield process


def test_a_worker_is_kept_from_one_request_to_the_next(process, tmp_path):
    process.start(WORKER, total=1, farewell=str(tmp_path / "first"))
    assert process.do("add", number=2) == {"total": 3, "threads": "3"}
    assert process.do("add", number=4)["total"] == 7
    process.start(WORKER, total=10)  # closes the one before
    assert (tmp_path / "first").read_text() == "7"
    assert process.do("add", number=1)["total"] == 11


@pytest.mark.parametrize(
    ("method", "arguments", "reason"),
    [
        ("refuse", {}, "^not on a Tuesday$"),
        ("add", {"number": "one"}, r"^failed \(TypeError: "),
        ("die", {}, "^its process died with exit code 3$"),
    ],
)
def test_why_it_cannot_is_told(process, method, arguments, reason):
    process.start(WORKER)
    with pytest.raises(Unavailable, match=reason):
        process.do(method, **arguments)


def test_what_is_not_installed_is_told(process):
    with pytest.raises(Unavailable, match=r"^not installed \(No module named 'nowhere'\)$"):
        process.start("nowhere:Worker")


def test_patience_ends(process):
    process.start(WORKER)
    process.patience_s = 0.01
    with pytest.raises(Unavailable, match="took more than 0 s"):
        process.do("hang")
