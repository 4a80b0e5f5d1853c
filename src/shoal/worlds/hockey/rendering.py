"""How the rink looks: in the replay player (`rendering.js`) and in videos (Pillow). Player 1 is blue, on the left."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np

from shoal.options import Values
from shoal.trees import Tree
from shoal.vector.rendering import Renderer, rounded
from shoal.worlds.hockey.lanes.constants import HOLD_STEPS, PUCK, PUCK_RADIUS
from shoal.worlds.hockey.lanes.physics.shapes import LEFT_GOAL, POLYGONS, RACKETS, RIGHT_GOAL, WALLS_AND_POSTS
from shoal.worlds.hockey.world import SEATS

SCALE, LEFT, BOTTOM = 64, 0.3, 0.1  # pixels per metre, and the corner of the picture in metres
WIDTH, HEIGHT = 602, 500
SHARPEN = 2  # drawn larger and scaled down, for smooth edges
PAPER, ICE, INK, FAINT, TRACK, GOAL = "#f4f5f7", "#ffffff", "#1b2330", "#9aa4b2", "#d5dae1", "#c8362f"
COLORS = ("#2667d6", "#d9622b")


def frames(batch: Any, obs: Tree) -> list[list[float]]:
    """Per lane: pose (x, y, angle) of both rackets, puck (x, y), both holding counters, winner."""
    s = batch.lane_state
    pose = np.stack([s["x"][:, :2], s["y"][:, :2], s["angle"][:, :2]], axis=2).reshape(len(s), 6)
    puck = np.stack([s["x"][:, PUCK], s["y"][:, PUCK]], axis=1)
    return [rounded(row) for row in np.concatenate([pose, puck, s["held"], s["winner"][:, None]], axis=1)]


def meta(batch: Any) -> Values:
    """Shapes in metres, and what the players are called."""
    seats = batch.lane_state["seat"]
    names = [SEATS[seats[0, k]] if (seats[:, k] == seats[0, k]).all() else "opponent" for k in range(2)]
    return {
        "walls": [_short(POLYGONS[k]) for k in WALLS_AND_POSTS],
        "goals": [_short(POLYGONS[k]) for k in (LEFT_GOAL, RIGHT_GOAL)],
        "rackets": [_short(POLYGONS[RACKETS + k]) for k in range(2)],
        "radius": round(PUCK_RADIUS, 4),
        "hold": HOLD_STEPS,
        "names": names,
    }


def _short(polygon: list[tuple[float, float]]) -> list[list[float]]:
    return [[round(x, 4), round(y, 4)] for x, y in polygon]


def draw(frame: list[float], meta: Values) -> np.ndarray:
    """One picture, [HEIGHT, WIDTH, 3] uint8."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (WIDTH * SHARPEN, HEIGHT * SHARPEN), PAPER)
    pen = ImageDraw.Draw(image)

    def at(x: float, y: float) -> tuple[float, float]:
        return (x - LEFT) * SCALE * SHARPEN, (HEIGHT - (y - BOTTOM) * SCALE) * SHARPEN

    def around(x: float, y: float, radius: float) -> list[float]:
        return [*at(x - radius, y + radius), *at(x + radius, y - radius)]

    winner = round(frame[10])
    pen.rectangle([*at(0.75, 7.5), *at(9.25, 0.5)], ICE)
    pen.line([at(5, 0.67), at(5, 7.33)], TRACK, 2 * SHARPEN)
    pen.ellipse(around(5, 4, 1), outline=TRACK, width=2 * SHARPEN)
    for goal, scored in zip(meta["goals"], (winner == -1, winner == 1), strict=True):
        pen.polygon([at(*point) for point in goal], GOAL if scored else TRACK)
    for wall in meta["walls"]:
        pen.polygon([at(*point) for point in wall], FAINT)
    for k, color in enumerate(COLORS):
        x, y, angle = frame[3 * k : 3 * k + 3]
        cosine, sine = np.cos(angle), np.sin(angle)
        pen.polygon([at(x + cosine * u - sine * v, y + sine * u + cosine * v) for u, v in meta["rackets"][k]], color)
        if frame[8 + k] > 0:  # time left to shoot
            share = 360 * frame[8 + k] / meta["hold"]
            pen.arc(around(x, y, 0.62), -90 - share, -90, color, 4 * SHARPEN)
        x, anchor = ((1.0, "lm"), (9.0, "rm"))[k]
        pen.text(at(x, 7.5), meta["names"][k], PAPER, anchor=anchor, font_size=15 * SHARPEN)
    pen.ellipse(around(frame[6], frame[7], meta["radius"]), fill=INK)
    return np.asarray(image.resize((WIDTH, HEIGHT)))


RINK = Renderer(
    "hockey", (files(__package__) / "rendering.js").read_text(), frames=frames, image=draw, fps=50, meta=meta
)
