from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shoal.errors import ConfigError, UnknownName
from shoal.worlds.kg.lanes.data.dataset import UNKNOWN, Filters, load_dataset, load_folder

COUNTRIES = Path(__file__).parents[2] / "data" / "countries_s3"


def write(folder: Path, **texts: str) -> Path:
    defaults = {"train": "p(a,b)\nq(b,c)\n", "valid": "p(b,c)\n", "test": "p(a,c)\n", "rules": "r:1:q(x,y) -> p(x,y)\n"}
    for name, text in {**defaults, **texts}.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_countries_have_the_recorded_counts():
    data = load_folder(COUNTRIES, filters=Filters(require_rule=False))
    assert (len(data.kb.facts), data.kb.vocabulary.num_regular, data.kb.vocabulary.num_constants) == (983, 4, 271)
    assert [len(data.train), len(data.valid), len(data.test)] == [983, 24, 24]
    assert (len(data.kb.rules), data.kb.rules.max_body, data.kb.rules.max_variables) == (2, 3, 4)
    assert data.kb.facts.largest_buckets() == (654, 16, 36)
    assert len(load_folder(COUNTRIES).train) == 111
    known = np.concatenate([data.train.triples, data.valid.triples, data.test.triples])
    assert data.known.contains(known).all()


def test_depths_are_joined_to_their_queries():
    data = load_folder(COUNTRIES)
    lines = dict(line.rsplit(" ", 1) for line in (COUNTRIES / "test_depths.txt").read_text().splitlines())
    vocabulary = data.kb.vocabulary
    assert [str(d) for d in data.test.depth] == [lines[vocabulary.atom(t)] for t in data.test.triples]


def test_filters_keep_depths_then_the_first_queries():
    data = load_folder(COUNTRIES, filters=Filters(depths=[2, 3], limit={"train": 5}))
    everything = load_folder(COUNTRIES)
    expected = everything.train.triples[np.isin(everything.train.depth, [2, 3])][:5]
    assert np.array_equal(data.train.triples, expected)
    assert len(data.kb.facts) == 983, "what is not asked remains a fact"


def test_soft_facts_join_the_facts_but_are_not_known(tmp_path):
    folder = write(tmp_path, soft="q(a,c) 0.9 1\nq(a,nowhere) 0.8 2\n")
    data = load_folder(folder, soft_facts="soft.txt")
    soft = data.kb.query("q(a,c)")
    assert data.kb.facts.contains(soft)
    assert not data.known.contains(soft)
    assert len(data.kb.facts) == 3


def test_a_rule_head_without_facts_is_noted(tmp_path):
    data = load_folder(write(tmp_path, rules="r:1:p(x,y) -> _p(x,y)\n"))
    assert "_p" in data.notes[0]
    assert not load_folder(COUNTRIES).notes


def test_an_empty_split_is_one_sentence(tmp_path):
    folder = write(tmp_path, valid="")
    with pytest.raises(ConfigError, match="valid split"):
        load_folder(folder).split("valid")
    write(tmp_path, train="")
    with pytest.raises(ConfigError, match="no fact"):
        load_folder(folder)


def test_missing_files_say_what_to_do(tmp_path):
    with pytest.raises(ConfigError, match="no folder"):
        load_folder(tmp_path / "nowhere")
    (write(tmp_path) / "rules.txt").unlink()
    with pytest.raises(ConfigError, match="mine-rules"):
        load_folder(tmp_path)


def test_queries_about_unknown_names_are_refused():
    kb = load_folder(COUNTRIES).kb
    with pytest.raises(UnknownName, match="'locatedIn'"):
        kb.query("locatedIn(palestine,asia)")
    with pytest.raises(UnknownName, match="constant"):
        kb.query("locatedInCR(atlantis,asia)")
    with pytest.raises(ConfigError, match="cannot be read"):
        kb.query("locatedInCR(palestine)")


def test_families_need_no_files_and_repeat_by_seed():
    first, again, other = load_dataset("families:3"), load_dataset("families:3"), load_dataset("families:4")
    assert np.array_equal(first.kb.facts.keys, again.kb.facts.keys)
    assert not np.array_equal(first.kb.facts.keys, other.kb.facts.keys)
    assert np.array_equal(first.test.triples, again.test.triples)
    for split in ("train", "valid", "test"):
        assert len(first.split(split)) > 20
    assert not first.kb.facts.contains(first.test.triples).any()
    assert (first.test.depth == UNKNOWN).all()
    with pytest.raises(ConfigError, match="whole number"):
        load_dataset("families:many")
