"""Exploration noise: standard normal at every step, correlated as its colour says, and for every lane apart."""

import pytest
import torch

from shoal.agents.soft_policies import ColouredNoise


def series(colour, steps, lanes=2000):
    noise, generator, state, drawn = ColouredNoise(colour, 2), torch.Generator().manual_seed(0), None, []
    for _ in range(steps):
        value, state = noise(state, lanes, generator)
        drawn.append(value)
    return torch.stack(drawn)  # [T, B, 2]


@pytest.mark.parametrize("colour", ["white", "pink", "red"])
def test_every_step_is_standard_normal_from_the_first_on(colour):
    drawn = series(colour, 20)
    assert drawn.std(dim=(1, 2)) == pytest.approx(torch.ones(20), abs=0.05)
    assert drawn.mean(dim=(1, 2)) == pytest.approx(torch.zeros(20), abs=0.08)


def test_darker_noise_remembers_longer():
    near, far = ({c: float((series(c, 20)[0] * series(c, 20)[lag]).mean()) for c in ("white", "pink", "red")}
                 for lag in (1, 19))  # fmt: skip
    assert abs(near["white"]) < 0.05
    assert 0.5 < near["pink"] < near["red"]
    assert near["red"] > 0.9
    assert 0.1 < far["pink"] < far["red"]


def test_lanes_are_independent_and_a_cleared_lane_begins_anew():
    noise, generator = ColouredNoise("red", 1), torch.Generator().manual_seed(0)
    first, state = noise(None, 4000, generator)
    state = state.clone()
    state[:2000] = 0.0
    second, _ = noise(state, 4000, generator)
    pairs = torch.stack([first[:, 0], second[:, 0]])
    assert abs(torch.corrcoef(pairs[:, :2000])[0, 1]) < 0.06
    assert torch.corrcoef(pairs[:, 2000:])[0, 1] > 0.9
    assert abs(torch.corrcoef(torch.stack([first[:-1, 0], first[1:, 0]]))[0, 1]) < 0.06
