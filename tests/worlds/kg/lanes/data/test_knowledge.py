from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ConfigError
from shoal.worlds.kg.lanes.data.knowledge import FactIndex

triples = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4)), max_size=30)


@given(rows=triples)
def test_every_pattern_finds_exactly_its_facts(rows):
    index = FactIndex(np.array(rows, np.int32).reshape(-1, 3), 3, 4)
    distinct = set(rows)
    assert len(index) == len(distinct)
    free = [None, 1, 2, 3, 4]
    for p, first, second in itertools.product([1, 2, 3], free, free):
        expected = {r for r in distinct if r[0] == p and first in (None, r[1]) and second in (None, r[2])}
        found = index.match(p, first, second)
        assert len(found) == len(expected)
        assert set(map(tuple, found.tolist())) == expected
    grid = np.array(list(itertools.product(range(1, 4), range(1, 5), range(1, 5))), np.int32)
    assert index.contains(grid).tolist() == [tuple(row) in distinct for row in grid.tolist()]


@pytest.mark.parametrize("triple", [[0, 1, 1], [4, 1, 1], [1, 5, 1], [1, 1, -1]])
def test_ids_out_of_range_are_refused_with_their_row(triple):
    with pytest.raises(ConfigError, match="Triple 1 "):
        FactIndex(np.array([[1, 1, 1], triple], np.int32), 3, 4)


def test_keys_that_do_not_fit_are_refused():
    with pytest.raises(ConfigError, match="64-bit"):
        FactIndex(np.zeros((0, 3), np.int32), 10_000, 2**30)
