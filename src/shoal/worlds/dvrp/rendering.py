"""How dvrp looks: the city, every vehicle's route so far, the customer now asking, and the last offer with its answer.

`rendering.js` draws it in the replay player, `draw` in videos.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from shoal.vector.rendering import Renderer, rounded
from shoal.worlds.dvrp.lanes.solution import split_routes

if TYPE_CHECKING:
    from shoal.vector.batch import Batch, Tree
    from shoal.worlds.dvrp.lanes.environment import DvrpBatch

Frame = dict[str, Any]
"""Named values that JSON can hold: what `rendering.js` and `draw` read."""

WIDTH, HEIGHT = 640, 480
MAP = (20, 20, 460, 400)  # left, top, right, bottom of the city
PAPER, GROUND, INK, FAINT, YES, NO = "#f4f5f7", "#e3e7ec", "#1b2330", "#8a94a3", "#1f8a5b", "#c8362f"
ROUTES = ("#2667d6", "#d97b2b", "#1f8a5b", "#8a4fbf", "#c8362f", "#2aa3a8", "#b0881c", "#6b7280")


def frames(batch: Batch, obs: Tree) -> list[Frame]:
    """What one picture needs, per lane."""
    lanes = cast("DvrpBatch", batch)
    return [_frame({name: array[lane] for name, array in lanes.state.items()}) for lane in range(batch.num_envs)]


def _frame(state: dict[str, np.ndarray]) -> Frame:
    step, cells, routes = int(state["step"]), state["cells"], split_routes(state["routes"])
    frame: Frame = {
        "step": step,
        "routes": [[int(cells[node]) for node in route] for route in routes],
        "stops": [[(node + 1) // 2 * (1 if node % 2 else -1) for node in route] for route in routes],
        "cost": round(float(state["cost"]), 1),
        "answer": None,
        "asks": None,
    }
    if "noop_cost" in state:
        frame["noop"] = round(float(state["noop_cost"]), 1)
    if state["handled"]:
        handled = int(state["handled"])
        asked, got = state["asked"][handled - 1], state["tw"][2 * handled - 1 : 2 * handled + 1] // 60
        frame["answer"] = {
            "customer": int(state["user"][handled - 1]),
            "from": int(cells[2 * handled - 1]),
            "to": int(cells[2 * handled]),
            "accepted": bool(state["accepted"]),
            "shift": [int(got[0, 0] - asked[0, 0]), int(got[1, 1] - asked[1, 1])],
        }
    if step < len(state["user"]):
        frame["asks"] = {
            "customer": int(state["user"][step]),
            "from": int(cells[2 * step + 1]),
            "to": int(cells[2 * step + 2]),
            "pickup": state["asked"][step, 0].tolist(),
            "dropoff": state["asked"][step, 1].tolist(),
        }
    return frame


def meta(batch: Batch) -> Frame:
    """The city, recorded once."""
    lanes = cast("DvrpBatch", batch)
    city, _, fleet = lanes.scenario
    return {
        "cells": [rounded(point) for point in city.coordinates()],
        "depot": city.depot,
        "customers": lanes.settings.customers,
        "unit": "km" if fleet.cost_matrix == "distance" else "min",
    }


def describe_answer(frame: Frame) -> str:
    """The last negotiation in a few words."""
    answer = frame["answer"]
    if answer is None:
        return "nobody has been asked yet"
    early, late = answer["shift"]
    who = f"customer {answer['customer']}"
    if not answer["accepted"]:
        return f"{who} declined"
    return f"{who}: {-early} min earlier, {late} min later" if early or late else f"{who}: as asked for"


def describe_request(frame: Frame) -> str:
    """Who asks now, and for what."""
    asks = frame["asks"]
    if asks is None:
        return "all requests are booked"
    clock = [f"{minutes // 60:02d}:{minutes % 60:02d}" for minutes in (*asks["pickup"], *asks["dropoff"])]
    return f"customer {asks['customer']} asks: {clock[0]}-{clock[1]} to {clock[2]}-{clock[3]}"


def draw(frame: Frame, meta: Frame) -> np.ndarray:
    """One frame of a video, [H, W, 3]."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    pen = ImageDraw.Draw(image)
    points = _place(np.array(meta["cells"]))
    for x, y in points:
        pen.ellipse((x - 9, y - 9, x + 9, y + 9), GROUND)
    for vehicle, route in enumerate(frame["routes"]):
        path = [meta["depot"], *route, meta["depot"]]
        shift = 3 * (vehicle - len(frame["routes"]) / 2)  # side by side where streets are shared
        line = [(points[cell][0] + shift, points[cell][1] + shift) for cell in path]
        color = ROUTES[vehicle % len(ROUTES)]
        pen.line(line, color, 3, joint="curve")
        pen.text((480, 28 + 18 * vehicle), f"vehicle {vehicle + 1}: {len(route)} stops", color)
    answer = frame["answer"]
    if answer is not None:
        pen.line([*points[answer["from"]], *points[answer["to"]]], _tone(answer), 6)
    x, y = points[meta["depot"]]
    pen.rectangle((x - 7, y - 7, x + 7, y + 7), INK)
    if frame["asks"] is not None:
        start, end = points[frame["asks"]["from"]], points[frame["asks"]["to"]]
        pen.line([*start, *end], NO, 2)
        pen.ellipse((start[0] - 6, start[1] - 6, start[0] + 6, start[1] + 6), NO)
        pen.ellipse((end[0] - 6, end[1] - 6, end[0] + 6, end[1] + 6), PAPER, NO, 2)
    pen.text((20, 418), f"{frame['step']} of {meta['customers']} requests booked; {describe_request(frame)}", INK)
    pen.text((20, 438), describe_answer(frame), _tone(answer))
    without = f", without offers {frame['noop']:.1f}" if "noop" in frame else ""
    pen.text((20, 458), f"{frame['cost']:.1f} {meta['unit']}{without}", INK)
    return np.asarray(image)


def _tone(answer: Frame | None) -> str:
    """The colour of an answer: accepted, declined, or nothing was asked."""
    if answer is None or (answer["accepted"] and not any(answer["shift"])):
        return FAINT
    return YES if answer["accepted"] else NO


def _place(xy: np.ndarray) -> list[tuple[float, float]]:
    """Kilometres to pixels, north up."""
    left, top, right, bottom = MAP
    low, high = xy.min(0), xy.max(0)
    scale = min((right - left) / max(high[0] - low[0], 1e-9), (bottom - top) / max(high[1] - low[1], 1e-9))
    return [(left + (x - low[0]) * scale, bottom - (y - low[1]) * scale) for x, y in xy]


CITY_MAP = Renderer(
    "dvrp", (files(__package__) / "rendering.js").read_text(), frames=frames, image=draw, fps=2.0, meta=meta
)
