"""The model of training on Ray: it finds the costs that made the samples, and predicts what follows from them."""

import pytest

from shoal.bench.runners import Model, Sample, fit

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
