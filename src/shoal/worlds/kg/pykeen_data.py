"""Data sets that PyKEEN knows (extra `kg`); Nations, Kinships and UMLS come inside its package."""

from __future__ import annotations

from pathlib import Path

from shoal.errors import missing_extra, unknown_name
from shoal.worlds.kg.dataset import Dataset, Filters, build_dataset
from shoal.worlds.kg.knowledge import KnowledgeBase
from shoal.worlds.kg.mining import mine_rules
from shoal.worlds.kg.parse import Atom, read_rules


def load_pykeen(name: str, *, rules: str | Path | None = None, filters: Filters | None = None) -> Dataset:
    """PyKEEN's data set `name` with rules from a file, or mined from its training triples."""
    try:
        from pykeen.datasets import dataset_resolver, get_dataset
    except ImportError:
        raise missing_extra("PyKEEN", "kg", f"The data set 'pykeen:{name}'") from None
    known = set(dataset_resolver.lookup_dict)
    if dataset_resolver.normalize(name) not in known:
        raise unknown_name("PyKEEN data set", name, known, "`pykeen.datasets`")
    source = get_dataset(dataset=name)
    atoms = {
        "train": _atoms(source.training),
        "valid": _atoms(source.validation) if source.validation is not None else [],
        "test": _atoms(source.testing),
    }
    chosen = read_rules(Path(rules)) if rules is not None else mine_rules(KnowledgeBase.from_atoms(atoms["train"], []))
    return build_dataset(f"pykeen:{name}", atoms, chosen, filters=filters)


def _atoms(factory: object) -> list[Atom]:
    """Labelled triples are (head, relation, tail)."""
    labels = factory.label_triples(factory.mapped_triples)  # type: ignore[attr-defined]
    return [(str(relation), str(head), str(tail)) for head, relation, tail in labels]
