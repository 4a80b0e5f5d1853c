"""docs/troubleshooting.md recommends what there is: flags that exist."""

import re
from pathlib import Path

import pytest

from shoal.cli import main

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "troubleshooting.md"
FLAG = re.compile(r"--[a-z][\w.-]*[a-z]")
OF_OTHER_VERBS = {"--policy"}


def test_it_answers_what_users_of_the_originals_asked():
    headings = [line.removeprefix("## ") for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    assert headings[:4] == [
        "More lanes are not faster",
        "It is slower with few lanes",
        "Out of memory",
        "The embedding does not update",
    ]


def test_every_flag_that_is_recommended_exists(capsys):
    for world, algo in (("dvrp", "ppo"), ("hockey", "sac"), ("CartPole-v1", "ppo")):
        with pytest.raises(SystemExit):
            main(["train", world, "--algo", algo, "--help"])
    known = FLAG.findall(capsys.readouterr().out)
    recommended = set(FLAG.findall(PAGE.read_text()))
    assert recommended - {*known, *OF_OTHER_VERBS} == set()
    assert len(recommended) > 20
