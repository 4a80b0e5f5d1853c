"""A person against somebody, with the mouse: in a real browser where there is one."""

from __future__ import annotations

import json
import subprocess
import urllib.error

import pytest

from shoal.cli import main
from shoal.errors import ConfigError
from shoal.games.lab import page
from shoal.worlds.connect4.lab.mouse import Match
from tests.games.serving import post, served
from tests.report.browser import BROWSER, FLAGS, needs_browser


def test_a_stone_is_answered_and_games_are_counted():
    with served(Match("depth4", seed=0)) as address:
        shown = post(address, b"3")
        assert shown["frame"][3] == 1
        assert shown["frame"][:42].count(2) == 1
        while not shown["over"]:
            open_columns = [column for column in range(7) if shown["frame"][35 + column] == 0]
            shown = post(address, str(open_columns[0]).encode())
        assert sum(shown["score"]) <= 1
        shown = post(address, b"null")
        assert (shown["over"], shown["seat"], shown["frame"][:42].count(1)) == (False, 1, 1)


@pytest.mark.parametrize("action", [7, -1, True, "three", 2.5])
def test_what_is_not_a_column_is_refused(action):
    with served(Match("random", seed=0)) as address, pytest.raises(urllib.error.HTTPError) as refused:
        post(address, json.dumps(action).encode())
    assert refused.value.code == 400
    assert b"must go into one of the columns 0, 1, 2, 3, 4, 5, 6" in refused.value.read()


def test_nobody_by_that_name_is_a_sentence():
    with pytest.raises(ConfigError, match="'medium' cannot play connect4"):
        Match("medium")


def test_play_lets_a_person_play_unless_somebody_else_is_named(tmp_path, monkeypatch, capsys):
    served = []
    monkeypatch.setattr(page, "serve", lambda match: served.append(match.opponent) or 0)
    monkeypatch.chdir(tmp_path)
    assert main(["play", "connect4"]) == main(["play", "connect4", "--vs", "depth4"]) == 0
    assert served == ["ppo", "depth4"]
    assert main(["play", "connect4", "--policy", "ppo", "--num-envs", "1"]) == 0
    assert (tmp_path / capsys.readouterr().out.split()[0]).is_file()
    assert len(served) == 2


@needs_browser
def test_a_click_in_a_browser_drops_a_stone(tmp_path):
    class Clicking(Match):
        """Its page clicks on the fourth column once it is drawn."""

        def page(self):
            click = "setTimeout(() => { const b = canvas.getBoundingClientRect(); canvas.dispatchEvent(new MouseEvent("
            click += '"click", { clientX: b.left + b.width / 2, clientY: b.top + 5 })); }, 300);'
            return super().page().replace("send(null);", f"send(null); {click}")

    match = Clicking("depth2", seed=0)
    with served(match) as address:
        command = [BROWSER, *FLAGS, f"--user-data-dir={tmp_path}", "--virtual-time-budget=4000", "--dump-dom", address]
        page = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert not [line for line in page.stderr.splitlines() if "CONSOLE" in line]
    assert "your turn" in page.stdout
    assert match.step(None)["frame"][3] == 1
