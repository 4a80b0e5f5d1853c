"""The suite finds what is broken, says nothing about what is not, and shows the smallest case."""

from __future__ import annotations

import gymnasium
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv

import shoal
from shoal.testing import (
    BROKEN,
    NOT_OFFERED,
    NOT_SEEN,
    PROMISES,
    ContractBroken,
    assert_batch,
    check_agreement,
    check_batch,
    promise_name,
)
from tests.testing.broken import BREAKERS, Clips, Crowd, Sound, SoundSlope

BY_NAME = {promise.__name__: promise for promise in PROMISES}


def test_every_promise_has_a_batch_that_breaks_it():
    assert BREAKERS.keys() == BY_NAME.keys()


@pytest.mark.parametrize(
    ("promise", "batch"), [(promise, batch) for promise, batches in BREAKERS.items() for batch in batches]
)
def test_a_broken_promise_is_found(promise, batch):
    findings = check_batch(batch, promises=[BY_NAME[promise]], num_steps=24, max_examples=12)
    assert [(f.promise, f.severity) for f in findings if f.severity != NOT_SEEN] == [
        (promise_name(BY_NAME[promise]), BROKEN)
    ]


@pytest.mark.parametrize("batch", [Sound, SoundSlope])
def test_a_sound_batch_is_left_alone(batch):
    findings = check_batch(batch, max_examples=5)
    assert {f.severity for f in findings} <= {NOT_OFFERED}
    not_offered = {"a nan action is refused"} if batch is Sound else {"the action mask allows something"}
    assert {f.promise for f in findings} == not_offered


def test_a_finding_shows_the_smallest_case():
    (finding,) = (
        f for f in check_batch(Crowd, promises=[BY_NAME["lanes_do_not_know_their_neighbours"]]) if f.severity == BROKEN
    )
    assert "num_envs=1" in finding.sentence
    assert "seed=0" in finding.sentence


def test_assert_batch_raises_only_for_broken_promises():
    assert_batch(SoundSlope, max_examples=3, promises=[BY_NAME["the_action_mask_allows_something"]])
    with pytest.raises(ContractBroken, match="accepted an action outside the space") as caught:
        assert_batch(Clips, max_examples=3, promises=[BY_NAME["an_action_outside_the_space_is_refused"]])
    assert len(caught.value.findings) == 1


def test_two_ways_that_disagree_are_found():
    assert check_agreement(Sound, Sound, ("one", "other"), num_steps=20) == []
    (finding,) = check_agreement(Sound, Crowd, ("one", "other"), num_steps=20)
    assert finding.severity == BROKEN


def test_no_ending_in_sight_is_said():
    findings = check_batch(SoundSlope, num_steps=3, max_examples=3, promises=[BY_NAME["an_ending_has_one_cause"]])
    assert [f.severity for f in findings] == [NOT_SEEN]


class TestGymnasium:
    """What the suite finds in Gymnasium's own vector environments; each was checked by hand."""

    def broken(self, make, max_examples=6, **options):
        return {f.promise for f in check_batch(make, max_examples=max_examples, **options) if f.severity == BROKEN}

    def test_its_array_code_shares_one_random_stream_and_steps_after_close(self):
        found = self.broken(lambda n: gymnasium.make_vec("CartPole-v1", num_envs=n))
        assert found == {"lanes do not know their neighbours", "step after close is refused"}

    def test_its_array_code_calls_an_ending_both_terminated_and_truncated(self):
        found = self.broken(
            lambda n: CartPoleVectorEnv(num_envs=n, max_episode_steps=12),
            promises=[BY_NAME["an_ending_has_one_cause"]],
            max_examples=60,
        )
        assert found == {"an ending has one cause"}

    def test_its_sync_batches_share_metadata_and_move_before_they_refuse(self):
        def make(num_envs, **options):
            return gymnasium.make_vec(
                "CartPole-v1", num_envs=num_envs, vectorization_mode="sync", vector_kwargs=options
            )

        found = self.broken(make)
        assert "an action outside the space is refused" in found
        if gymnasium.__version__ < "1.4":  # each batch has a metadata of its own from there on
            assert "each batch announces its own mode" in found


@pytest.mark.parametrize("world", ["cartpole", "pendulum", "acrobot", "mountaincar", "mountaincar-continuous"])
def test_classic_kernels_keep_the_contract(world):
    assert_batch(lambda n, **options: shoal.make(world, n, **options), num_envs=2, num_steps=60, max_examples=3)


@pytest.mark.parametrize("backend", ["serial", "workers"])
def test_backends_for_python_environments_keep_the_contract(backend):
    options = {"backend": backend, **({"context": "fork"} if backend == "workers" else {})}
    assert_batch(
        lambda n, **more: shoal.make("CartPole-v1", n, **options, **more), num_envs=2, num_steps=40, max_examples=3
    )
