"""A whole search: orders trained, rows written, stopped and gone on with."""

from __future__ import annotations

import json

import pytest

from shoal.errors import ConfigError
from shoal.search import SearchConfig, WorkflowSearch
from shoal.search.report import read_truth, regrets, write_search_report
from shoal.worlds.cage2.workflow import WORKFLOWS

SMALL = {
    "workflows": 3, "strategy": "random", "num_envs": 5, "length": 20, "max_episodes": 20, "eval_episodes": 4,
    "compliance_threshold": 0.99,
}  # fmt: skip


def small(folder, **changes):
    return WorkflowSearch(folder=folder, **{**SMALL, **changes})


def without_time(rows):
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    search = small(tmp_path_factory.mktemp("search"))
    search.run()
    return search


def test_every_pick_leaves_a_row_a_curve_and_a_network(finished):
    assert len(finished.rows) == 3
    stored = [json.loads(line) for line in (finished.folder / "picks.jsonl").read_text().splitlines()]
    assert stored == json.loads(json.dumps(finished.rows))
    first, second, third = stored
    assert first["nearest"] is None
    assert first["inherited_from"] is None
    assert second["inherited_from"] == 0  # nearest, and there is only one
    assert 0 < third["nearest_distance"] <= 1
    assert len({row["workflow"] for row in stored}) == 3
    assert third["best_so_far"] == max(row["value"] for row in stored)
    for row in stored:
        assert row["low"] <= row["value"] <= row["high"]
        assert row["episodes"] <= 25
        assert 0 <= row["compliance"] <= 1
    assert sorted(path.name for path in (finished.folder / "networks").iterdir()) == [
        f"{k}.safetensors" for k in range(3)
    ]
    curve = json.loads((finished.folder / "curves" / "0.json").read_text())
    assert {"step", "env_return", "alignment", "compliance", "fixes", "total"} <= curve[0].keys()


def test_a_stopped_search_goes_on_as_if_it_had_not_been(finished, tmp_path):
    class Stop(Exception):
        pass

    def stop_after_the_first(line):
        raise Stop

    search = small(tmp_path)
    with pytest.raises(Stop):
        search.run(say=stop_after_the_first)
    again = small(tmp_path)
    assert len(again.rows) == 1
    again.run()
    assert without_time(again.rows) == without_time(finished.rows)


def test_another_configuration_is_refused(finished):
    with pytest.raises(ConfigError, match="red='bline', not 'meander'"):
        small(finished.folder, red="meander")
    assert small(finished.folder, workflows=5).num_picks == 5  # a longer search goes on


def test_several_orders_train_at_once_and_all_can_be_ranked(tmp_path):
    search = small(tmp_path, at_once=2, workflows=2)
    rows = search.run()
    assert [row["round"] for row in rows] == [0, 0]
    assert rows[0]["workflow"] != rows[1]["workflow"]
    ranking = search.rank_all()
    assert len(ranking) == 120
    assert sum(row["trained"] for row in ranking) == 2
    assert [row["value"] for row in ranking] == sorted((row["value"] for row in ranking), reverse=True)
    page = write_search_report(search).read_text()
    assert "Zero-shot ranking" in page


def test_inheritance(finished, tmp_path):
    picks = {how: small(finished.folder, workflows=9) for how in ("none", "previous", "same", "nearest")}
    sources = {}
    for how, search in picks.items():
        object.__setattr__(search.config, "inherit", how)
        order = tuple(search.rows[0]["order"])
        sources[how] = search._inherited([order])[0]
    assert sources == {"none": None, "previous": 2, "same": 0, "nearest": 0}


def test_regret_is_measured_against_an_exhaustive_search(finished, tmp_path):
    truth = small(tmp_path, strategy="exhaustive")
    assert truth.num_picks == 16
    truth.rows = []
    for order in range(0, 120, 7):
        truth.rows.append({"order": list(WORKFLOWS[order]), "value": -float(order)})
    picked = [{"order": WORKFLOWS[k]} for k in (14, 7, 21)]
    config = SearchConfig(compliance="action-order")
    assert regrets(config, picked, truth.rows) == [14.0, 7.0, 7.0]
    with pytest.raises(ConfigError, match="must be an exhaustive one"):
        read_truth(finished.folder, finished.config)
    with pytest.raises(ConfigError, match="length=20, not 100"):
        read_truth(tmp_path, SearchConfig())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"world": "hockey"}, "no workflows"),
        ({"workflows": 0}, "at least 1"),
        ({"compliance_threshold": 1.2}, "no rate"),
        ({"eval_episodes": 1}, "interval"),
    ],
)
def test_mistakes_are_explained(settings, words):
    with pytest.raises(ConfigError, match=words):
        SearchConfig(**settings)


def test_the_verb_searches_and_reports(tmp_path, capsys):
    from shoal.cli import main

    words = "--strategy random --workflows 1 --num-envs 5 --length 20 --max-episodes 10 --eval-episodes 4"
    folder = tmp_path / "s"
    assert main(["search", "cage2", *words.split(), "--folder", str(folder)]) == 0
    assert "Best: " in capsys.readouterr().out
    assert (folder / "report.html").stat().st_size > 10_000
    assert main(["search", "cage2", "--folder", str(folder), "--red", "meander"]) == 2
    assert "red='bline'" in capsys.readouterr().err
    assert main(["search", "cage2", "--folder", str(folder), "--workflows", "2"]) == 0
    assert "after 1 of 2 picks" in capsys.readouterr().out
