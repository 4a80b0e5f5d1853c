"""Interleaved rounds over real contender processes."""

from __future__ import annotations

import pytest

from shoal.bench.contender import Contender, Work
from shoal.bench.rounds import rows_of, run_works

KERNEL = Contender(
    "shoal kernel", "shoal.bench.step.ours:shoal_batch", {"env": "cartpole", "num_threads": 1, "copy": False}
)
COPIES = Contender("shoal kernel, copies", "shoal.bench.step.ours:shoal_batch", {"env": "cartpole", "num_threads": 1})
NATIVE = Contender(
    "gymnasium vector",
    "shoal.bench.step.peers:gymnasium_vector",
    {"env": "CartPole-v1", "mode": "vector_entry_point"},
    "gymnasium",
)


def measure(*works, rounds=3, seconds=0.02):
    return run_works("step", works, rounds=rounds, seconds=seconds, pythons={}, on_progress=lambda text: None)


def test_rows_have_rates_by_both_clocks_and_ratios_to_the_first_contender():
    result = measure(Work("cartpole", 64, (KERNEL, NATIVE)))
    assert [(row.name, row.clock) for row in result.rows] == [
        (name, clock) for name in ("shoal kernel", "gymnasium vector") for clock in ("cpu", "wall")
    ]
    assert all(row.steps_per_s > 0 and row.spread >= 0 and row.num_envs == 64 for row in result.rows)
    assert [row.ratio_to_shoal for row in result.rows if row.name == "shoal kernel"] == [1.0, 1.0]
    assert all(row.ratio_to_shoal > 0 for row in result.rows)
    assert "gymnasium" in result.versions


def test_ratios_are_medians_of_rounds_and_spreads_are_quartiles():
    samples = {
        "shoal kernel": [{"cpu": rate, "wall": rate / 2} for rate in (100.0, 10.0, 60.0)],
        "gymnasium vector": [{"cpu": rate, "wall": rate / 2} for rate in (50.0, 2.0, 60.0)],
    }
    rows = rows_of("step", "cartpole", 64, samples, "shoal kernel", "cpu")
    assert [row.ratio_to_shoal for row in rows] == [1.0, 1.0, 2.0, 2.0]  # of 2, 5 and 1: above 1, Shoal is faster
    assert [row.steps_per_s for row in rows] == [60.0, 30.0, 50.0, 25.0]
    assert rows[0].spread == pytest.approx(90 / 60)


def test_who_cannot_take_part_becomes_a_note():
    absent = Contender("nobody", "shoal.bench.no_such_module:run")
    strange = Contender("stranger", "shoal.bench.step.peers:gymnasium_vector", {"env": "Nowhere-v0", "mode": "sync"})
    lonely = Contender("lonely", KERNEL.entry, {"env": "cartpole"}, max_envs=4)
    result = measure(Work("cartpole", 8, (KERNEL, absent, strange, lonely)), rounds=1)
    assert {row.name for row in result.rows} == {"shoal kernel"}
    assert [note.split(":")[0] for note in result.notes] == ["nobody", "stranger"]
    assert "not installed" in result.notes[0]


def test_a_contender_that_dies_leaves_the_others_running():
    dying = Contender("dying", "os:_exit", {})
    result = measure(Work("cartpole", 8, (KERNEL, dying, COPIES)), rounds=1)
    assert {row.name for row in result.rows} == {"shoal kernel", "shoal kernel, copies"}
    assert len(result.notes) == 1
