"""Rates as a picture: one bar a contender on a logarithmic axis, in an SVG that a README can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from shoal.bench.rounds import Row

_WIDTH, _LABEL, _BAR, _GAP = 760, 170, 18, 8
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#57606a}.ours{fill:#0a7ea4}.peer{fill:#9aa4ae}"
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
