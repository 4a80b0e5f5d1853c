"""How the games look: in the replay player (`rendering.js`) and in videos. A frame is a text of 100 cells.

Each cell shows the one thing that lies on top, as a digit in base 36: 0 for none, else 1 + the number of its plane.
"""

from __future__ import annotations

from functools import partial
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from shoal.options import Values
from shoal.trees import Tree
from shoal.vector.batch import Batch
from shoal.vector.rendering import Renderer

SCREEN, FRAME, TEXT = "#11151c", "#1c222c", "#aab4c0"
FPS = 12.0
CELL, GAP, TRAIL_GAP = 48, 3, 15  # pixels
_DIGITS = np.frombuffer(b"0123456789a", np.uint8)
_PLAYER, _FOE, _PRIZE, _SHOT, _FAINT = "#58a6ff", "#f2555a", "#f7c948", "#e6edf3", "#6b7585"


class Thing(NamedTuple):
    """What one plane of a board shows."""

    name: str
    color: str
    trail: bool = False
    """It says where something came from: drawn small, and below everything else."""


def frames(things: tuple[Thing, ...], batch: Batch, obs: Tree) -> list[str]:
    """Boards [B, 10, 10, C] as texts; where things share a cell, that of the last plane is shown."""
    boards = np.asarray(obs).reshape(batch.num_envs, 100, len(things))
    codes = np.zeros(boards.shape[:2], np.uint8)
    for plane in sorted(range(len(things)), key=lambda plane: not things[plane].trail):
        codes[boards[:, :, plane] != 0] = plane + 1
    return [row.tobytes().decode() for row in _DIGITS[codes]]


def picture(frame: str, meta: Values) -> np.ndarray:
    """One board, [480, 480, 3] uint8."""
    image = np.full((10 * CELL, 10 * CELL, 3), _rgb(meta["screen"]), np.uint8)
    for k, code in enumerate(frame):
        if code != "0":
            thing = meta["things"][int(code, 36) - 1]
            gap = TRAIL_GAP if thing["trail"] else GAP
            y, x = CELL * (k // 10) + gap, CELL * (k % 10) + gap
            image[y : y + CELL - 2 * gap, x : x + CELL - 2 * gap] = _rgb(thing["color"])
    return image


def _rgb(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color[1:]))


def _renderer(*things: Thing) -> Renderer:
    meta: Values = {"screen": SCREEN, "frame": FRAME, "text": TEXT, "things": [thing._asdict() for thing in things]}
    script = (files(__package__) / "rendering.js").read_text()
    return Renderer("minatar", script, partial(frames, things), image=picture, fps=FPS, meta=lambda batch: meta)


BREAKOUT = _renderer(
    Thing("paddle", _PLAYER), Thing("ball", _SHOT), Thing("trail", _FAINT, trail=True), Thing("brick", _FOE)
)
ASTERIX = _renderer(
    Thing("player", _PLAYER), Thing("enemy", _FOE), Thing("trail", _FAINT, trail=True), Thing("gold", _PRIZE)
)
FREEWAY = _renderer(
    Thing("chicken", _PRIZE),
    Thing("car", _FOE),
    *(
        Thing(f"moves every {pause + 1}", color, trail=True)
        for pause, color in zip(range(1, 6), ("#ffb3b5", "#e08c8f", "#b96d72", "#8c5459", "#654146"), strict=True)
    ),
)
SEAQUEST = _renderer(
    Thing("front", _PLAYER),
    Thing("back", "#2f6fb5"),
    Thing("shot", _SHOT),
    Thing("trail", _FAINT, trail=True),
    Thing("torpedo", "#ff9d5c"),
    Thing("fish", _FOE),
    Thing("submarine", "#c04ad6"),
    Thing("oxygen", "#3fb8af"),
    Thing("rescued", "#c79a1b"),
    Thing("diver", _PRIZE),
)
SPACE_INVADERS = _renderer(
    Thing("cannon", _PLAYER),
    Thing("alien", "#7ee787"),
    Thing("going left", "#7ee787"),
    Thing("going right", "#3fb950"),
    Thing("shot", _SHOT),
    Thing("bomb", _FOE),
)
