import urllib.error
import urllib.request

import pytest

from shoal.errors import ConfigError
from shoal.worlds.hockey.lab.keyboard import Match
from shoal.worlds.hockey.lanes.constants import PUCK
from tests.games.serving import post, served


@pytest.fixture
def address():
    with served(Match("strong", seed=0)) as address:
        yield address


def test_keys_move_the_left_racket_and_the_page_is_complete(address):
    with urllib.request.urlopen(f"{address}/") as response:
        page = response.read().decode()
    assert "RENDERER" not in page
    assert '"names": ["you", "strong"]' in page
    before = post(address, b"[0, 0, 0, 0]")["frame"]
    for _ in range(10):
        answer = post(address, b"[1, 0, 0, 0]")
    assert answer["frame"][0] > before[0] + 0.1
    assert answer["score"] == [0, 0]


@pytest.mark.parametrize("body", [b"[1, 0]", b"nonsense", b"[NaN, 0, 0, 0]", b'{"a": 1}'])
def test_a_bad_request_is_refused_in_a_sentence(address, body):
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(address, body)
    assert refused.value.code == 400
    assert refused.value.read()


def test_games_are_counted_and_go_on():
    match = Match("sac", seed=1)
    for goals in (1, 2):
        lane = match.batch.lane_state
        x, y, vx = lane["x"].copy(), lane["y"].copy(), lane["vx"].copy()
        x[:, PUCK], y[:, PUCK], vx[:, PUCK] = 1.4, 4.8, -30.0  # a shot at the person's goal, past the racket
        match.batch.set_lanes(x=x, y=y, vx=vx)
        answers = [match.step([0, 0, 0, 0]) for _ in range(5)]
        assert [answer["over"] for answer in answers].count(True) == 1
        assert answers[-1]["score"] == [0, goals]
    with pytest.raises(ConfigError, match="Nobody called 'medium'"):
        Match("medium")
