"""Both engines and the prover against a textbook prover, on knowledge bases that hypothesis invents."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.worlds.kg.lab.prover import Prover
from shoal.worlds.kg.lanes.data.knowledge import KnowledgeBase
from shoal.worlds.kg.lanes.data.parse import Rule
from shoal.worlds.kg.lanes.engine.cpu import CpuEngine, search_functions
from tests.worlds.kg import reference
from tests.worlds.kg.single_states import expand_states

PREDICATES, CONSTANTS, WIDTH = ("p", "q", "r"), ("a", "b", "c"), 8

predicates = st.sampled_from(PREDICATES)
facts = st.sets(st.tuples(predicates, st.sampled_from(CONSTANTS), st.sampled_from(CONSTANTS)), max_size=10)
variables = st.integers(0, 3)
clauses = st.lists(
    st.tuples(
        st.tuples(predicates, variables, variables),
        st.lists(st.tuples(predicates, variables, variables), min_size=1, max_size=3),
    ),
    max_size=4,
)
terms = st.sampled_from([*CONSTANTS, "?1", "?2", "?3"])
states = st.lists(st.tuples(predicates, terms, terms), min_size=1, max_size=4).map(
    lambda goals: reference.canonical(tuple(goals))
)
queries = st.tuples(predicates, st.sampled_from(CONSTANTS), st.sampled_from(CONSTANTS))


def build(known, clauses):
    """The same knowledge for our engines and for the reference."""
    rules, plain = [], []
    for head, body in clauses:
        names: dict[int, int] = {}
        for atom in (head, *body):
            for variable in atom[1:]:
                names.setdefault(variable, len(names))
        numbered = [(p, names[x], names[y]) for p, x, y in (head, *body)]
        rules.append(Rule("r", 1.0, numbered[0], tuple(numbered[1:])))
        texts = [(p, f"?x{x}", f"?x{y}") for p, x, y in numbered]
        plain.append((tuple(texts[1:]), texts[0]))
    return KnowledgeBase.from_atoms(known, rules, CONSTANTS, PREDICATES), plain


def to_ids(kb, state):
    n = kb.vocabulary.num_constants

    def term(name):
        return n + int(name[1:]) if name[0] == "?" else kb.vocabulary.constant_id(name)

    return np.array([(kb.vocabulary.predicate_id(p), term(a), term(b)) for p, a, b in state], np.int32)


def to_state(kb, goals):
    def term(number):
        return kb.vocabulary.term(number).replace("V", "?")

    return tuple((kb.vocabulary.predicates[p], term(a), term(b)) for p, a, b in goals.tolist())


@settings(max_examples=150, deadline=None)
@given(known=facts, clauses=clauses, state=states, query=queries)
def test_both_engines_find_the_successors_of_the_textbook(known, clauses, state, query):
    kb, rules = build(known, clauses)
    expected = sorted(reference.successors(state, known, rules, query))
    goals, excluded = to_ids(kb, state), kb.vocabulary.atoms_to_ids([query])[0]
    engine = CpuEngine(kb, WIDTH)
    everything = engine.expand(goals, excluded, collapse=False)
    assert sorted(to_state(kb, row) for row in everything.rows) == expected
    collapsed = engine.expand(goals, excluded)
    assert collapsed.proved == (() in expected)
    if not collapsed.proved:
        found = [to_state(kb, row) for row in collapsed.rows]
        assert len(found) == len(set(found))
        assert set(found) == {row for row in expected if len(row) <= WIDTH}
    (_, rows), *_ = expand_states(kb, [goals], [excluded], WIDTH)
    assert sorted(to_state(kb, row) for row in rows) == expected


@settings(max_examples=150, deadline=None)
@given(known=facts, clauses=clauses, state=states, query=queries, keep=st.integers(0, 3), num_past=st.integers(0, 2))
def test_successors_are_counted_without_being_kept(known, clauses, state, query, keep, num_past):
    kb, _ = build(known, clauses)
    goals, excluded = to_ids(kb, state), kb.vocabulary.atoms_to_ids([query])[0]
    engine = CpuEngine(kb, WIDTH, num_past=2)
    padded = np.zeros((WIDTH, 3), np.int32)
    padded[: len(goals)] = goals

    def resolve(past, keep):
        arguments = (padded, len(goals), excluded, False, False, past, len(past), keep, engine.work)
        return search_functions()["resolve"](engine.tables, *arguments)

    found = resolve(np.zeros(0, np.int64), len(engine.work.size))
    past = engine.work.print[: max(0, min(found, num_past))].copy()  # some were visited before
    everything = resolve(past, len(engine.work.size))
    assert everything == (found if found < 0 else found - len(past))
    rows = engine.work.rows[: max(0, min(everything, keep))].copy()
    assert resolve(past, keep) == everything
    np.testing.assert_array_equal(engine.work.size[: len(rows)] > 0, True)
    for row, size, again in zip(rows, engine.work.size, engine.work.rows, strict=False):
        np.testing.assert_array_equal(row[:size], again[:size])


@settings(max_examples=80, deadline=None)
@given(known=facts, clauses=clauses, query=queries)
def test_the_prover_needs_as_many_steps_as_the_textbook(known, clauses, query):
    kb, rules = build(known, clauses)
    ids = kb.vocabulary.atoms_to_ids([query])
    prover = Prover(kb, max_atoms=4)
    steps = int(prover.prove(ids, 4)[0])
    assert steps == reference.steps_to_proof(query, known, rules, 4, 4)
    counts = prover.count_proofs(ids, 3)[0]
    assert (counts > 0).tolist() == [0 < steps <= depth for depth in (1, 2, 3)]
    moves = prover.proof(ids[0], 4)
    assert (moves is None) == (steps < 0)
    if moves is not None:
        assert len(moves) == steps
        assert len(moves[-1].goals) == 0


@settings(max_examples=40, deadline=None)
@given(known=facts, clauses=clauses, query=queries)
def test_the_order_of_selection_does_not_change_what_is_provable(known, clauses, query):
    kb, _ = build(known, clauses)
    ids = kb.vocabulary.atoms_to_ids([query])
    leftmost, bound = (Prover(kb, max_atoms=12, selection=s).prove(ids, 3)[0] for s in ("leftmost", "bound_first"))
    if leftmost > 0 and bound > 0:
        assert leftmost == bound
