"""What a report is made of: sections, each a title and some blocks. Blocks are JSON; `assets/` draws them.

Any tool can add to a run's report: build a `Section` from the functions here and `add_section` it to the run folder.
A drawing that none of these blocks can make comes as `custom` with its own JavaScript.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import ConfigError
from shoal.training.files import read_json, replace_file

Block = dict[str, Any]
MAX_POINTS = 600
"""Points of a drawn curve: more than a card has pixels to show."""


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
    """One curve, [N] each; `low` and `high` bound its interval.

    A long curve becomes means over stretches of it, with the extremes of each stretch drawn faintly around them.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    curve: Block = {"name": name} if color is None else {"name": name, "color": color}
    if len(x) <= MAX_POINTS:
        curve |= {"x": _numbers(x), "y": _numbers(y)}
        if low is not None:
            curve |= {"low": _numbers(np.asarray(low, float)), "high": _numbers(np.asarray(high, float))}
        return curve
    bounds = (y, y) if low is None else (np.asarray(low, float), np.asarray(high, float))
    around = ("min", "max") if low is None else ("low", "high")
    return curve | {
        "x": _numbers(_stretches(x, np.mean)),
        "y": _numbers(_stretches(y, np.mean)),
        around[0]: _numbers(_stretches(bounds[0], np.min)),
        around[1]: _numbers(_stretches(bounds[1], np.max)),
    }


def lines(title: str, curves: Sequence[Block], *, smooth: bool = False, zero: bool = False, **more: Any) -> Block:
    """Curves over environment steps (`x="..."` to say otherwise). `smooth` follows the page's slider."""
    return {"kind": "lines", "title": title, "series": list(curves), "smooth": smooth, "zero": zero, **more}


def shares(title: str, xs: Any, parts: Mapping[str, Any], colors: Sequence[int] = (), **more: Any) -> Block:
    """Parts of a whole over time: [N] positions and [N] shares that sum to one."""
    xs = np.asarray(xs, float)
    curves: list[Block] = [series(name, xs, y) for name, y in parts.items()]
    drawn = [{"name": curve["name"], "y": curve["y"]} for curve in curves]
    for curve, color in zip(drawn, colors, strict=False):
        curve["color"] = color
    return {"kind": "shares", "title": title, "xs": curves[0]["x"], "series": drawn, **more}


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


def _stretches(values: np.ndarray, reduce: Callable[[np.ndarray], float]) -> np.ndarray:
    """values [N] in MAX_POINTS stretches, each reduced to one number; NaN where a stretch has no finite value."""
    parts = (part[np.isfinite(part)] for part in np.array_split(values, MAX_POINTS))
    return np.array([reduce(part) if len(part) else np.nan for part in parts])


def _numbers(values: np.ndarray) -> list[float | int | None]:
    """JSON numbers of six digits; NaN and infinity become null, a gap in the drawing."""
    return [None if not np.isfinite(v) else int(v) if v == int(v) else float(f"{v:.6g}") for v in values.tolist()]
