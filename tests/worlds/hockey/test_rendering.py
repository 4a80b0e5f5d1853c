import json

import numpy as np

import shoal
from shoal.vector.rendering import renderer_of
from shoal.worlds.hockey.rendering import COLORS, HEIGHT, INK, LEFT, SCALE, WIDTH, draw


def scene(**options):
    env = shoal.make("hockey", 2, compiled=False, **options)
    env.reset(seed=0)
    renderer = renderer_of(env)
    return env, renderer.frames(env, None), renderer.meta(env)


def has_color(picture, color):
    wanted = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)])
    return (np.abs(picture.astype(int) - wanted).max(axis=2) < 8).any(axis=0)


def test_frames_are_small_and_say_where_everything_is():
    env, frames, meta = scene(opponent="strong")
    assert len(frames) == 2
    assert frames[0][:6] == [2.0, 4.0, 0.0, 8.0, 4.0, 0.0]
    assert frames[0][6] == np.float64(f"{env.lane_state['x'][0, 2]:.4g}")
    assert len(json.dumps(frames[0])) < 80
    assert meta["names"] == ["policy", "strong"]


def test_a_picture_shows_both_rackets_and_the_puck_where_they_are():
    _, frames, meta = scene()
    picture = draw(frames[0], meta)
    assert picture.shape == (HEIGHT, WIDTH, 3)
    assert picture.dtype == np.uint8
    for color, x in zip((*COLORS, INK), (frames[0][0], frames[0][3], frames[0][6]), strict=True):
        columns = np.flatnonzero(has_color(picture, color))
        assert columns.min() <= (x - LEFT) * SCALE <= columns.max()


def test_holding_and_goals_show():
    _, frames, meta = scene()
    plain = draw(frames[0], meta)
    for change in ({8: 9.0}, {10: 1.0}, {10: -1.0}):
        frame = [change.get(k, value) for k, value in enumerate(frames[0])]
        assert (draw(frame, meta) != plain).any()
