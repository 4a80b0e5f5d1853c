"""The rink keeps every promise of the contract, bots inside."""

import shoal
from shoal.testing import assert_batch


def test_promises_are_kept():
    assert_batch(
        lambda num_envs, **more: shoal.make("hockey", num_envs, mode="TRAIN_SHOOTING", opponent="mixed", **more),
        max_examples=4,
    )
