"""How the classic worlds look: in the replay player (`rendering.js`) and in videos (Pillow). Frames are observations.

Both drawings use the same scenes: positions in metres (or units of the hill), mapped to a canvas of 3 : 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np

from shoal.vector.rendering import Renderer

WIDTH, HEIGHT, SHARPEN = 600, 400, 2  # drawn larger and scaled down, for smooth edges
Meta = dict[str, Any]
PAPER, INK, FAINT, BLUE, ORANGE = "#f4f5f7", "#1b2330", "#c3cad3", "#2667d6", "#d9622b"


class Canvas:
    """Pillow with coordinates of a WIDTH x HEIGHT picture, y downwards."""

    def __init__(self) -> None:
        from PIL import Image, ImageDraw

        self._image = Image.new("RGB", (WIDTH * SHARPEN, HEIGHT * SHARPEN), PAPER)
        self._draw = ImageDraw.Draw(self._image)

    def line(self, points: list[tuple[float, float]], color: str, width: float) -> None:
        scaled = [(x * SHARPEN, y * SHARPEN) for x, y in points]
        self._draw.line(scaled, color, round(width * SHARPEN), joint="curve")
        for x, y in (points[0], points[-1]):
            self.circle(x, y, width / 2, color)

    def circle(self, x: float, y: float, radius: float, color: str) -> None:
        box = [(c + s * radius) * SHARPEN for s in (-1, 1) for c in (x, y)]
        self._draw.ellipse(box, color)

    def rect(self, x: float, y: float, width: float, height: float, color: str, radius: float = 6) -> None:
        box = [c * SHARPEN for c in (x, y, x + width, y + height)]
        self._draw.rounded_rectangle(box, radius * SHARPEN, color)

    def array(self) -> np.ndarray:
        """[HEIGHT, WIDTH, 3] uint8."""
        return np.asarray(self._image.resize((WIDTH, HEIGHT)))


def draw_cartpole(canvas: Canvas, frame: list[float], meta: Meta) -> None:
    x, _, angle, _ = frame
    scale, ground, pole = WIDTH / 5.6, HEIGHT * 0.74, HEIGHT * 0.46
    cart = WIDTH / 2 + x * scale
    canvas.line([(0, ground), (WIDTH, ground)], FAINT, 2)
    for edge in (-2.4, 2.4):
        canvas.line([(WIDTH / 2 + edge * scale, ground - 10), (WIDTH / 2 + edge * scale, ground + 10)], FAINT, 2)
    canvas.rect(cart - 36, ground - 22, 72, 34, INK)
    top = ground - 18
    canvas.line([(cart, top), (cart + pole * np.sin(angle), top - pole * np.cos(angle))], ORANGE, 11)
    canvas.circle(cart, top, 5, BLUE)


def draw_pendulum(canvas: Canvas, frame: list[float], meta: Meta) -> None:
    up, side, _ = frame
    x, y, rod = WIDTH / 2, HEIGHT * 0.52, HEIGHT * 0.36
    canvas.line([(x, y - rod - 24), (x, y - rod - 12)], FAINT, 3)
    tip = (x - rod * side, y - rod * up)
    canvas.line([(x, y), tip], ORANGE, 14)
    canvas.circle(*tip, 13, BLUE)
    canvas.circle(x, y, 8, INK)


def draw_acrobot(canvas: Canvas, frame: list[float], meta: Meta) -> None:
    cos1, sin1, cos2, sin2 = frame[:4]
    x, y, link = WIDTH / 2, HEIGHT * 0.53, HEIGHT * 0.2
    canvas.line([(WIDTH * 0.12, y - link), (WIDTH * 0.88, y - link)], FAINT, 2)
    elbow = (x + link * sin1, y + link * cos1)
    both = (sin1 * cos2 + cos1 * sin2, cos1 * cos2 - sin1 * sin2)  # sine and cosine of the summed angles
    tip = (elbow[0] + link * both[0], elbow[1] + link * both[1])
    canvas.line([(x, y), elbow], INK, 13)
    canvas.line([elbow, tip], ORANGE, 13)
    canvas.circle(*elbow, 6, BLUE)
    canvas.circle(x, y, 6, BLUE)


def draw_mountain_car(canvas: Canvas, frame: list[float], meta: Meta) -> None:
    position = frame[0]
    xs = np.linspace(-1.2, 0.6, 80)
    across, height = (lambda p: (p + 1.2) / 1.8 * WIDTH), (lambda p: HEIGHT * (0.86 - 0.3 * (np.sin(3 * p) + 1)))
    canvas.line([(across(p), height(p)) for p in xs], FAINT, 3)
    flag, foot = across(meta["goal"]), height(meta["goal"])
    canvas.line([(flag, foot), (flag, foot - 46)], INK, 2)
    canvas.rect(flag, foot - 46, 24, 15, ORANGE, 2)
    slope = np.arctan2(height(position + 0.01) - height(position - 0.01), across(0.02) - across(0))
    x, y = across(position) + 15 * np.sin(slope), height(position) - 15 * np.cos(slope)
    along = np.array([np.cos(slope), np.sin(slope)])
    canvas.line([tuple((x, y) - 13 * along), tuple((x, y) + 13 * along)], BLUE, 18)
    for side in (-1, 1):
        wheel = (x, y) + side * 13 * along + 8 * np.array([-along[1], along[0]])
        canvas.circle(wheel[0], wheel[1], 6, INK)


def _renderer(name: str, draw: Callable[[Canvas, list[float], Meta], None], fps: float, **more: Any) -> Renderer:
    def image(frame: list[float], meta: Meta) -> np.ndarray:
        canvas = Canvas()
        draw(canvas, frame, meta)
        return canvas.array()

    return Renderer(name, _script(name), image=image, fps=fps, **more)


def _goal(batch: Any) -> Meta:
    return {"goal": float(batch.kernel.values["goal"])}


def _script(name: str) -> str:
    """The part of rendering.js under `// name`."""
    parts = re.split(r"^// (\w+)\n", (files(__package__) / "rendering.js").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[name]


CARTPOLE = _renderer("cartpole", draw_cartpole, 50)
PENDULUM = _renderer("pendulum", draw_pendulum, 30)
ACROBOT = _renderer("acrobot", draw_acrobot, 15)
MOUNTAIN_CAR = _renderer("mountain_car", draw_mountain_car, 30, meta=_goal)
