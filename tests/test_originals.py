"""docs/originals.md holds: every line on its right side runs, at small sizes, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import shoal
from shoal.cli import main

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "originals.md"
DATA = {
    "DIR/countries_s3": ROOT / "tests" / "worlds" / "kg" / "data" / "countries_s3",
    "DIR/hockey_curriculum.json": ROOT / "configs" / "hockey_curriculum.json",
}
_EVAL = "--eval-episodes 2 --eval-every 0"
_ON_POLICY = f"--algo.num-steps 8 --algo.minibatches 2 --algo.epochs 1 {_EVAL}"
_OFF_POLICY = "--algo.warmup 32 --algo.batch-size 8 --algo.replay-capacity 4096 --algo.num-steps 8 --total-steps 128"
SMALLER = {
    "train kg": f"--num-envs 4 --total-steps 32 --max-states 16 --max-depth 4 --embedding-size 8 {_ON_POLICY}",
    "eval kg": "--corruptions 3 --limit 2",
    "train hockey": f"--num-envs 8 {_OFF_POLICY} --algo.hidden 16 {_EVAL}",
    "eval hockey": "--episodes 4 --num-envs 4",
    "tournament hockey": "--games 2",
    "train dvrp": f"--customers 6 --num-envs 4 --episodes 8 --travellers 8 --trips-each 8 {_EVAL}",
    "resume dvrp": "--episodes 12",
    "eval dvrp": "--episodes 4 --num-envs 2 --customers 6",
    "play": "--num-envs 2 --max-steps 3",
    "train cage2": f"--num-envs 4 --length 8 --total-steps 128 --algo.minibatches 1 --algo.num-steps 8 {_EVAL}",
    "eval cage2": "--episodes 2",
    "search cage2": "--workflows 2 --num-envs 2 --length 10 --max-episodes 2 --eval-episodes 2 --strategy random"
    " --compliance-threshold 0.01",
    "rllib rllib": "--num-envs 8 --train-batch-size 800",
}
"""What is added to a command, by verb and section."""
OF_PYTHON: dict[str, Any] = {
    "total_steps": 128, "eval_episodes": 2, "eval_every": 0, "quiet": True,
    "algo": {"name": "sac", "warmup": 32, "batch_size": 8, "replay_capacity": 4096, "num_steps": 8, "hidden": [16]},
}  # fmt: skip
SLOW = "rllib"
"""The section that needs a Ray."""


class Line(NamedTuple):
    """One row of a table: what is typed today, and what it prints."""

    section: str
    typed: str
    prints: list[str]


def read_page() -> list[Line]:
    lines, section = [], ""
    for text in PAGE.read_text().splitlines():
        if text.startswith("## "):
            section = text[3:].partition(":")[0]
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", text.strip().strip("|"))]
        if text.startswith("| ") and len(cells) == 3 and cells[1].startswith("`"):
            lines.append(Line(section, cells[1].strip("`"), re.findall(r"`([^`]+)`", cells[2])))
    return lines


LINES = read_page()
SECTIONS = list(dict.fromkeys(line.section for line in LINES))


class Session:
    """Somebody who types the lines of one section, one after another, in a folder."""

    def __init__(self, section: str) -> None:
        self.section, self.run = section, ""
        self.names: dict[str, Any] = {"shoal": _Namespace(shoal, train=self._train)}

    def type(self, line: Line) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            if line.typed.startswith("shoal "):
                assert self._command(line.typed) == 0, f"{line.typed}: {out.getvalue()}"
            else:
                exec(compile(line.typed, "docs/originals.md", "exec"), self.names)
        runs = [path.parent for path in Path().glob("*/*/metrics.jsonl") if (path.parent / "checkpoints").is_dir()]
        self.run = str(max(runs, key=lambda path: path.stat().st_mtime)) if runs else ""
        return out.getvalue()

    @staticmethod
    def _train(world: str, **settings: Any) -> Any:
        return shoal.train(world, **{**settings, **OF_PYTHON})

    def _command(self, typed: str) -> int:
        for name, path in DATA.items():
            typed = typed.replace(name, str(path))
        words = shlex.split(typed.replace("RUN", self.run))[1:]
        verb = "search" if "search" in words else "resume" if "--resume" in words else words[0]
        added = SMALLER.get(f"{verb} {self.section}", SMALLER.get(verb, ""))
        return main([*words, *shlex.split(added)])


class _Namespace:
    """The package, with one function of our own."""

    def __init__(self, module: Any, **own: Any) -> None:
        self._module = module
        self.__dict__.update(own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


@pytest.mark.parametrize("section", [pytest.param(s, marks=pytest.mark.slow) if s == SLOW else s for s in SECTIONS])
def test_every_line_of_today_runs_and_prints_what_the_page_says(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = Session(section)
    for line in (line for line in LINES if line.section == section):
        printed = session.type(line)
        missing = [text for text in line.prints if text not in printed]
        assert not missing, f"{line.typed} does not print {missing}: {printed[-2000:]}"


def test_the_page_has_all_five_originals_with_their_own_words():
    assert SECTIONS == ["kg", "hockey", "dvrp", "rllib", "cage2"]
    assert all(sum(line.section == section for line in LINES) >= 4 for section in SECTIONS)
    text = PAGE.read_text()
    assert text.count("**Better.**") == text.count("**Different on purpose.**") == len(SECTIONS)
