"""How spread looks: in the replay player (`rendering.js`) and in videos (Pillow)."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np

from shoal.trees import Tree
from shoal.vector.rendering import Renderer, rounded
from shoal.worlds.spread.lanes.kernel import RADIUS

SIZE, SHARPEN = 420, 2  # pixels; drawn larger and scaled down, for smooth edges
REACH = 1.5  # from the middle to the edge of the picture
MARK = 0.05
PAPER, INK, COLORS = "#f4f5f7", "#1b2330", ("#2667d6", "#d9622b", "#2f8f5b")


def frames(batch: Any, obs: Tree) -> list[list[float]]:
    """Per lane: x and y of the three particles, then of the three landmarks."""
    s = batch.lane_state
    columns = [s[name][:, k] for x, y in (("x", "y"), ("mark_x", "mark_y")) for k in range(3) for name in (x, y)]
    return [rounded(row) for row in np.stack(columns, axis=1)]


def draw(frame: list[float], meta: dict[str, Any]) -> np.ndarray:
    """One picture, [SIZE, SIZE, 3] uint8."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (SIZE * SHARPEN, SIZE * SHARPEN), PAPER)
    pen = ImageDraw.Draw(image)
    scale = SIZE * SHARPEN / (2 * REACH)
    for k in range(6):
        x, y, radius = frame[2 * k] + REACH, REACH - frame[2 * k + 1], RADIUS if k < 3 else MARK
        pen.ellipse([(x - radius) * scale, (y - radius) * scale, (x + radius) * scale, (y + radius) * scale],
                    COLORS[k] if k < 3 else INK)  # fmt: skip
    return np.asarray(image.resize((SIZE, SIZE)))


PLANE = Renderer("spread", (files(__package__) / "rendering.js").read_text(), frames=frames, image=draw, fps=10)
