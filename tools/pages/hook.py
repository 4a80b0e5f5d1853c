"""What mkdocs calls: adds what is made from the code to pages of docs/, and the texts that live beside the code."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools.pages import gallery, reference

ROOT = Path(__file__).parents[2]
BESIDE = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
"""Pages that are files of the repository's root."""
_added: dict[str, str] = {}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Everything that is not a file of docs/."""
    _added.update({**reference.pages(), **gallery.pages()})
    beside = {page: _as_page((ROOT / source).read_text()) for page, source in BESIDE.items()}
    for path, content in {**beside, **gallery.players()}.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page of docs/ with what is added to it."""
    return f"{markdown}\n\n{_added.get(page.file.src_uri, '')}"


def _as_page(text: str) -> str:
    """A text of the root with its links as they are on the site; source has no page, so links to it are plain words."""
    text = re.sub(r"\[([^\]]*)\]\(src/[^)]*\)", r"\1", text)
    for page, source in BESIDE.items():
        text = text.replace(f"]({source})", f"]({page})")
    return text.replace("](docs/", "](")
