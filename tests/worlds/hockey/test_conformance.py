"""The rink keeps every promise of the contract, bots inside."""

from shoal.testing import assert_batch
from shoal.worlds.hockey.batch import hockey


def test_promises_are_kept():
    assert_batch(
        lambda num_envs, **more: hockey(num_envs, mode="TRAIN_SHOOTING", opponent="mixed", **more), max_examples=4
    )
