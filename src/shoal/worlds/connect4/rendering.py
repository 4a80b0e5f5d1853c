"""How Connect Four looks: in the replay player (`rendering.js`) and in videos (Pillow). Seat 0 is blue and begins."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np

from shoal.trees import Tree
from shoal.vector.rendering import Renderer
from shoal.worlds.connect4.lanes.board import COLUMNS, HEIGHT, ROWS

CELL, MARGIN, SHARPEN = 70, 5, 2  # pixels; drawn larger and scaled down, for smooth edges
PAPER, BOARD, COLORS = "#f4f5f7", "#d5dae1", ("#ffffff", "#2667d6", "#d9622b")


def frames(batch: Any, obs: Tree) -> list[list[int]]:
    """Per lane: every cell, row by row from below (0 empty, 1 seat 0, 2 seat 1), and the winner."""
    s = batch.lane_state
    bits = np.array([HEIGHT * column + row for row in range(ROWS) for column in range(COLUMNS)])
    taken, first = ((s[name][:, None] >> bits) & 1 for name in ("board", "first"))
    return np.concatenate([2 * taken - first, s["winner"][:, None]], axis=1).tolist()


def draw(frame: list[int], meta: dict[str, Any]) -> np.ndarray:
    """One picture, [ROWS * CELL, COLUMNS * CELL, 3] uint8."""
    from PIL import Image, ImageDraw

    width, height = COLUMNS * CELL, ROWS * CELL
    image = Image.new("RGB", (width * SHARPEN, height * SHARPEN), PAPER)
    pen = ImageDraw.Draw(image)
    pen.rounded_rectangle([0, 0, width * SHARPEN, height * SHARPEN], 20 * SHARPEN, BOARD)
    for at, who in enumerate(frame[:-1]):
        x, y = at % COLUMNS * CELL, (ROWS - 1 - at // COLUMNS) * CELL
        box = [x + MARGIN, y + MARGIN, x + CELL - MARGIN, y + CELL - MARGIN]
        pen.ellipse([edge * SHARPEN for edge in box], COLORS[who])
    return np.asarray(image.resize((width, height)))


BOARD_VIEW = Renderer("connect4", (files(__package__) / "rendering.js").read_text(), frames=frames, image=draw, fps=2)
