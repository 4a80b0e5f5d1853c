import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ConfigError
from shoal.training.evaluate import EpisodeQuota


@given(lanes=st.integers(1, 7), episodes=st.integers(1, 30), seed=st.integers(0, 1000))
def test_lanes_have_equal_shares_and_their_first_episodes_count(lanes, episodes, seed):
    quota, rng = EpisodeQuota(lanes, episodes), np.random.default_rng(seed)
    counted = np.zeros(lanes, int)
    share = np.array([episodes // lanes + (lane < episodes % lanes) for lane in range(lanes)])
    often = rng.uniform(0.1, 1.0, lanes)  # some lanes end far more often than others
    while not quota.done:
        ended = rng.uniform(size=lanes) < often
        counts = quota.counts(ended)
        np.testing.assert_array_equal(counts, ended & (counted < share))
        counted += counts
    np.testing.assert_array_equal(counted, share)
    assert share.sum() == episodes


def test_no_episodes_are_refused():
    with pytest.raises(ConfigError, match="episodes must be at least 1, not 0"):
        EpisodeQuota(4, 0)
