"""Pages about settings, environments, networks and hooks say what is so: tables are generated, code blocks run."""

import re
from pathlib import Path

import gymnasium as gym
import pytest

import shoal
from tools import settings_page

DOCS = Path(__file__).parents[1] / "docs"


def blocks(page):
    """The Python of a page."""
    return re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)


def test_the_page_of_settings_is_up_to_date():
    assert settings_page.PAGE.read_text() == settings_page.page(), "write it anew: python -m tools.settings_page"


def test_every_setting_says_what_it_means():
    for line in settings_page.page().splitlines():
        if line.startswith("| `"):
            assert line.split("|")[-2].strip().endswith((".", '."')), line


@pytest.mark.parametrize("page", ["environments.md", "hooks.md"])
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in blocks(page):
        exec(compile(block, page, "exec"), {"__name__": "page"})


def test_the_network_of_the_page_trains(tmp_path, monkeypatch):
    (block,) = blocks("networks.md")
    (tmp_path / "my_nets.py").write_text(block)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    result = shoal.train(
        "CartPole-v1",
        network="my_nets:Net",
        backend="serial",
        num_envs=2,
        total_steps=64,
        eval_episodes=1,
        algo={"num_steps": 16, "minibatches": 2},
        quiet=True,
    )
    assert type(result.agent.network).__name__ == "Net"


def test_help_of_world_says_that_gymnasium_ids_work(capsys):
    from shoal.cli import main

    with pytest.raises(SystemExit):
        main(["train", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "any Gymnasium id, e.g. LunarLander-v3" in said
    assert "LunarLander-v3" in gym.registry
