"""The synthetic city is the specified one, and a user's matrices are checked before they are used."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ConfigError
from shoal.seeding import uniform_at
from shoal.worlds.dvrp.lanes.city import city_from_matrices, closure, synthetic_city

RECORDED = json.loads((Path(__file__).parents[1] / "fixtures" / "city.json").read_text())


def test_random_numbers_are_the_recorded_ones():
    for seed, stream, counter, expected in RECORDED["rng_check"]:
        assert uniform_at(seed, stream, counter) == expected


def test_default_city_is_the_recorded_one():
    city = synthetic_city()
    np.testing.assert_array_equal(city.distance, RECORDED["distance_m"])
    np.testing.assert_array_equal(city.duration, RECORDED["duration_s"])
    np.testing.assert_allclose(city.xy, RECORDED["xy_km"], atol=1e-6)


@given(seed=st.integers(0, 2**40), num_cells=st.integers(2, 60))
def test_any_city_obeys_the_triangle_inequality(seed, num_cells):
    city = synthetic_city(seed, num_cells)
    for matrix in (city.distance, city.duration):
        np.testing.assert_array_equal(closure(matrix), matrix)
        assert not np.diag(matrix).any()
        assert (matrix + np.eye(num_cells) > 0).all()


def test_cities_of_other_seeds_are_other_cities():
    assert synthetic_city(8).identity != synthetic_city(7).identity == synthetic_city(7).identity


def test_a_plane_is_found_for_a_city_without_coordinates():
    city = synthetic_city()
    guess = city_from_matrices(city.duration).coordinates()
    ours, theirs = (np.sqrt(((xy[:, None] - xy) ** 2).sum(-1)) for xy in (guess, city.xy))
    assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.9


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.zeros((2, 3)), "square"),
        ([[0, -5], [3, 0]], "-5 from cell 0 to cell 1"),
        ([[0, np.nan], [3, 0]], "nan from cell 0 to cell 1"),
        ([[0, 90_000], [3, 0]], "90000"),
        ([[1, 5], [3, 0]], "cell 0 to itself"),
        ([[0]], "at least two"),
    ],
)
def test_a_matrix_that_is_none_is_refused_in_a_sentence(matrix, words):
    with pytest.raises(ConfigError, match=words):
        city_from_matrices(np.array(matrix))


def test_detours_are_closed_with_a_note():
    seconds = np.array([[0, 10, 50], [10, 0, 10], [50, 10, 0]])
    with pytest.warns(UserWarning, match="2 pairs"):
        city = city_from_matrices(seconds)
    assert city.duration[0, 2] == 20


def test_matrices_of_different_sizes_and_a_depot_outside_are_refused():
    seconds = synthetic_city().duration
    with pytest.raises(ConfigError, match="share cells"):
        city_from_matrices(seconds, seconds[:5, :5])
    with pytest.raises(ConfigError, match="depot is cell 31"):
        city_from_matrices(seconds, depot=31)
