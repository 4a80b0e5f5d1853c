"""The page of settings is generated from the dataclasses, and help says what can be named."""

import gymnasium as gym
import pytest

from tools import settings_page


def test_the_page_of_settings_is_up_to_date():
    assert settings_page.PAGE.read_text() == settings_page.page(), "write it anew: python -m tools.settings_page"


def test_every_setting_says_what_it_means():
    for line in settings_page.page().splitlines():
        if line.startswith("| `"):
            assert line.split("|")[-2].strip().endswith((".", '."')), line


def test_help_of_world_says_that_gymnasium_ids_work(capsys):
    from shoal.cli import main

    with pytest.raises(SystemExit):
        main(["train", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "any Gymnasium id, e.g. LunarLander-v3" in said
    assert "LunarLander-v3" in gym.registry
