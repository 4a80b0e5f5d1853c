"""The embedding recovers types, keeps to its schedule and its guards, and resumes exactly."""

import numpy as np
import pytest

from shoal.errors import ConfigError
from shoal.worlds.dvrp.lab.embedding.learner import TypeLearner
from shoal.worlds.dvrp.lab.options import NegotiationOptions
from shoal.worlds.dvrp.lanes.city import synthetic_city
from shoal.worlds.dvrp.lanes.offers import TYPE_ACCEPTS, accept_by_limits
from shoal.worlds.dvrp.lanes.pool import synthetic_pool

POOL = synthetic_pool(synthetic_city())


def answers(count, acceptance="limits", seed=0, customers=30):
    """Customers, offers, answers, purposes and trips of `count` random offers."""
    rng = np.random.default_rng(seed)
    who, trip, action = rng.integers(0, customers, count), rng.integers(0, 40, count), rng.integers(0, 16, count)
    by_limits = accept_by_limits(POOL.limit[who, trip], action)
    accepted = by_limits if acceptance == "limits" else TYPE_ACCEPTS[POOL.type[who], action]
    return who, action, accepted, POOL.purpose[who, trip], trip


def learner(said=None, interval=19_200, seed=0, **options):
    said = [] if said is None else said
    return TypeLearner((30, 40), interval, NegotiationOptions(**options), seed, said.append)


@pytest.mark.parametrize(("acceptance", "share"), [("types", 0.97), ("limits", 0.90)])
def test_types_are_recovered_from_random_offers(acceptance, share):
    learn, said = learner(said := []), said
    learn.records.add(*answers(19_200, acceptance))
    assert learn.maybe_update(19_200)
    assert (learn.types == POOL.type).mean() >= share
    np.testing.assert_array_equal(learn.masks, TYPE_ACCEPTS[learn.types])
    assert "19,200 records of 30 customers, loss" in said[0]
    assert f"flexibility distribution {np.bincount(learn.types, minlength=4).tolist()}" in said[0]


@pytest.mark.parametrize("method", ["embedding", "filter"])
def test_purposes_leave_no_doubt(method):
    learn = learner(embedding=method, use_purpose=True)
    learn.records.add(*answers(19_200))
    learn.maybe_update(19_200)
    assert (learn.types == POOL.type).all()


def test_updates_come_by_difference_not_by_modulo():
    learn = learner(interval=100, embedding="filter")
    learn.records.add(*answers(500))
    due = [step for step in range(0, 700, 70) if learn.maybe_update(step)]
    assert due == [140, 280, 420, 560]


def test_guards_skip_with_a_message_and_keep_masks():
    learn, said = learner(said := [], interval=10), said
    learn.records.add(*answers(20))
    assert not learn.maybe_update(10)
    learn.records.add(*(np.repeat(column[:1], 80) for column in answers(1)))
    assert not learn.maybe_update(20)
    assert "20 records are fewer than 64" in said[0]
    assert "different offers" in said[1]
    assert learn.masks.all()


def test_customers_without_answers_keep_their_mask():
    learn = learner(embedding="filter")
    learn.records.add(*answers(5000, customers=20))
    learn.maybe_update(19_200)
    assert learn.masks[20:].all()
    assert (learn.types[20:] == -1).all()
    assert learn.flexibility_distribution().sum() == 20


def test_a_background_update_changes_masks_when_it_is_done():
    learn = learner(background=True)
    learn.records.add(*answers(19_200))
    changed = learn.maybe_update(19_200)
    if not changed:
        learn._thread.join()
        changed = learn.maybe_update(19_201)
    assert changed
    assert (learn.types == POOL.type).mean() >= 0.9


def test_a_resumed_learner_goes_on_exactly():
    ours = learner()
    ours.records.add(*answers(19_200))
    ours.maybe_update(19_200)
    theirs = learner(seed=5)
    theirs.load_state_dict(ours.state_dict())
    for learn in (ours, theirs):
        learn.records.add(*answers(19_200, seed=1))
        learn.maybe_update(38_400)
    for name, value in ours.state_dict().items():
        np.testing.assert_array_equal(np.asarray(theirs.state_dict()[name]), np.asarray(value), name)


def test_no_learning_allows_everything():
    learn = learner(embedding="none")
    learn.records.add(*answers(1000))
    assert not learn.maybe_update(10**6)
    assert learn.masks.all()
    with pytest.raises(ConfigError, match="at least 1 step, not 0"):
        learner(interval=0)
