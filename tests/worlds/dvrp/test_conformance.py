"""The world keeps every promise of the contract, whatever it compares."""

import pytest

import shoal
from shoal.testing import assert_batch

SMALL = {"customers": 3, "iterations": 1, "capacity": 1}


@pytest.mark.parametrize(
    "options",
    [
        {"quotes": True, "coordinates": True, "reward": "vs_noop_path", "perturbation": 30},
        {
            "obs_mode": "raw",
            "reward": "counterfactual",
            "acceptance": "logit",
            "fleet": 1,
            "terminate_on_failure": True,
        },
    ],
    ids=["everything", "failing"],
)
def test_promises_are_kept(options):
    assert_batch(lambda num_envs, **more: shoal.make("dvrp", num_envs, **SMALL, **options, **more))
