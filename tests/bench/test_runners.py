"""The model of training on Ray: it finds the costs that made the samples, and predicts what follows from them."""

from dataclasses import replace

import pytest

from shoal.bench.machine import machine
from shoal.bench.runners import Model, Sample, compare, fit

CORES = machine()["cores"]

TRUE = Model(runner_s=2e-6, fragment_s=1e-3, megabyte_s=4e-3, learn_s=5e-7, bytes_per_step=64.0)


def sample(runners, steps):
    megabytes = steps * TRUE.bytes_per_step / 2**20
    receive = runners * TRUE.fragment_s + megabytes * TRUE.megabyte_s
    return Sample(runners, steps, megabytes, steps * TRUE.runner_s, receive, steps * TRUE.learn_s, 1.0)


def test_the_fit_finds_the_costs():
    found = fit([sample(k, steps) for k in (1, 2) for steps in (16_384, 65_536)])
    for name, value in vars(TRUE).items():
        assert getattr(found, name) == pytest.approx(value)


def test_more_runners_help_until_the_learner_is_the_limit():
    steps, enough = 65_536, TRUE.enough(65_536)
    ahead = [TRUE.steps_per_s(k, steps, ahead=True) for k in range(1, enough + 1)]
    assert ahead == sorted(ahead)
    assert TRUE.steps_per_s(4 * enough, steps, True) <= ahead[-1]
    assert all(TRUE.steps_per_s(k, steps) < TRUE.steps_per_s(k, steps, True) for k in (1, 2, enough))


def test_on_one_machine_its_cores_are_the_limit():
    steps = 65_536
    assert TRUE.steps_per_s(2, steps, cores=4) > TRUE.steps_per_s(2, steps)  # no network between them
    assert TRUE.iteration_s(8, steps, cores=2) > TRUE.iteration_s(2, steps, cores=2)  # more fragments, no faster
    for runners in (1, 2, 4):
        cpu_s = steps * (TRUE.runner_s + TRUE.learn_s)
        assert TRUE.iteration_s(runners, steps, ahead=True, cores=2) >= cpu_s / 2


def test_rates_are_held_against_the_model_by_the_clock():
    slow = [replace(sample(k, 65_536), wall_s=2 * TRUE.iteration_s(k, 65_536, cores=CORES)) for k in (1, 2)]
    rows = compare(TRUE, [*slow, sample(1, 16_384)])
    assert [(row["runners"], row["staleness"]) for row in rows] == [(1, 0), (2, 0)]
    for row in rows:
        assert row["measured"] == pytest.approx(row["predicted"] / 2)
