from __future__ import annotations

import pytest

from shoal.worlds.kg.lab.prover import Node, Prover, format_tree, proof_tree
from shoal.worlds.kg.lanes.data.dataset import load_dataset
from shoal.worlds.kg.lanes.data.parse import parse_atom


def check(node: Node, data, query) -> int:
    """Every leaf is a fact other than the query, every rule fits its atoms; the number of atoms."""
    ids = data.kb.vocabulary.atoms_to_ids([node.atom])[0]
    if node.rule is None:
        assert data.kb.facts.contains(ids)
        assert ids.tolist() != query.tolist()
        return 1
    binding: dict[int, str] = {}
    for pattern, atom in zip(
        (node.rule.head, *node.rule.body), (node.atom, *(c.atom for c in node.children)), strict=True
    ):
        assert pattern[0] == atom[0]
        for variable, value in zip(pattern[1:], atom[1:], strict=True):
            assert binding.setdefault(variable, value) == value
    return 1 + sum(check(child, data, query) for child in node.children)


@pytest.mark.parametrize("selection", ["leftmost", "bound_first"])
def test_a_tree_is_a_proof_from_facts_by_rules(selection):
    data = load_dataset("families:1")
    prover = Prover(data.kb, selection=selection)
    proved = 0
    for query in data.test.triples[:40]:
        moves = prover.proof(query, 4)
        if moves is not None:
            tree = proof_tree(data.kb, query, moves, bound_first=selection == "bound_first")
            assert check(tree, data, query) >= 2
            assert parse_atom(format_tree(tree).split("  ")[0]) == tree.atom
            proved += 1
    assert proved > 20
