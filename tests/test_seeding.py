"""Random streams: no two of them meet, and the numbers of a seed stay what they are."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import shoal
from shoal.cluster.fleet import replacement_seed
from shoal.errors import ConfigError
from shoal.seeding import LaneRng, Seed, Stream, check_run_seed, lane_keys, lane_seeds, uniform_at
from shoal.training.config import TrainConfig
from tests.training.worlds import ArrayWalk, EnvWalk

WORDS = st.one_of(st.integers(0, 9), st.integers(0, 2**64 - 1), st.integers(2**64 - 9, 2**64 - 1))
KNOWN_KEYS = [4790513584062344088, 17518922490811388786]  # of 5
KNOWN_EVALUATION_KEYS = [5500866383522893757, 12302396012874341854]
KNOWN_DRAWS = [0.43775600474440823, 0.7901067743608727]
SEEDS = st.builds(Seed, WORDS, st.sampled_from(Stream), st.lists(WORDS, max_size=3).map(tuple))


def meaning(seed):
    """What a seed says; zeros at the end of the extra words say nothing."""
    extra = seed.extra
    while extra and extra[-1] == 0:
        extra = extra[:-1]
    return seed.number, seed.stream, extra


@given(one=SEEDS, other=SEEDS, lanes=st.tuples(st.integers(0, 99), st.integers(0, 99)))
@example(one=Seed(5, Stream.EVALUATION), other=replacement_seed(Seed(5), 1), lanes=(0, 0))
@example(one=Seed(5, Stream.EVALUATION), other=Seed(5, Stream.RESUMED, (1,)), lanes=(0, 0))
@example(one=Seed(0, Stream.GAMES), other=Seed(0, Stream.RESUMED, (2,)), lanes=(0, 0))
@example(one=Seed(5), other=Seed(5, Stream.RESUMED), lanes=(0, 0))
def test_no_two_streams_meet(one, other, lanes):
    """Seeds that mean different things are different sequences of words, and so are their lanes' keys different."""
    same = meaning(one) == meaning(other)
    assert (int(one) == int(other)) == same
    keys = [lane_keys(seed, 100)[lane] for seed, lane in zip((one, other), lanes, strict=True)]
    assert (keys[0] == keys[1]) == (same and lanes[0] == lanes[1])


@given(seed=WORDS)
def test_a_replaced_runner_does_not_get_the_lanes_of_another_purpose(seed):
    lost = [Seed(seed), Seed(seed, Stream.RESUMED, (4096,))]
    replaced = [replacement_seed(start, restarts) for start in lost for restarts in (1, 2, 4)]
    every = [*lost, *replaced, Seed(seed, Stream.EVALUATION), Seed(seed, Stream.GAMES)]
    keys = np.concatenate([lane_keys(start, 64) for start in every])
    assert len(np.unique(keys)) == len(keys)


@given(seed=WORDS)
def test_training_and_evaluation_draw_what_they_always_drew(seed):
    """Results of earlier runs can be had again: these are the numbers of seeds as plain integers."""
    assert np.array_equal(lane_keys(Seed(seed), 3), lane_keys(seed, 3))
    assert np.array_equal(lane_keys(Seed(seed, Stream.EVALUATION), 3), lane_keys((1 << 64) + seed, 3))
    assert np.array_equal(lane_keys(Seed(0, Stream.GAMES), 3), lane_keys(1 << 66, 3))


def test_keys_of_known_seeds():
    assert lane_keys(5, 2).tolist() == KNOWN_KEYS
    assert lane_keys((1 << 64) + 5, 2).tolist() == KNOWN_EVALUATION_KEYS
    assert lane_seeds(5, 2) == [key >> 33 for key in KNOWN_KEYS]
    assert uniform_at(7, 1, np.arange(2)).tolist() == KNOWN_DRAWS


@given(seed=WORDS, first=st.integers(0, 50), count=st.integers(1, 9))
def test_some_lanes_draw_as_they_would_among_all(seed, first, count):
    part = Seed(seed, first_lane=first)
    assert np.array_equal(lane_keys(part, count), lane_keys(seed, first + count)[first:])
    assert lane_seeds(part, count) == lane_seeds(seed, first + count)[first:]
    assert pickle.loads(pickle.dumps(part)) == part


@pytest.mark.parametrize(
    "make", [lambda n: shoal.make("cartpole", n), ArrayWalk, lambda n: shoal.make(EnvWalk, n, backend="serial")]
)
def test_every_kind_of_batch_knows_them(make):
    whole, part = make(6), make(2)
    assert np.array_equal(part.reset(seed=Seed(9, first_lane=3))[0], whole.reset(seed=9)[0][3:5])


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_beyond_64_bits_is_refused_wherever_a_run_takes_one(seed):
    batch = shoal.make("cartpole", 2)
    for take in (
        check_run_seed,
        Seed,
        lambda seed: batch.reset(seed=seed),
        lambda seed: TrainConfig("cartpole", seed=seed),
    ):
        with pytest.raises(ConfigError, match=rf"seed={seed} is not a valid seed\. Use .* to 2\*\*64"):
            take(seed)


@given(seed=st.integers(0, 2**40))
def test_lane_rng_draws_alone_as_together(seed):
    together, alone = LaneRng(5), LaneRng(5)
    together.seed(seed)
    alone.seed(seed)
    drawn = together.uniform(None, 3)
    lane = np.array([2])
    assert np.array_equal(alone.uniform(lane, 3)[0], drawn[2])
    assert sorted(alone.permutation(7, lane)[0]) == list(range(7))
    assert ((together.integers(4, None, 50) >= 0) & (together.integers(4, None, 50) < 4)).all()
