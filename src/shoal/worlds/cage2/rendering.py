"""How CAGE2 looks: hosts by subnet, what is true, what Blue believes, and the last move of both sides.

`rendering.js` draws it in the replay player, `draw` in videos.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.vector.batch import Batch, Tree
from shoal.vector.kernel import KernelBatch
from shoal.vector.rendering import Renderer
from shoal.worlds.cage2.lanes import names

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

Frame = dict[str, Any]
"""A JSON value: one lane at one moment."""
WIDTH, HEIGHT = 640, 420
PAPER, PANEL, INK, FAINT = "#f4f5f7", "#ffffff", "#1b2330", "#8a94a3"
FREE, HELD, OWNED, BLUE = "#d5dae1", "#d99a2b", "#c8362f", "#2667d6"
COLUMNS = (("User", (8, 9, 10, 11, 12)), ("Enterprise", (1, 2, 3, 0)), ("Operational", (7, 4, 5, 6)))
BELIEFS = ("clean", "unsure", "user level", "privileged")


def frames(batch: Batch, obs: Tree) -> list[Frame]:
    """What one picture needs, per lane."""
    assert isinstance(batch, KernelBatch)
    return [_frame(lane) for lane in batch.lane_state]


def _frame(s: np.void) -> Frame:
    return {
        "held": int(s["held"]),
        "owned": int(s["owned"]),
        "table": int(s["table"]),
        "decoys": [int(mask).bit_count() for mask in s["decoys"]],
        "red": [int(s[name]) for name in ("red_kind", "red_target", "red_success", "red_exploit")],
        "blue": int(s["blue_action"]),
        "tenths": int(s["reward_tenths"]),
        "service": bool(s["ot_up"]),
    }


def meta(batch: Batch) -> Frame:
    """Names, recorded once."""
    columns = [{"name": name, "hosts": list(hosts)} for name, hosts in COLUMNS]
    lists = {"hosts": names.HOSTS, "subnets": names.SUBNETS, "blue": names.BLUE_ACTIONS}
    lists |= {"red": names.RED_ACTIONS, "exploits": names.EXPLOITS}
    return {"columns": columns, "base": names.USER0, **{key: list(value) for key, value in lists.items()}}


def describe_red(frame: Frame) -> str:
    """Red's move in a few words."""
    kind, target, success, exploit = frame["red"]
    who = names.SUBNETS[target] if kind == names.SCAN_SUBNET else names.HOSTS[target] if target >= 0 else ""
    by = f" by {names.EXPLOITS[exploit]}" if exploit >= 0 else ""
    return f"{names.RED_ACTIONS[kind]} {who}{by}{', in vain' if kind and success != names.SUCCESS else ''}"


def draw(frame: Frame, meta: Frame) -> np.ndarray:
    """One frame of a video, [H, W, 3]."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    pen = ImageDraw.Draw(image)
    for k, (name, hosts) in enumerate(COLUMNS):
        x = 22 + 206 * k
        pen.rounded_rectangle((x - 8, 12, x + 176, 334), 10, PANEL, FREE)
        pen.text((x, 20), name, FAINT)
        for row, host in enumerate(hosts):
            _draw_host(pen, frame, host, x, 44 + 56 * row)
    pen.text((14, 348), f"Red: {describe_red(frame)}", OWNED)
    pen.text((14, 370), f"Blue: {names.BLUE_ACTIONS[frame['blue']]}", BLUE)
    service = "operations running" if frame["service"] else "operations stopped"
    pen.text((500, 348), service, INK if frame["service"] else OWNED)
    pen.text((500, 370), f"step costs {-frame['tenths'] / 10:.1f}", FAINT)
    for k, (name, color) in enumerate((("free", FREE), ("user level", HELD), ("privileged", OWNED))):
        pen.rectangle((16 + 100 * k, 394, 23 + 100 * k, 406), color)
        pen.text((30 + 100 * k, 394), name, FAINT)
    return np.asarray(image)


def _draw_host(pen: ImageDraw, frame: Frame, host: int, x: int, y: int) -> None:
    """A box whose bar is the truth and whose words are what Blue believes."""
    truth = OWNED if frame["owned"] >> host & 1 else HELD if frame["held"] >> host & 1 else FREE
    seen = frame["table"] >> 4 * host & 0b1111
    activity, belief = seen & 0b11, seen >> 2
    pen.rounded_rectangle((x, y, x + 168, y + 46), 7, truth)
    pen.rounded_rectangle((x + 7, y + 2, x + 166, y + 44), 6, PANEL)
    pen.text((x + 16, y + 9), names.HOSTS[host], INK)
    pen.text((x + 16, y + 27), f"Blue: {BELIEFS[belief]}", (FAINT, HELD, HELD, OWNED)[belief])
    if activity:
        pen.text((x + 112, y + 9), "exploit!" if activity == 0b11 else "scan", OWNED if activity == 0b11 else BLUE)
    for d in range(frame["decoys"][host]):
        pen.ellipse((x + 152 - 11 * d, y + 30, x + 159 - 11 * d, y + 37), BLUE)


NETWORK = Renderer(
    "cage2", (files(__package__) / "rendering.js").read_text(), frames=frames, image=draw, fps=2.0, meta=meta
)
