"""Working memory on the stack, and constants that do not multiply compiled functions."""

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel, KernelBatch, f64, i32, record
from shoal.vector.kernel.build import Build
from shoal.vector.kernel.scratch import scratch
from shoal.vector.kernel.source import SourceSet, compile_wrap

PAIR = record(value=f64, weight=f64[2], rank=i32)
PAIRS = 5


class Sorter(Kernel):
    """Sorts random numbers in scratch records and shows the sum of the largest two."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = gym.spaces.Discrete(3)
    state = record(total=f64)

    def reset(s, p, rng):
        s.total = 0.0

    def step(s, action, p, rng):
        pairs = scratch(PAIR, PAIRS)
        for i in range(PAIRS):
            pairs[i].value, pairs[i].rank = rng.normal(), 0
            pairs[i].weight[0], pairs[i].weight[1] = 1.0, 0.5 * action
        for i in range(PAIRS):
            rank_one(pairs, i)
        for i in range(PAIRS):
            if pairs[i].rank < 2:
                s.total += pairs[i].value * pairs[i].weight[0] + pairs[i].weight[1]
        return s.total, False, False

    def observe(s, p, out):
        out[0] = s.total


def rank_one(pairs, i):
    for j in range(PAIRS):
        if pairs[j].value > pairs[i].value:
            pairs[i].rank += 1


def shift(x, by):
    return x + by


def shift_thrice(x):
    return shift(shift(shift(x, 1), 2), 3)


def test_scratch_is_the_same_compiled_and_uncompiled():
    batches = [KernelBatch(Sorter, 7, compiled=compiled) for compiled in (True, False)]
    seen = []
    for batch in batches:
        batch.reset(seed=3)
        seen.append([batch.step(np.arange(7) % 3)[0] for _ in range(20)])
    assert np.array_equal(*seen)
    assert np.std(seen[0][-1]) > 0


def test_scratch_shows_reads_before_the_first_write_when_uncompiled():
    records = scratch(PAIR, 2)
    assert np.isnan(records[1].value)
    assert np.isnan(records[0].weight).all()


def test_constant_arguments_do_not_multiply_functions():
    functions = SourceSet(Build(compiled=True), compile_wrap)
    outer = functions.add(shift_thrice)
    outer.compile("int64(int64)")
    assert len(functions.add(shift).signatures) == 1
