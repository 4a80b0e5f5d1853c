"""The picture of the network, in the player and in videos."""

from __future__ import annotations

import json

import numpy as np
import pytest

from shoal import make
from shoal.vector.rendering import renderer_of
from shoal.worlds.cage2.lanes.batch import give
from shoal.worlds.cage2.lanes.names import EXPLOIT, OP_SERVER, SCAN_HOST
from shoal.worlds.cage2.rendering import OWNED, describe_red
from tests.report.browser import dom, needs_browser


@pytest.fixture
def episode():
    """A lane after a noticed exploit of User3 that came in privileged."""
    batch = make("cage2", 1, red="given", compiled=False)
    renderer = renderer_of(batch)
    obs, _ = batch.reset(seed=0)
    shown = [renderer.frames(batch, obs)[0]]
    for kind in (SCAN_HOST, EXPLOIT):
        give(batch, kind=kind, target=11, exploit=6, noticed=1)
        obs, *_ = batch.step(np.array([1]))
        shown.append(renderer.frames(batch, obs)[0])
    return batch, renderer, shown


def test_frames_hold_truth_belief_and_moves(episode):
    batch, renderer, (start, scanned, exploited) = episode
    assert start["owned"] == 1 << 8
    assert scanned["table"] >> 44 & 0b11 == 0b01
    assert exploited["owned"] == 1 << 8 | 1 << 11
    assert exploited["table"] >> 44 & 0b1111 == 0b1011  # exploit seen, user level believed
    assert describe_red(scanned) == "scan host User3"
    assert describe_red(exploited) == "exploit User3 by HarakaRCE"
    assert describe_red(start) == "sleep "
    json.dumps([start, renderer.meta(batch)])
    assert sorted(h for column in renderer.meta(batch)["columns"] for h in column["hosts"]) == list(range(13))
    assert OP_SERVER in renderer.meta(batch)["columns"][2]["hosts"]


def test_a_video_frame_shows_what_is_lost(episode):
    pytest.importorskip("PIL")
    batch, renderer, (start, _, exploited) = episode
    pictures = [renderer.image(frame, renderer.meta(batch)) for frame in (start, exploited)]
    red = [int(OWNED[i : i + 2], 16) for i in (1, 3, 5)]
    lost = [(picture == red).all(2).sum() for picture in pictures]
    assert pictures[0].shape == (420, 640, 3)
    assert lost[1] > 1.5 * lost[0]  # User0's bar, then User3's too


@needs_browser
def test_the_player_draws_it(tmp_path, monkeypatch):
    from shoal.cli import main

    monkeypatch.chdir(tmp_path)
    words = "--policy react-restore --red meander --num-envs 1 --max-steps 5"
    assert main(["play", "cage2", *words.split()]) == 0
    (page,) = tmp_path.glob("*.html")
    assert "<canvas" in dom(page, tmp_path / "profile")
