"""Line charts as SVG, both axes logarithmic: enough to show a rate over sizes, without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 80, 190, 50, 60
COLOURS = ("#0b5fa5", "#d1495b", "#2e8b57", "#edae49", "#6b4c9a", "#555555")
Point = tuple[float, float]


def line_chart(lines: Mapping[str, Sequence[Point]], title: str, x_name: str, y_name: str) -> str:
    """The SVG of `lines`, each a list of (x, y) above 0; the legend stands at the ends of the lines."""
    shown = {name: sorted(points) for name, points in lines.items() if points}
    xs = sorted({x for points in shown.values() for x, _ in points})
    ys = [y for points in shown.values() for _, y in points]
    low, high = 10 ** math.floor(math.log10(min(ys))), 10 ** math.ceil(math.log10(max(ys)))

    def at(point: Point) -> Point:
        width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        across = 0.5 if xs[0] == xs[-1] else math.log(point[0] / xs[0]) / math.log(xs[-1] / xs[0])
        up = 0.5 if low == high else math.log(point[1] / low) / math.log(high / low)
        return LEFT + across * width, TOP + (1 - up) * height

    parts = [f'<text x="{LEFT}" y="28" font-size="15" font-weight="bold">{escape(title)}</text>']
    for x in xs:
        across = at((x, low))[0]
        parts.append(f'<line x1="{across:.1f}" y1="{TOP}" x2="{across:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#eee"/>')
        parts.append(f'<text x="{across:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{x:,.0f}</text>')
    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        up = at((xs[0], 10.0**power))[1]
        parts.append(f'<line x1="{LEFT}" y1="{up:.1f}" x2="{WIDTH - RIGHT}" y2="{up:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{up + 4:.1f}" text-anchor="end">{10**power:,}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 16}" text-anchor="middle">{escape(x_name)}</text>')
    parts.append(f'<text x="16" y="{HEIGHT / 2}" transform="rotate(-90 16 {HEIGHT / 2})" text-anchor="middle">'
                 f"{escape(y_name)}</text>")  # fmt: skip
    heights = _apart([at(points[-1])[1] for points in shown.values()])
    for (name, points), colour, height in zip(shown.items(), COLOURS * len(shown), heights, strict=False):
        places = [at(point) for point in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in places]
        parts.append(f'<text x="{WIDTH - RIGHT + 12}" y="{height + 4:.1f}" fill="{colour}">{escape(name)}</text>')
    style = 'font-family="sans-serif" font-size="12" fill="#222"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {style}>'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]) + "\n"


def _apart(heights: list[float], gap: float = 16.0) -> list[float]:
    """The heights of labels, moved down where they would cover each other."""
    moved = list(heights)
    order = sorted(range(len(moved)), key=moved.__getitem__)
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + gap)
    return moved
