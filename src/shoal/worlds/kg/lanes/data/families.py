"""Synthetic family trees: a knowledge graph that needs no files, for tests and first runs.

Several founding couples have children over a few generations; children marry into other families. The facts are
`mother`, `father` and `married` among others; whatever a rule concludes (siblings, grandparents, cousins) is in the
graph too, and a share of it is held out as queries.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shoal.worlds.kg.lanes.data.dataset import Dataset, Filters, build_dataset
from shoal.worlds.kg.lanes.data.parse import Atom, parse_rule, read_rules

RULES = tuple(
    parse_rule(f"r{i}:1:{clause}")
    for i, clause in enumerate(
        (
            "mother(X,Y) -> parent(X,Y)",
            "father(X,Y) -> parent(X,Y)",
            "married(Y,X) -> married(X,Y)",
            "father(Z,Y), married(X,Z) -> mother(X,Y)",
            "mother(Z,Y), married(X,Z) -> father(X,Y)",
            "mother(Z,X), mother(Z,Y) -> sibling(X,Y)",
            "father(Z,X), father(Z,Y) -> sibling(X,Y)",
            "sibling(Y,X) -> sibling(X,Y)",
            "parent(X,Z), parent(Z,Y) -> grandparent(X,Y)",
            "sibling(X,Z), parent(Z,Y) -> pibling(X,Y)",
            "parent(Z,X), pibling(Z,Y) -> cousin(X,Y)",
        )
    )
)


def generate(seed: int, num_couples: int = 8, num_generations: int = 4) -> list[Atom]:
    """Every atom that holds in a random population, base relations and derived ones alike, sorted."""
    rng = np.random.default_rng(seed)
    names = (f"p{i:03d}" for i in range(10_000))
    couples = [(next(names), next(names)) for _ in range(num_couples)]
    atoms: set[Atom] = set()
    parents: dict[str, tuple[str, str]] = {}
    for _ in range(num_generations - 1):
        children: dict[int, list[str]] = {}
        for family, (mother, father) in enumerate(couples):
            atoms |= {("married", mother, father), ("married", father, mother)}
            children[family] = [next(names) for _ in range(int(rng.integers(2, 4)))]
            for child in children[family]:
                parents[child] = (mother, father)
                atoms |= {("mother", mother, child), ("father", father, child)}
        couples = _marry(children, rng)
    return sorted(atoms | _derived(parents))


def _marry(children: dict[int, list[str]], rng: np.random.Generator) -> list[tuple[str, str]]:
    """Couples across families: a child of each family with one of the next."""
    pools = [list(rng.permutation(group)) for group in children.values()]
    couples = []
    for family in range(len(pools)):
        neighbour = pools[(family + 1) % len(pools)]
        if pools[family] and neighbour:
            couples.append((str(pools[family].pop()), str(neighbour.pop())))
    return couples


def _derived(parents: dict[str, tuple[str, str]]) -> set[Atom]:
    """What the rules conclude from parenthood, written out without them."""
    atoms = {("parent", parent, child) for child, pair in parents.items() for parent in pair}
    siblings = {(a, b) for a, pair in parents.items() for b, other in parents.items() if pair == other and a != b}
    atoms |= {("sibling", a, b) for a, b in siblings}
    for child, pair in parents.items():
        atoms |= {("grandparent", grand, child) for parent in pair for grand in parents.get(parent, ())}
        piblings = {other for one, other in siblings if one in pair}
        atoms |= {("pibling", pibling, child) for pibling in piblings}
        atoms |= {("cousin", cousin, child) for cousin, others in parents.items() if piblings & set(others)}
    return atoms


def families_dataset(
    seed: int = 0, *, rules: str | Path | None = None, filters: Filters | None = None, held_out: float = 0.15
) -> Dataset:
    """A generated data set; of the atoms that a rule concludes, a share goes to valid and test each."""
    atoms = generate(seed)
    chosen = RULES if rules is None else tuple(read_rules(Path(rules)))
    heads = {rule.head[0] for rule in RULES} - {"parent"}
    draw = np.random.default_rng([seed, 1]).random(len(atoms))
    splits: dict[str, list[Atom]] = {"train": [], "valid": [], "test": []}
    for atom, u in zip(atoms, draw, strict=True):
        held = atom[0] in heads and u < 2 * held_out
        splits["train" if not held else "valid" if u < held_out else "test"].append(atom)
    return build_dataset(f"families:{seed}", splits, chosen, filters=filters)
