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
from numpy.typing import ArrayLike

from shoal.errors import ConfigError
from shoal.training.files import read_record, replace_file

Block = dict[str, Any]
Reduce = Callable[[np.ndarray], float]
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


def series(
    name: str,
    x: ArrayLike,
    y: ArrayLike,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    color: int | None = None,
    faint: bool = False,
) -> Block:
    """One curve, [N] each; `low` and `high` bound its interval. A `faint` one stands behind others, without a name.

    A long curve becomes means over stretches of it, with the extremes of each stretch drawn faintly around them.
    """
    columns: dict[str, tuple[ArrayLike, Reduce]] = {"x": (x, np.mean), "y": (y, np.mean)}
    if low is not None and high is not None:
        columns |= {"low": (low, np.min), "high": (high, np.max)}
    elif np.size(x) > MAX_POINTS and not faint:
        columns |= {"min": (y, np.min), "max": (y, np.max)}
    curve: Block = {"name": name} if color is None else {"name": name, "color": color}
    curve |= {"faint": True} if faint else {}
    return curve | {key: _numbers(_stretches(values, reduce)) for key, (values, reduce) in columns.items()}


def lines(title: str, curves: Sequence[Block], *, smooth: bool = False, zero: bool = False, **more: object) -> Block:
    """Curves over environment steps (`x="..."` to say otherwise). `smooth` follows the page's slider."""
    return {"kind": "lines", "title": title, "series": list(curves), "smooth": smooth, "zero": zero, **more}


def dots(title: str, xs: ArrayLike, ys: ArrayLike, **more: object) -> Block:
    """A dot for every pair of [N] and [N]; `x="..."` says what lies below.

    With `log=True` the first are logarithms to the base of 10, with `names` they are places in that list.
    """
    points = {"xs": _numbers(np.asarray(xs, float)), "ys": _numbers(np.asarray(ys, float))}
    return {"kind": "dots", "title": title, **points, **more}


def shares(
    title: str, xs: ArrayLike, parts: Mapping[str, ArrayLike], colors: Sequence[int] = (), **more: object
) -> Block:
    """Parts of a whole over time: [N] positions and [N] shares that sum to one."""
    positions = _numbers(_stretches(xs, np.mean))
    drawn: list[Block] = [{"name": name, "y": _numbers(_stretches(y, np.mean))} for name, y in parts.items()]
    for curve, color in zip(drawn, colors, strict=False):
        curve["color"] = color
    return {"kind": "shares", "title": title, "xs": positions, "series": drawn, **more}


def parts(title: str, items: Sequence[Block], unit: str = "", **more: object) -> Block:
    """One bar cut into `{"name", "value"}` items."""
    return {"kind": "parts", "title": title, "items": list(items), "unit": unit, **more}


def bars(title: str, items: Sequence[Block], **more: object) -> Block:
    """A bar for every `{"name", "value"[, "low", "high"]}`."""
    return {"kind": "bars", "title": title, "items": list(items), **more}


def histogram(title: str, values: ArrayLike, bins: int = 24, **more: object) -> Block:
    """How often values [N] occur."""
    counts, edges = np.histogram(np.asarray(values, float), bins)
    bounds = {"low": float(edges[0]), "high": float(edges[-1])}
    return {"kind": "histogram", "title": title, "counts": counts.tolist(), **bounds, **more}


def matrix(
    title: str, rows: Sequence[str], columns: Sequence[str], values: ArrayLike, low: float, high: float, **more: object
) -> Block:
    """Values [R, C] shaded from `low` to `high`; NaN is an empty cell. `percent=True` writes shares as percentages."""
    cells = {"values": [_numbers(row) for row in np.asarray(values, float)], "low": low, "high": high}
    return {"kind": "matrix", "title": title, "rows": list(rows), "columns": list(columns), **cells, **more}


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], **more: object) -> Block:
    """Rows of text and numbers."""
    return {"kind": "table", "title": title, "columns": list(columns), "rows": [list(row) for row in rows], **more}


def fields(title: str, values: Mapping[str, object], **more: object) -> Block:
    """Names and values, nested ones as groups."""
    return {"kind": "fields", "title": title, "fields": dict(values), **more}


def stats(items: Sequence[tuple[str, object]]) -> Block:
    """Large numbers in a row: (label, value) each."""
    return {"kind": "stats", "size": "wide", "items": [{"label": label, "value": value} for label, value in items]}


def text(title: str, content: str, **more: object) -> Block:
    """Preformatted text."""
    return {"kind": "text", "title": title, "text": content, **more}


def custom(title: str, draw: str, data: Mapping[str, object], **more: object) -> Block:
    """A block drawn by `Shoal.blocks[draw] = (block, card, tools) => ...`, which the section's `scripts` define."""
    return {"kind": "custom", "title": title, "draw": draw, **data, **more}


def add_section(run: str | Path, name: str, section: Section) -> None:
    """Put a section into a run folder; `shoal report` shows it after its own. The same name replaces it."""
    if not re.fullmatch(r"[\w-]+", name):
        raise ConfigError(f"The section name {name!r} is not a plain word. Use letters, digits, _ and -.")
    folder = Path(run) / "sections"
    folder.mkdir(exist_ok=True)
    replace_file(folder / f"{name}.json", json.dumps(asdict(section)))


def load_sections(run: Path) -> list[Section]:
    """The sections that tools have added to a run folder, by name."""
    return [read_record(path, Section) for path in sorted((run / "sections").glob("*.json"))]


def _stretches(values: ArrayLike, reduce: Reduce) -> np.ndarray:
    """values [N], in MAX_POINTS stretches if they are more, each reduced to one number: NaN if none of it is finite."""
    array = np.asarray(values, float)
    if len(array) <= MAX_POINTS:
        return array
    parts = (part[np.isfinite(part)] for part in np.array_split(array, MAX_POINTS))
    return np.array([reduce(part) if len(part) else np.nan for part in parts])


def _numbers(values: np.ndarray) -> list[float | int | None]:
    """JSON numbers of six digits; NaN and infinity become null, a gap in the drawing."""
    return [None if not np.isfinite(v) else int(v) if v == int(v) else float(f"{v:.6g}") for v in values.tolist()]
