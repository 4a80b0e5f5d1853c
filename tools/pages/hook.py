"""What mkdocs calls: adds the generated pages to those of docs/, and the texts that live beside the code."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from tools.pages import gallery, reference

ROOT = Path(__file__).parents[2]
BESIDE = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
"""Pages that are files of the repository's root."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Everything that is not a file of docs/."""
    pages = {page: _as_page((ROOT / source).read_text()) for page, source in BESIDE.items()}
    for path, content in {**pages, **reference.pages(), **gallery.pages()}.items():
        files.append(File.generated(config, path, content=content))
    return files


def _as_page(text: str) -> str:
    """A text of the root with its links as they are on the site; source has no page, so links to it are plain words."""
    text = re.sub(r"\[([^\]]*)\]\(src/[^)]*\)", r"\1", text)
    for page, source in BESIDE.items():
        text = text.replace(f"]({source})", f"]({page})")
    return text.replace("](docs/", "](")
