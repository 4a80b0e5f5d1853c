"""The site builds without a warning, and holds what is made from the code."""

import dataclasses
import os
import re
import subprocess
import sys

import pytest

from shoal.agents.config import DDDQNConfig, PPOConfig, SACConfig
from shoal.cli import VERBS
from shoal.registry import OURS
from tests.docs.blocks import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """`make docs`, into a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_setting_of_every_agent_is_there(site):
    page = (site / "settings" / "index.html").read_text()
    for config in (PPOConfig, SACConfig, DDDQNConfig):
        assert all(f"<code>{field.name}</code>" in page for field in dataclasses.fields(config))


def test_every_verb_is_explained(site):
    page = (site / "reference" / "cli" / "index.html").read_text()
    assert all(f'id="{verb}"' in page for verb in VERBS)


def test_python_is_documented_with_its_arguments(site):
    page = (site / "reference" / "python" / "index.html").read_text()
    for name in ("shoal.registry.make", "shoal.policy.load.load", "shoal.vector.batch.Batch.step_into"):
        assert f'id="{name}"' in page


def test_every_world_can_be_watched(site):
    page = (site / "gallery" / "index.html").read_text()
    for name in OURS:
        assert f'data-src="{name}.html"' in page
        assert '"frames":[' in (site / "gallery" / f"{name}.html").read_text()


def test_pages_load_nothing_from_elsewhere(site):
    for path in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|link|img|iframe)[^>]* (?:src|href)="(https?:[^"]+)"', path.read_text())
        assert loaded == [], path
