from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import ConfigError
from shoal.worlds.kg.lanes.data.corruptions import corrupt
from shoal.worlds.kg.lanes.data.dataset import load_dataset, load_folder
from tests.worlds.kg.lanes.data.test_dataset import COUNTRIES


@pytest.mark.parametrize("side", ["head", "tail"])
def test_corruptions_are_distinct_filtered_and_change_one_side(side):
    data = load_dataset()
    true, place = data.test.triples, 1 if side == "head" else 2
    made = corrupt(data, true, side, 20, np.random.default_rng(0))
    assert made.triples.shape == (len(true), 20, 3)
    for row, triples, valid in zip(true, made.triples, made.valid, strict=True):
        kept = triples[valid]
        assert len(np.unique(kept[:, place])) == len(kept)
        assert (kept[:, place] != row[place]).all()
        assert (np.delete(kept, place, 1) == np.delete(row, place)).all()
        assert not data.known.contains(kept).any()


def test_all_corruptions_are_in_the_order_of_ids_with_known_ones_masked():
    data = load_dataset()
    made = corrupt(data, data.test.triples[:5], "tail", None)
    n = data.kb.vocabulary.num_constants
    assert made.triples.shape == (5, n - 1, 3)
    assert (np.diff(made.triples[:, :, 2], axis=1) > 0).all()
    assert np.array_equal(made.valid, ~data.known.contains(made.triples))


def test_replacements_come_from_the_domain():
    data = load_folder(COUNTRIES)
    made = corrupt(data, data.test.triples, "tail", 100, np.random.default_rng(0))
    names = {data.kb.vocabulary.term(c) for c in np.unique(made.triples[made.valid][:, 2])}
    assert names <= {"oceania", "asia", "europe", "africa", "americas"}
    assert (made.valid.sum(1) == 4).all()


def test_bad_requests_are_refused():
    data = load_dataset()
    with pytest.raises(ConfigError, match="side"):
        corrupt(data, data.test.triples, "middle", 1)
    with pytest.raises(ConfigError, match="at least 1"):
        corrupt(data, data.test.triples, "head", 0)
