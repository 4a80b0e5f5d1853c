"""The section of a report on parameters that every episode draws from a range: return over them, and the worst corner.

A corner is the lower or upper half of every range. Episodes of the latest evaluation count, which all met one policy.
"""

from __future__ import annotations

import itertools

import numpy as np

from shoal.report import sections as build
from shoal.report.sections import Section
from shoal.training.metrics import Row

MAX_CORNERS = 8
"""Corners that are listed, the worst first."""


def ranges_section(evaluations: list[Row]) -> Section:
    """Empty where nothing was drawn."""
    last = evaluations[-1] if evaluations else {}
    drawn, returns = last.get("drawn") or {}, np.asarray(last.get("returns") or [], float)
    title = "Return over parameters"
    if not drawn or any(len(parameter["values"]) != len(returns) for parameter in drawn.values()):
        return Section(title, [])
    blocks = [
        build.dots(f"return over {name}", parameter["values"], returns, x=name) for name, parameter in drawn.items()
    ]
    corners = _corners(drawn, returns)
    rows = [[*corner, count, float(f"{mean:.4g}")] for corner, count, mean in corners[:MAX_CORNERS]]
    blocks.append(build.table("corners, the worst first", [*drawn, "episodes", "mean return"], rows, size="wide"))
    worst, count, mean = corners[0]
    where = ", ".join(f"{name} {interval}" for name, interval in zip(drawn, worst, strict=True))
    note = (
        f"Each of the {len(returns)} episodes of the evaluation at step {last['step']:,} is a dot. "
        f"Worst corner: {where}, with a mean return of {mean:.4g} over {count} episode{'s' if count > 1 else ''}."
    )
    return Section(title, blocks, note)


def _corners(drawn: dict[str, Row], returns: np.ndarray) -> list[tuple[list[str], int, float]]:
    """(interval of each parameter, episodes, mean return) of every corner in which there are episodes."""
    halves = []
    for parameter in drawn.values():
        low, high, values = parameter["low"], parameter["high"], np.asarray(parameter["values"], float)
        middle = (low + high) / 2
        is_low = values < middle
        halves.append([(f"{low:.4g} to {middle:.4g}", is_low), (f"{middle:.4g} to {high:.4g}", ~is_low)])
    corners = []
    for parts in itertools.product(*halves):
        inside = np.logical_and.reduce([half for _, half in parts])
        if inside.any():
            corners.append(([interval for interval, _ in parts], int(inside.sum()), float(returns[inside].mean())))
    return sorted(corners, key=lambda corner: corner[2])
