"""What the fast paths share, against the plain definitions; and that cached code is not stale."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from shoal.agents.adam import FlatAdam
from shoal.agents.fast import heads, sac
from shoal.agents.fast.adam import Stepper
from shoal.agents.fast.passes import Pass
from shoal.agents.towers import Towers
from shoal.jit.digest import digest_of


def towers(count=2):
    torch.manual_seed(3)
    return Towers(count, [5, 16, 16, 3])


@pytest.mark.parametrize("max_norm", [math.inf, 0.1])
def test_a_step_is_the_plain_step_of_adam(max_norm):
    plain, fast = FlatAdam(towers()), FlatAdam(towers())
    parts = np.zeros((3, len(fast.flat)), np.float32)
    stepper = Stepper(fast, parts)
    for i in range(20):
        parts[:] = np.random.default_rng(i).normal(size=parts.shape)
        plain.grad.copy_(torch.from_numpy(parts.sum(0)))
        norm = plain.clip_grad(max_norm)
        plain.step(1e-2)
        assert stepper.step(1e-2, max_norm) == (pytest.approx(float(norm)) if max_norm < math.inf else 0.0)
    assert int(fast.num_updates) == 20
    torch.testing.assert_close(fast.flat, plain.flat, rtol=1e-5, atol=1e-6)


def test_a_gradient_that_is_not_finite_moves_nothing():
    adam = FlatAdam(towers())
    before, adam.grad[7] = adam.flat.clone(), math.inf
    assert not math.isfinite(Stepper(adam).step(1e-2, 1.0))
    assert torch.equal(adam.flat, before)
    assert int(adam.num_updates) == 0


def test_a_pass_and_its_way_back_are_those_of_autograd():
    network, x = towers(), torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    FlatAdam(network)  # gives every parameter a gradient
    slope = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(1))
    (network(x)[:, :4] * slope).sum().backward()
    wanted = [p.grad.clone() for p in network.parameters()]
    for p in network.parameters():
        p.grad.zero_()
    there = Pass(network, x, back_rows=4)
    torch.testing.assert_close(there.forward(), network(x).detach())
    there.descend(slope)
    for mine, other in zip((p.grad for p in network.parameters()), wanted, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("module", "name", "function"),
    [
        (sac, "LOG_STD_MAX", sac._squash.inner),
        (heads, "_FORBIDDEN", heads.DISCRETE.actor),
        (heads, "_FORBIDDEN", heads.DISCRETE.learner),
    ],
)
def test_a_changed_constant_is_other_code_for_the_cache(module, name, function, monkeypatch):
    before = digest_of(function)
    assert digest_of(function) == before
    monkeypatch.setattr(module, name, getattr(module, name) / 2)
    assert digest_of(function) != before
