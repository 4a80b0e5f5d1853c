"""The map of city, routes and offers, in the player and in videos."""

import json

import numpy as np
import pytest

import shoal
from shoal.vector.rendering import renderer_of
from shoal.worlds.dvrp.lanes.offers import NO_OFFER
from shoal.worlds.dvrp.rendering import NO, describe_answer, describe_request
from tests.report.browser import dom, needs_browser


@pytest.fixture
def episode():
    """A batch of two lanes and its frames through an episode of four requests, the third offer declined."""
    batch = shoal.make("dvrp", 2, customers=4, oracle="insertion", compare_noop=True, autoreset_mode="disabled")
    renderer = renderer_of(batch)
    obs, _ = batch.reset(seed=3)
    shown = [renderer.frames(batch, obs)]
    for action in (NO_OFFER, NO_OFFER, 3, NO_OFFER):
        if action != NO_OFFER:
            batch.state["limit"][:] = 0
        obs, *_ = batch.step(np.full(2, action))
        shown.append(renderer.frames(batch, obs))
    return batch, renderer, [frames[0] for frames in shown]


def test_frames_tell_routes_request_and_answer(episode):
    batch, renderer, shown = episode
    assert shown[0]["routes"] == []
    assert describe_answer(shown[0]) == "nobody has been asked yet"
    assert "declined" in describe_answer(shown[3])
    assert "as asked for" in describe_answer(shown[1])
    assert " asks: " in describe_request(shown[1])
    assert describe_request(shown[-1]) == "all requests are booked"
    stops = [stop for route in shown[-1]["stops"] for stop in route]
    assert sorted(stops) == [-4, -3, -2, -1, 1, 2, 3, 4]
    assert sum(map(len, shown[-1]["routes"])) == 8
    assert len(renderer.meta(batch)["cells"]) == 31
    json.dumps([shown, renderer.meta(batch)])


def test_a_video_frame_shows_who_asks(episode):
    pytest.importorskip("PIL")
    batch, renderer, shown = episode
    asking, over = (renderer.image(frame, renderer.meta(batch)) for frame in (shown[0], shown[-1]))
    red = [int(NO[i : i + 2], 16) for i in (1, 3, 5)]
    assert asking.shape == (480, 640, 3)
    assert (asking == red).all(2).sum() > 100
    assert not (over == red).all(2).any()


@needs_browser
def test_the_player_draws_it(tmp_path, monkeypatch):
    from shoal.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["play", "dvrp", "--policy", "max", "--num-envs", "2", "--customers", "4"]) == 0
    assert "<canvas" in dom(tmp_path / "play_dvrp_max.html", tmp_path / "profile")
