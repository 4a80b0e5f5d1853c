"""Data sets: a knowledge base and the queries asked of it, from a folder, from PyKEEN, or generated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from shoal.errors import ConfigError, missing_extra, unknown_name
from shoal.worlds.kg.lanes.data.corruptions import DomainTables
from shoal.worlds.kg.lanes.data.knowledge import FactIndex, KnowledgeBase, predicates_of
from shoal.worlds.kg.lanes.data.mining import mine_rules
from shoal.worlds.kg.lanes.data.parse import Atom, Domains, Rule, read_annotated, read_atoms, read_domains, read_rules
from shoal.worlds.kg.lanes.data.vocabulary import Vocabulary

SPLITS = ("train", "valid", "test")
NO_PROOF, UNKNOWN = -1, -2  # annotated depths: searched without finding, never searched


@dataclass(frozen=True)
class Queries:
    """Ground atoms [m, 3] int32 and their annotated depths [m] int32 (`NO_PROOF`, `UNKNOWN`, or a number of steps)."""

    triples: np.ndarray
    depth: np.ndarray

    def __len__(self) -> int:
        return len(self.triples)

    def where(self, mask: np.ndarray | slice) -> Queries:
        """The queries at which `mask` [m] (or an index) points."""
        return Queries(self.triples[mask], self.depth[mask])


@dataclass(frozen=True)
class Dataset:
    """A knowledge base with its queries. Facts are all of train.txt (and soft facts), whatever `train` has left out."""

    name: str
    kb: KnowledgeBase
    train: Queries
    valid: Queries
    test: Queries
    known: FactIndex
    """Every triple of every split, unfiltered: no corruption may be one of these."""
    domains: DomainTables
    notes: tuple[str, ...] = ()
    """Sentences about the data that a user should read once."""

    def split(self, name: str) -> Queries:
        """The queries of a split that must not be empty."""
        if name not in SPLITS:
            raise ConfigError(f"There is no split {name!r}. Use one of {', '.join(SPLITS)}.")
        queries: Queries = getattr(self, name)
        if not len(queries):
            raise ConfigError(
                f"The {name} split of {self.name!r} has no queries left. Loosen the filters (depths, limit, "
                "require_rule) or bring another rule file."
            )
        return queries


@dataclass(frozen=True)
class Filters:
    """Which queries of a data set are asked."""

    limit: dict[str, int] = field(default_factory=dict)
    """First k queries of a split, counted after the other filters."""
    depths: Collection[int] | None = None
    """Keep only queries annotated with one of these depths."""
    require_rule: bool = True
    """Drop training queries whose predicate is not the head of any rule. Their triples stay facts."""

    def apply(self, split: str, queries: Queries, kb: KnowledgeBase) -> Queries:
        if split == "train" and self.require_rule:
            heads = np.diff(kb.rules.start) > 0
            queries = queries.where(heads[queries.triples[:, 0]])
        if self.depths is not None:
            queries = queries.where(np.isin(queries.depth, list(self.depths)))
        return queries.where(np.arange(len(queries)) < self.limit.get(split, len(queries)))


def build_dataset(
    name: str,
    atoms: dict[str, list[Atom]],
    rules: Sequence[Rule],
    *,
    depths: dict[str, dict[Atom, int]] | None = None,
    domains: Domains | None = None,
    soft_facts: Sequence[Atom] = (),
    filters: Filters | None = None,
) -> Dataset:
    """A data set from names: `atoms` of the three splits, where train is also the fact base."""
    filters = filters or Filters()
    everything = [atom for split in SPLITS for atom in atoms.get(split, ())]
    if not atoms.get("train"):
        raise ConfigError(f"The training split of {name!r} is empty, so there is no fact to prove anything from.")
    predicates = {atom[0] for atom in everything} | predicates_of(rules)
    vocabulary = Vocabulary(predicates, (constant for atom in everything for constant in atom[1:]))
    triples = {split: vocabulary.atoms_to_ids(atoms.get(split, [])) for split in SPLITS}
    facts = np.concatenate([triples["train"], vocabulary.atoms_to_ids([a for a in soft_facts if vocabulary.has(a)])])
    kb = KnowledgeBase(vocabulary, facts, rules)
    queries = {}
    for split in SPLITS:
        annotated = (depths or {}).get(split, {})
        depth = np.array([annotated.get(atom, UNKNOWN) for atom in atoms.get(split, ())], np.int32)
        queries[split] = filters.apply(split, Queries(triples[split], depth), kb)
    return Dataset(
        name=name,
        kb=kb,
        **queries,
        known=FactIndex(np.concatenate(list(triples.values())), vocabulary.num_regular, vocabulary.num_constants),
        domains=DomainTables.build(vocabulary, domains),
        notes=_notes(kb),
    )


def _notes(kb: KnowledgeBase) -> tuple[str, ...]:
    orphans = kb.orphan_heads()
    if not orphans:
        return ()
    named = ", ".join(orphans[:3]) + (f" and {len(orphans) - 3} more" if len(orphans) > 3 else "")
    return (f"{len(orphans)} rule head(s) have no facts: {named}. Is this the rule file of these data?",)


def load_folder(
    folder: str | Path,
    *,
    rules: str | Path = "rules.txt",
    soft_facts: str | Path | None = None,
    filters: Filters | None = None,
) -> Dataset:
    """A data set from a folder of text files; `rules` and `soft_facts` are names in it, or paths."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {folder} to read a knowledge graph from.")
    rule_path = _find(folder, rules)
    if not rule_path.exists():
        raise ConfigError(f"There is no rule file {rule_path}. `shoal kg mine-rules --data {folder}` makes one.")
    domain_path = folder / "domain2constants.txt"
    soft = read_annotated(_find(folder, soft_facts), num_values=2) if soft_facts else []
    return build_dataset(
        folder.name,
        {split: read_atoms(folder / f"{split}.txt") for split in SPLITS},
        read_rules(rule_path),
        depths={split: _read_depths(folder / f"{split}_depths.txt") for split in SPLITS},
        domains=read_domains(domain_path) if domain_path.exists() else None,
        soft_facts=[atom for atom, _ in soft],
        filters=filters,
    )


