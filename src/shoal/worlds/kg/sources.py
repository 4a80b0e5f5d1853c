"""The facts alone, without rules: for mining them."""

from __future__ import annotations

from pathlib import Path

from shoal.errors import ConfigError
from shoal.worlds.kg.parse import Atom, read_atoms


def training_atoms(data: str | Path) -> list[Atom]:
    """Atoms of the training split of what `load_dataset` would read; a folder needs no rule file here."""
    kind = str(data).partition(":")[0]
    if kind in ("families", "pykeen"):
        from shoal.worlds.kg.dataset import load_dataset

        kb = load_dataset(data).kb
        vocabulary = kb.vocabulary
        return [(vocabulary.predicates[p], vocabulary.term(a), vocabulary.term(b)) for p, a, b in kb.facts.triples]
    if not Path(data).is_dir():
        raise ConfigError(f"There is no folder {data} to read a knowledge graph from.")
    return read_atoms(Path(data) / "train.txt")
