"""Which seeds are meant."""

import pytest

from shoal.errors import ConfigError
from shoal.experiments.seeds import read_seeds


@pytest.mark.parametrize(
    ("given", "meant"),
    [(3, (0, 1, 2)), ("3", (0, 1, 2)), ("3,5,9", (3, 5, 9)), ("7,", (7,)), ([5, 2], (5, 2)), (range(2), (0, 1))],
)
def test_a_number_or_a_list(given, meant):
    assert read_seeds(given) == meant


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("3,5,3", "Seed 3 is named more than once"),
        (0, "The number of seeds must be from 1 to 10,000, not 0"),
        ("many", "seeds='many' is not valid. Pass a number of seeds, e.g. 8, or a list"),
        ([], "The list of seeds is empty"),
        ([-1], "seed=-1 is not a valid seed"),
    ],
)
def test_bad_seeds_are_told_in_a_sentence(given, sentence):
    with pytest.raises(ConfigError, match=sentence):
        read_seeds(given)
