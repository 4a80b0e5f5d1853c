"""What a report is made of: sections, each a title and some blocks. Blocks are JSON; `assets/` draws them.

Any tool can add to a run's report: build a `Section` from the functions here and `add_section` it to the run folder.
A drawing that none of these blocks can make comes as `custom` with its own JavaScript.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import ConfigError
from shoal.training.files import read_json, replace_file

Block = dict[str, Any]
SIZES = ("third", "half", "wide")


@dataclass(frozen=True)
class Section:
    """One part of the page. `scripts` are JavaScript that defines renderers or custom blocks, by name."""

    title: str
    blocks: list[Block]
    note: str = ""
    scripts: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The anchor of this section."""
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")


def series(name: str, x: Any, y: Any, low: Any = None, high: Any = None, color: int | None = None) -> Block:
    """One curve, [N] each; `low` and `high` bound its interval. Long curves are thinned, keeping their extremes."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    keep = thin(y)
    curve = {"name": name, "x": _numbers(x[keep]), "y": _numbers(y[keep])}
    if low is not None:
        curve |= {"low": _numbers(np.asarray(low, float)[keep]), "high": _numbers(np.asarray(high, float)[keep])}
    return curve if color is None else {**curve, "color": color}


def lines(title: str, curves: Sequence[Block], *, smooth: bool = False, zero: bool = False, **more: Any) -> Block:
    """Curves over environment steps (`x="..."` to say otherwise). `smooth` follows the page's slider."""
    return {"kind": "lines", "title": title, "series": list(curves), "smooth": smooth, "zero": zero, **more}


def shares(title: str, xs: Any, parts: Mapping[str, Any], colors: Sequence[int] = (), **more: Any) -> Block:
    """Parts of a whole over time: [N] positions and [N] shares that sum to one."""
    xs = np.asarray(xs, float)
    keep = np.unique(np.linspace(0, len(xs) - 1, min(len(xs), 400)).astype(int))
    curves = [{"name": name, "y": _numbers(np.asarray(y, float)[keep])} for name, y in parts.items()]
    for curve, color in zip(curves, colors, strict=False):
        curve["color"] = color
    return {"kind": "shares", "title": title, "xs": _numbers(xs[keep]), "series": curves, **more}


def parts(title: str, items: Sequence[Block], unit: str = "", **more: Any) -> Block:
    """One bar cut into `{"name", "value"}` items."""
    return {"kind": "parts", "title": title, "items": list(items), "unit": unit, **more}


def bars(title: str, items: Sequence[Block], **more: Any) -> Block:
    """A bar for every `{"name", "value"[, "low", "high"]}`."""
    return {"kind": "bars", "title": title, "items": list(items), **more}


def histogram(title: str, values: Any, bins: int = 24, **more: Any) -> Block:
    """How often values [N] occur."""
    counts, edges = np.histogram(np.asarray(values, float), bins)
    return {
        "kind": "histogram",
        "title": title,
        "counts": counts.tolist(),
        "low": float(edges[0]),
        "high": float(edges[-1]),
        **more,
    }


def matrix(
    title: str, rows: Sequence[str], columns: Sequence[str], values: Any, low: float, high: float, **more: Any
) -> Block:
    """Values [R, C] shaded from `low` to `high`; NaN is an empty cell. `percent=True` writes shares as percentages."""
    cells = [_numbers(row) for row in np.asarray(values, float)]
    bounds = {"low": low, "high": high}
    return {
        "kind": "matrix",
        "title": title,
        "rows": list(rows),
        "columns": list(columns),
        "values": cells,
        **bounds,
    } | more


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], **more: Any) -> Block:
    """Rows of text and numbers."""
    return {"kind": "table", "title": title, "columns": list(columns), "rows": [list(row) for row in rows], **more}


def fields(title: str, values: Mapping[str, Any], **more: Any) -> Block:
    """Names and values, nested ones as groups."""
    return {"kind": "fields", "title": title, "fields": dict(values), **more}


def stats(items: Sequence[tuple[str, Any]]) -> Block:
    """Large numbers in a row: (label, value) each."""
    return {"kind": "stats", "size": "wide", "items": [{"label": label, "value": value} for label, value in items]}


def text(title: str, content: str, **more: Any) -> Block:
    """Preformatted text."""
    return {"kind": "text", "title": title, "text": content, **more}


def custom(title: str, draw: str, data: Mapping[str, Any], **more: Any) -> Block:
    """A block drawn by `Shoal.blocks[draw] = (block, card, tools) => ...`, which the section's `scripts` define."""
    return {"kind": "custom", "title": title, "draw": draw, **data, **more}


def add_section(run: str | Path, name: str, section: Section) -> None:
    """Put a section into a run folder; `shoal report` shows it after its own. The same name replaces it."""
    if not re.fullmatch(r"[\w-]+", name):
        raise ConfigError(f"The section name {name!r} is no plain word. Use letters, digits, _ and -.")
    folder = Path(run) / "sections"
    folder.mkdir(exist_ok=True)
    replace_file(folder / f"{name}.json", json.dumps(asdict(section)))


def load_sections(run: Path) -> list[Section]:
    """The sections that tools have added to a run folder, by name."""
    return [Section(**read_json(path)) for path in sorted((run / "sections").glob("*.json"))]


def thin(y: np.ndarray, limit: int = 1200) -> np.ndarray:
    """Indices of at most `limit` points of y [N] that look the same: the extremes of every stretch, and both ends."""
    n = len(y)
    if n <= limit:
        return np.arange(n)
    keep = {0, n - 1}
    filled = np.where(np.isfinite(y), y, np.nanmean(y) if np.isfinite(y).any() else 0.0)
    for stretch in np.array_split(np.arange(n), limit // 2 - 1):
        keep |= {int(stretch[filled[stretch].argmin()]), int(stretch[filled[stretch].argmax()])}
    return np.array(sorted(keep))


def _numbers(values: np.ndarray) -> list[float | int | None]:
    """JSON numbers of six digits; NaN and infinity become null, a gap in the drawing."""
    return [None if not np.isfinite(v) else int(v) if v == int(v) else float(f"{v:.6g}") for v in values.tolist()]
