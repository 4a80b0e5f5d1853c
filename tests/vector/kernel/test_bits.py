"""Lanes that have ended, 64 at a time: the same bits compiled and as Python."""

import numba
import numpy as np

from shoal.vector.kernel.bits import COMPILED, ended_among, ended_among_compiled, lowest_bit, without_lowest

_among = numba.njit(ended_among_compiled)
_lowest, _without = COMPILED["lowest_bit"], COMPILED["without_lowest"]


@numba.njit
def listed(done, base, stop):
    lanes = np.zeros(64, np.int64)
    count, bits = 0, _among(done, base, stop)
    while bits != 0:
        lanes[count] = base + _lowest(bits)
        bits = _without(bits)
        count += 1
    return lanes[:count]


def listed_as_python(done, base, stop):
    lanes, bits = [], ended_among(done, base, stop)
    while bits:
        lanes.append(base + lowest_bit(bits))
        bits = without_lowest(bits)
    return lanes


def test_every_lane_that_has_ended_is_found_and_no_other():
    rng = np.random.default_rng(0)
    for share in (0.0, 0.05, 0.5, 1.0):
        done = rng.uniform(size=200) < share
        for base, stop in ((0, 200), (0, 64), (63, 127), (136, 200), (137, 200), (190, 200), (5, 6), (7, 7)):
            expected = [lane for lane in range(base, min(stop, base + 64)) if done[lane]]
            assert listed(done, base, stop).tolist() == expected
            assert listed_as_python(done, base, stop) == expected
