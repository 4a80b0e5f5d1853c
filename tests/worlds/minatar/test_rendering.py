import numpy as np

import shoal
from shoal.vector.rendering import renderer_of
from shoal.worlds.minatar.rendering import CELL


def scene(game):
    batch = shoal.make(f"minatar-{game}", 2, compiled=False)
    obs, _ = batch.reset(seed=0)
    renderer = renderer_of(batch)
    return renderer, renderer.frames(batch, obs), renderer.meta(batch)


def name_at(frame, meta, row, column):
    code = int(frame[10 * row + column], 36)
    return meta["things"][code - 1]["name"] if code else None


def test_a_frame_is_a_text_of_what_lies_on_top():
    _, frames, meta = scene("breakout")
    assert [len(frame) for frame in frames] == [100, 100]
    assert [name_at(frames[0], meta, row, 5) for row in range(5)] == [None, "brick", "brick", "brick", None]
    assert name_at(frames[0], meta, 9, 4) == "paddle"


def test_a_trail_lies_below_everything_else():
    renderer, _, meta = scene("breakout")
    batch = shoal.make("minatar-breakout", 1, compiled=False)
    board = np.zeros((1, 10, 10, 4), bool)
    board[0, 4, 7, 1:3] = True
    (frame,) = renderer.frames(batch, board)
    assert name_at(frame, meta, 4, 7) == "ball"


def test_tenth_plane_has_a_digit_of_its_own():
    renderer, frames, meta = scene("seaquest")
    batch = shoal.make("minatar-seaquest", 1, compiled=False)
    board = np.zeros((1, 10, 10, 10), bool)
    board[0, 4, 7, 9] = True
    (frame,) = renderer.frames(batch, board)
    assert name_at(frame, meta, 4, 7) == "diver"
    assert name_at(frames[0], meta, 0, 5) == "front"


def test_a_picture_has_the_colours_of_the_things():
    renderer, frames, meta = scene("space-invaders")
    picture = renderer.image(frames[0], meta)
    assert picture.shape == (10 * CELL, 10 * CELL, 3)
    middle = picture[CELL // 2 :: CELL, CELL // 2 :: CELL]
    alien = tuple(bytes.fromhex(meta["things"][2]["color"][1:]))
    assert [tuple(cell) == alien for cell in middle[0].tolist()] == [2 <= k < 8 for k in range(10)]
