"""`report.html`: one file that needs nothing else. Data as JSON, drawing code inlined, no network."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from shoal.report.sections import Section


def render_page(title: str, subtitle: str, caption: str, sections: Sequence[Section]) -> str:
    """The whole page as text. Sections without blocks are left out."""
    shown = [section for section in sections if section.blocks]
    report = {
        "title": title,
        "subtitle": subtitle,
        "caption": caption,
        "sections": [{"id": s.id, "title": s.title, "note": s.note, "blocks": s.blocks} for s in shown],
    }
    charts, player, page = (_asset(name) for name in ("charts.js", "player.js", "page.js"))
    brought = {name: script for section in shown for name, script in section.scripts.items()}
    parts = {
        "title": html.escape(f"{title} {subtitle}"),
        "style": _asset("style.css"),
        # "</" would end the script element early, whatever it stands in
        "report": json.dumps(_finite(report), separators=(",", ":"), allow_nan=False).replace("</", "<\\/"),
        "scripts": "\n".join([charts, player, *brought.values(), page]).replace("</script", "<\\/script"),
    }
    head, *rest = _asset("page.html").split("{{")  # one pass, so that a value that contains {{...}} is left alone
    for piece in rest:
        name, after = piece.split("}}", 1)
        head += parts[name] + after
    return head.encode(errors="replace").decode()  # half a surrogate pair in a name could not be written


def _finite(value: Any) -> Any:
    """Nested values with null for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _asset(name: str) -> str:
    return (files("shoal.report") / "assets" / name).read_text()
