"""The learners' minibatches."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from shoal.bridges.rllib.learner import LaneLearner, VecLearner, minibatch_rows


@given(rows=st.integers(1, 40), size=st.integers(1, 40), epochs=st.integers(1, 4))
def test_every_row_is_trained_in_every_epoch(rows, size, epochs):
    count = VecLearner.num_minibatches(None, rows, size, epochs, 0)
    order = minibatch_rows(rows, size, count)
    assert order.shape == (count, size)
    assert epochs * rows <= order.numel() < epochs * rows + size
    for epoch in range(epochs):
        one_pass = order.reshape(-1)[epoch * rows : (epoch + 1) * rows]
        assert torch.equal(one_pass.sort().values, torch.arange(rows))


def test_lanes_are_counted_by_their_samples_and_episodes_by_the_group():
    assert VecLearner.num_minibatches(None, 64, 16, 2, of_group=5) == 5
    assert LaneLearner.num_minibatches(LaneLearner.__new__(LaneLearner), 64, 16, 2, of_group=5) == 8