def _find(folder: Path, name: str | Path) -> Path:
    return Path(name) if Path(name).exists() and not (folder / name).exists() else folder / name


def _read_depths(path: Path) -> dict[Atom, int]:
    if not path.exists():
        return {}
    return {atom: int(depth) for atom, (depth,) in read_annotated(path, num_values=1)}


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
    factories = zip(SPLITS, (source.training, source.validation, source.testing), strict=True)
    atoms = {split: [] if factory is None else _atoms(factory) for split, factory in factories}
    chosen = read_rules(Path(rules)) if rules is not None else mine_rules(KnowledgeBase.from_atoms(atoms["train"], []))
    return build_dataset(f"pykeen:{name}", atoms, chosen, filters=filters)


def _atoms(factory: object) -> list[Atom]:
    """Labelled triples are (head, relation, tail)."""
    labels = factory.label_triples(factory.mapped_triples)  # type: ignore[attr-defined]
    return [(str(relation), str(head), str(tail)) for head, relation, tail in labels]


def load_dataset(
    data: str | Path | Dataset = "families",
    *,
    rules: str | Path | None = None,
    soft_facts: str | Path | None = None,
    filters: Filters | None = None,
) -> Dataset:
    """What `data` names: a folder, `pykeen:nations`, `families` or `families:7` (generated), or a data set itself."""
    if isinstance(data, Dataset):
        return data
    kind, _, rest = str(data).partition(":")
    if kind in ("families", "pykeen"):
        if soft_facts is not None:
            raise ConfigError(f"Soft facts are read beside a folder of data; {data!r} is not one.")
        if kind == "families":
            from shoal.worlds.kg.lanes.data.families import families_dataset

            if rest and not rest.isdigit():
                raise ConfigError(
                    f"{rest!r} is not a valid seed of families: it must be a whole number, as in families:0."
                )
            return families_dataset(seed=int(rest or 0), rules=rules, filters=filters)
        return load_pykeen(rest, rules=rules, filters=filters)
    return load_folder(data, rules=rules or "rules.txt", soft_facts=soft_facts, filters=filters)
