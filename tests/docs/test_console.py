"""Every command on every page runs, at small sizes; those that cannot run here name only flags that exist."""

from __future__ import annotations

import contextlib
import io
import re
from itertools import takewhile
from pathlib import Path

import pytest

from shoal.cli import main
from tests.docs.blocks import PAGES, ROOT, blocks_of, commands_of

DATA = ROOT / "tests" / "worlds" / "kg" / "data" / "countries_s3"
GRAPHS = {"DIR", *(f"DIR/{name}" for name in ("family", "wn18rr", "countries_s3"))}
NOT_SHOAL = ("pip", "make", "python", "git", "cd", "bash")
NOT_HERE = {
    "bench": "takes minutes; tests/bench runs every suite",
    "rllib": "needs Ray; tests/cli/test_rllib.py runs it",
    "--ray-address": "needs a cluster",
    "--runners": "needs Ray; tests/cluster runs it",
    "--keyboard": "waits for somebody to play",
    "search": "takes minutes; tests/worlds/cage2/lab/search runs it",
    "train-oracle": "takes minutes; tests/worlds/dvrp runs it",
    "--leaderboard": "takes minutes; tests/worlds/cage2 runs it",
    "--oracle-checkpoint": "a file that takes minutes to make",
}
"""Words that keep a command from being run, and why."""
FLAGS_ONLY = {
    "images.md": "minutes of convolutions; tests/training/test_images.py and tests/vector/native run such lanes",
    "experiments.md": "many processes; tests/experiments runs them",
}
"""Pages none of whose commands are run, and why."""
SLOW = {"hockey.md", "kg.md", "offpolicy.md"}
WORLD_OF = {"offpolicy.md": "hockey"}
"""The world of a page's runs, where the page is not named after it."""
_RUN = "--eval-episodes 2 --eval-every 0"
_ON_POLICY = "--num-envs 8 --total-steps 128 --algo.num-steps 8 --algo.minibatches 2 --algo.epochs 1"
_OFF_POLICY = "--num-envs 8 --total-steps 128 --algo.num-steps 8 --algo.warmup 32 --algo.batch-size 8"
_OFF_POLICY += " --algo.replay-capacity 4096 --algo.hidden 16"
OF_WORLD = {
    "kg": "--max-states 16 --max-depth 4 --embedding-size 8",
    "dvrp": "--customers 6 --travellers 8 --trips-each 8 --algo.num-steps 6",
    "cage2": "--length 8",
}
OF_VERB = {
    "check": "--max-examples 2",
    "play": "--max-steps 3 --num-envs 2",
    "tournament": "--games 2",
    "prove": "",
    "train-kge": "--epochs 1 --rank 4 --walk-length 2",
}
OF_OTHERS = {"security.md": "tests/training/test_trust.py", "worlds.md": "tests/worlds/test_stranger.py"}
"""Pages about something that has to be there first, and where it is: somebody else's run, an installed package."""
WITH_COMMANDS = [page for page in PAGES if blocks_of(page, "console") and page not in OF_OTHERS]


class Reader:
    """Somebody who types the commands of one page, one after another, in a folder."""

    def type(self, words: list[str]) -> tuple[int, str]:
        """The exit code and what is printed."""
        words = [word for word in words if not re.fullmatch(r"[A-Z_]+=\w+", word)][1:]
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                code = main([*map(self._path, words), *self._smaller(words)])
            except SystemExit as end:  # argparse ends so after --help
                code = int(end.code or 0)
        return code, out.getvalue()

    def _path(self, word: str) -> str:
        if word in GRAPHS:
            return str(DATA)
        if word == "RUN":
            return str(self._last_run())
        if "|" in word:  # one of several
            return word.split("|")[0]
        if "*" in word:
            return str(max(Path().glob(word), key=lambda path: path.stat().st_mtime))
        return word

    @staticmethod
    def _last_run() -> Path:
        return max((path.parent for path in Path("runs").glob("*/metrics.jsonl")), key=lambda run: run.stat().st_mtime)

    def _smaller(self, words: list[str]) -> list[str]:
        verb = words[0] if words[0] not in OF_WORLD else words[1]
        if "--help" in words:
            return []
        if verb == "train":
            return self._smaller_training(words)
        if verb == "eval":
            run = any(word == "RUN" or word.startswith("runs/") for word in words)
            world = self._last_run().name.split("__")[0] if run else words[1]
            return ["--corruptions", "3", "--limit", "2"] if "--mode" in words else self._episodes(world)
        return OF_VERB.get(verb, "").split()

    @staticmethod
    def _episodes(world: str) -> list[str]:
        return ["--episodes", "4"]

    @staticmethod
    def _smaller_training(words: list[str]) -> list[str]:
        if "--resume" in words:
            return ["--total-steps", "256"]
        world = words[1] if not words[1].startswith("-") else "cartpole"
        off_policy = {"sac", "dddqn"} & {*words} or any("curriculum" in word for word in words)
        sizes = f"{_OFF_POLICY if off_policy else _ON_POLICY} {_RUN} {OF_WORLD.get(world, '')}".split()
        if "--episodes" in words:  # which counts instead of steps
            sizes[sizes.index("--total-steps") : sizes.index("--total-steps") + 2] = ["--episodes", "16"]
        return sizes


@pytest.mark.parametrize("page", [pytest.param(p, marks=pytest.mark.slow) if p in SLOW else p for p in WITH_COMMANDS])
def test_the_commands_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    for block in blocks_of(page, "python"):
        if block.file and "/" not in block.file:
            (tmp_path / block.file).write_text(block.text)
    reader = Reader()
    for block in blocks_of(page, "console"):
        for words, prints in commands_of(block):
            if words[0] in NOT_SHOAL:
                continue
            if page in FLAGS_ONLY or any(word in NOT_HERE for word in words):
                check_flags([WORLD_OF.get(page, page.removesuffix(".md")) if word == "RUN" else word for word in words])
                continue
            code, printed = reader.type(words)
            refused = prints.startswith("shoal: ")
            assert code == (2 if refused else 0), f"{page}: {' '.join(words)}\n{printed}"
            if refused:
                assert prints.split() == printed.split()


def check_flags(words: list[str]) -> None:
    """Every flag of a command is in its help."""
    words = [word for word in words if not re.fullmatch(r"[A-Z_]+=\w+", word)][1:]
    flags = [word for word in words if word.startswith("--")]
    named = [word for word in takewhile(lambda word: not word.startswith("-"), words) if re.fullmatch(r"[\w-]+", word)]
    algo = ["--algo", "sac"] if "sac" in words else []
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main([*named[:2], *algo, "--help"])
    known = re.findall(r"--[a-z][\w.-]*", out.getvalue())
    assert {*flags} <= {*known, "--help"}, words
