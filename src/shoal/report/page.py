"""`report.html`: one file that needs nothing else. Data as JSON, drawing code inlined, no network."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.resources import files

from shoal.report.sections import Section

SCRIPTS = ("charts.js", "player.js", "page.js")


def render_page(title: str, subtitle: str, caption: str, sections: Sequence[Section]) -> str:
    """The whole page as text. Sections without blocks are left out."""
    shown = [section for section in sections if section.blocks]
    report = {
        "title": title,
        "subtitle": subtitle,
        "caption": caption,
        "sections": [{"id": s.id, "title": s.title, "note": s.note, "blocks": s.blocks} for s in shown],
    }
    charts, player, page = (_asset(name) for name in SCRIPTS)
    brought: dict[str, str] = {}
    for section in shown:
        brought |= section.scripts
    parts = {
        "title": html.escape(f"{title} {subtitle}"),
        "style": _asset("style.css"),
        # "</" would end the script element early, whatever it stands in
        "report": json.dumps(report, separators=(",", ":"), allow_nan=False).replace("</", "<\\/"),
        "scripts": "\n".join([charts, player, *brought.values(), page]).replace("</script", "<\\/script"),
    }
    text = _asset("page.html")
    head, *rest = text.split("{{")  # one pass, so that a value that contains {{...}} is left alone
    for piece in rest:
        name, after = piece.split("}}", 1)
        head += parts[name] + after
    return head


def renderer_script(name: str, script: str) -> str:
    """JavaScript that makes a world's drawing known to the replay player."""
    return f"Shoal.renderers[{json.dumps(name)}] = {script.strip()};"


def _asset(name: str) -> str:
    return (files("shoal.report") / "assets" / name).read_text()
