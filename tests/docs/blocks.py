"""The code blocks of every page: what is in them, and which commands they show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {path.name: path for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md")))}
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)


class Block(NamedTuple):
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The file that it is, if its first line says so: `# maze.py`."""
        name = re.match(r"# ([\w/]+\.\w+)\n", self.text)
        return name and name[1]


class Command(NamedTuple):
    """A line that a reader would type, and what the page says it prints."""

    words: list[str]
    prints: str


def blocks_of(page: str, *languages: str) -> list[Block]:
    """Those of some languages, in their order."""
    text = PAGES[page].read_text()
    blocks = [Block(page, text[: m.start()].count("\n") + 1, m[1], m[2]) for m in _BLOCK.finditer(text)]
    return [block for block in blocks if block.language in languages]


def commands_of(block: Block) -> list[Command]:
    """Lines behind a prompt, `$`; all lines of a block that has no prompt."""
    lines = block.text.splitlines()
    if not any(line.startswith("$ ") for line in lines):
        lines = [f"$ {line}" for line in lines]
    commands: list[Command] = []
    for line in lines:
        if line.startswith("$ "):
            commands.append(Command(shlex.split(line[2:], comments=True), ""))
        else:
            commands[-1] = commands[-1]._replace(prints=f"{commands[-1].prints}{line}\n")
    return commands
