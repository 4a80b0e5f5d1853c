"""Results as an SVG that a README can show, without a plotting library: bars of contenders, and lines over sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

from shoal.bench.rounds import Row

_WIDTH, _LABEL, _BAR, _GAP = 760, 170, 18, 8
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#768390}.ours{fill:#0a7ea4}.peer{fill:#9aa4ae}"
    "line{stroke:#57606a;stroke-opacity:.25}"
)


def write_bars(rows: Sequence[Row], title: str, path: Path) -> None:
    """Draw the judged rate of every row, fastest first."""
    rows = sorted((row for row in rows if row.judged), key=lambda row: -row.steps_per_s)
    low = math.floor(math.log10(min(row.steps_per_s for row in rows)))
    high = math.log10(rows[0].steps_per_s)
    scale = (_WIDTH - _LABEL - 90) / (high - low)
    height = 40 + len(rows) * (_BAR + _GAP) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<text x="{_LABEL}" y="20">{escape(title)}</text>',
    ]
    for power in range(low, math.floor(high) + 1):
        x = _LABEL + (power - low) * scale
        parts.append(f'<line x1="{x:.0f}" y1="32" x2="{x:.0f}" y2="{height - 22}"/>')
        parts.append(f'<text x="{x:.0f}" y="{height - 6}" text-anchor="middle">{_short(10.0**power)}</text>')
    for k, row in enumerate(rows):
        y, length = 36 + k * (_BAR + _GAP), (math.log10(row.steps_per_s) - low) * scale
        kind = "ours" if row.name.startswith("shoal") else "peer"
        parts.append(f'<text x="{_LABEL - 8}" y="{y + 14}" text-anchor="end">{escape(row.name)}</text>')
        parts.append(f'<rect class="{kind}" x="{_LABEL}" y="{y}" width="{length:.0f}" height="{_BAR}" rx="2"/>')
        parts.append(f'<text x="{_LABEL + length + 6:.0f}" y="{y + 14}">{_short(row.steps_per_s)}</text>')
    path.write_text("\n".join([*parts, "</svg>\n"]))


def _short(rate: float) -> str:
    """1500000 as "1.5 M"."""
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if rate >= size:
            return f"{rate / size:.3g}{unit}"
    return f"{rate:.3g}"


# ---------------------------------------------------------------------- lines

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 80, 190, 50, 60
COLOURS = ("#0b5fa5", "#d1495b", "#2e8b57", "#edae49", "#6b4c9a", "#555555")
Point = tuple[float, float]


def line_chart(
    lines: Mapping[str, Sequence[Point]], title: str, x_name: str, y_name: str, *, linear: bool = False
) -> str:
    """The SVG of `lines`, each a list of (x, y); the legend stands at the ends of the lines.

    Axes are logarithmic, for values above 0, or `linear` and begin at 0.
    """
    shown = {name: sorted(points) for name, points in lines.items() if points}
    xs = sorted({x for points in shown.values() for x, _ in points})
    ys = [y for points in shown.values() for _, y in points]
    if linear:
        xs, ys = _round_ticks(max(xs)), _round_ticks(max(ys))
    else:
        ys = [10.0**k for k in range(math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys))) + 1)]

    def share(value: float, ticks: Sequence[float]) -> float:
        if ticks[0] == ticks[-1]:
            return 0.5
        return value / ticks[-1] if linear else math.log(value / ticks[0]) / math.log(ticks[-1] / ticks[0])

    def at(point: Point) -> Point:
        width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        return LEFT + share(point[0], xs) * width, TOP + (1 - share(point[1], ys)) * height

    parts = [f'<text x="{LEFT}" y="28" font-size="15" font-weight="bold">{escape(title)}</text>']
    for x in xs:
        across = at((x, ys[0]))[0]
        parts.append(f'<line x1="{across:.1f}" y1="{TOP}" x2="{across:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#eee"/>')
        parts.append(f'<text x="{across:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{x:,.0f}</text>')
    for y in ys:
        up = at((xs[0], y))[1]
        parts.append(f'<line x1="{LEFT}" y1="{up:.1f}" x2="{WIDTH - RIGHT}" y2="{up:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{up + 4:.1f}" text-anchor="end">{_plain(y)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 16}" text-anchor="middle">{escape(x_name)}</text>')
    parts.append(f'<text x="16" y="{HEIGHT / 2}" transform="rotate(-90 16 {HEIGHT / 2})" text-anchor="middle">'
                 f"{escape(y_name)}</text>")  # fmt: skip
    heights = _apart([at(points[-1])[1] for points in shown.values()])
    for (name, points), colour, height in zip(shown.items(), COLOURS * len(shown), heights, strict=False):
        places = [at(point) for point in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2 if linear else 4}" fill="{colour}"/>' for x, y in places]
        parts.append(f'<text x="{WIDTH - RIGHT + 12}" y="{height + 4:.1f}" fill="{colour}">{escape(name)}</text>')
    style = 'font-family="sans-serif" font-size="12" fill="#222"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {style}>'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]) + "\n"


def _round_ticks(highest: float) -> list[float]:
    """Round numbers from 0 to the first one that is not below `highest`, at most seven of them."""
    power = 10.0 ** math.floor(math.log10(highest / 6))
    step = next(size * power for size in (1, 2, 5, 10) if size * power * 6 >= highest)
    return [step * k for k in range(math.ceil(highest / step - 1e-9) + 1)]


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 or number == round(number) else f"{number:g}"


def _apart(heights: list[float], gap: float = 16.0) -> list[float]:
    """The heights of labels, moved down where they would cover each other."""
    moved = list(heights)
    order = sorted(range(len(moved)), key=moved.__getitem__)
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + gap)
    return moved
