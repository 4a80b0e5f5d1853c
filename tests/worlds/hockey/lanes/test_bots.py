import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.worlds.hockey.lanes.bots import STRONG_GAIN, WEAK_GAIN, bot_action
from shoal.worlds.hockey.lanes.constants import PUCK
from tests.worlds.hockey.lanes.rink import make_rink

coordinates = st.floats(-3.0, 3.0)


@given(x=coordinates, y=coordinates, px=coordinates, py=coordinates, vx=coordinates, phase=st.floats(0.0, 6.0))
def test_a_bot_plays_alike_on_both_sides(x, y, px, py, vx, phase):
    left = make_rink(racket_1=(5 + x, 4 + y), puck=(5 + px, 4 + py))
    right = make_rink(racket_2=(5 - x, 4 - y), puck=(5 - px, 4 - py))
    left.vx[PUCK], right.vx[PUCK] = vx, -vx
    left.phase[0] = right.phase[1] = phase
    mine, theirs = bot_action(left, 0, WEAK_GAIN, True), bot_action(right, 1, WEAK_GAIN, True)
    assert mine == pytest.approx(theirs, abs=1e-9)
    assert all(-1.0 <= part <= 1.0 for part in mine)


def test_a_bot_goes_home_when_the_puck_flies_away():
    s = make_rink(racket_1=(4.0, 5.0), puck=(6.0, 4.0))
    s.vx[PUCK] = 5.0
    forward, sideways, *_ = bot_action(s, 0, STRONG_GAIN, True)
    assert forward == -1.0
    assert sideways == -1.0


def test_a_bot_turns_with_its_phase_and_shoots_late():
    s = make_rink()
    s.phase[0] = math.pi / 2
    assert bot_action(s, 0, STRONG_GAIN, True)[2] == 1.0
    for held, shoots in ((0, 0.0), (6, 1.0), (7, 0.0), (15, 0.0)):
        s.held[0] = held
        assert bot_action(s, 0, STRONG_GAIN, True)[3] == shoots
        assert bot_action(s, 0, STRONG_GAIN, False)[3] == 0.0
