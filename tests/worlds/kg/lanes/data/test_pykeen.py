from __future__ import annotations

import pytest

from shoal.errors import UnknownName
from shoal.worlds.kg.lanes.data.dataset import load_dataset

pytest.importorskip("pykeen")


def test_a_data_set_inside_pykeen_loads_with_given_rules(tmp_path):
    rules = tmp_path / "rules.txt"
    rules.write_text("r0:1:blockpositionindex(y,x) -> blockpositionindex(x,y)\n")
    data = load_dataset("pykeen:nations", rules=rules)
    assert (len(data.kb.facts), len(data.valid), len(data.test)) == (1592, 199, 201)
    assert data.kb.vocabulary.num_constants == 14


def test_an_unknown_data_set_proposes_the_nearest():
    with pytest.raises(UnknownName, match="nations"):
        load_dataset("pykeen:nation")
