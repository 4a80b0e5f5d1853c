from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import ConfigError, UnknownName
from shoal.worlds.kg.lanes.data.vocabulary import Vocabulary


def test_ids_are_sorted_with_specials_and_twins_after_the_regular_predicates():
    vocabulary = Vocabulary(["q", "p"], ["b", "a", "0c"])
    assert vocabulary.predicates == ("", "p", "q", "True", "False", "End", "EndTrue", "p_kge", "q_kge")
    assert [vocabulary.true, vocabulary.false, vocabulary.end, vocabulary.end_true] == [3, 4, 5, 6]
    assert vocabulary.predicates[vocabulary.twin(2)] == "q_kge"
    assert vocabulary.constants == ("0c", "a", "b")


@pytest.mark.parametrize("regular", [1, 4, 48])
def test_tables_are_sized_from_the_largest_id(regular):
    vocabulary = Vocabulary([f"p{i}" for i in range(regular)], ["a"])
    assert vocabulary.num_predicate_ids == 2 * regular + 4 + 1
    assert vocabulary.twin(regular) == vocabulary.num_predicate_ids - 1
    assert vocabulary.num_term_ids(16) == 1 + 16 + 1


def test_atoms_go_to_ids_and_back():
    vocabulary = Vocabulary(["p", "q"], ["a", "b"])
    ids = vocabulary.atoms_to_ids([("q", "b", "a"), ("p", "a", "a")])
    assert ids.dtype == np.int32
    assert [vocabulary.atom(row) for row in ids] == ["q(b,a)", "p(a,a)"]
    assert vocabulary.atoms_to_ids([]).shape == (0, 3)
    assert vocabulary.state(np.array([[1, 1, 3], [2, 4, 3], [0, 0, 0]])) == "p(a,V1) & q(V2,V1)"
    assert vocabulary.state(np.array([[vocabulary.end, 0, 0]])) == "End"


def test_an_unknown_name_is_named():
    vocabulary = Vocabulary(["neighbour"], ["rome"])
    with pytest.raises(UnknownName, match=r"'neighbor'.*'neighbour'"):
        vocabulary.atoms_to_ids([("neighbor", "rome", "rome")])
    with pytest.raises(UnknownName, match="constant 'roma'"):
        vocabulary.atoms_to_ids([("neighbour", "rome", "roma")])


@pytest.mark.parametrize("predicates", [["True"], ["p", "p_kge"]])
def test_reserved_names_are_refused(predicates):
    with pytest.raises(ConfigError, match="reserves"):
        Vocabulary(predicates, ["a"])


def test_the_digest_depends_on_every_name():
    base = Vocabulary(["p"], ["a", "b"]).digest()
    assert base == Vocabulary(["p"], ["b", "a"]).digest()
    assert len({base, Vocabulary(["q"], ["a", "b"]).digest(), Vocabulary(["p"], ["a", "c"]).digest()}) == 3
