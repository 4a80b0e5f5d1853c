"""The mixture that acts: proper, exact, and without gradient where an offer was forced."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from shoal.worlds.dvrp.lab.network import FORBIDDEN, EpsilonMixture  # noqa: E402


@given(seed=st.integers(0, 1000), epsilon=st.floats(0, 0.9))
def test_the_mixture_is_what_was_specified(seed, epsilon):
    rng = np.random.default_rng(seed)
    logits = torch.as_tensor(rng.normal(size=(6, 16)))
    mask = torch.as_tensor(rng.random((6, 16)) < 0.5)
    mask[:, 12] = True
    mask[0] = True
    found = EpsilonMixture(epsilon).log_probs(logits, mask).exp()
    policy = (logits.exp() * mask) / (logits.exp() * mask).sum(1, keepdim=True)
    rest = (~mask).sum(1, keepdim=True)
    expected = torch.where(rest > 0, (1 - epsilon) * policy + epsilon * ~mask / rest.clamp(min=1), policy)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-9)
    torch.testing.assert_close(found.sum(1), torch.ones(6, dtype=found.dtype))


def test_offers_held_back_by_the_network_count_as_masked():
    logits = torch.zeros(1, 4)
    logits[0, 1:3] = FORBIDDEN
    held_back = EpsilonMixture(0.2).log_probs(logits, None)
    masked = EpsilonMixture(0.2).log_probs(torch.zeros(1, 4), torch.tensor([[True, False, False, True]]))
    torch.testing.assert_close(held_back, masked)
    assert EpsilonMixture(0.0).log_probs(logits, None)[0, 1] == FORBIDDEN


def test_a_forced_offer_has_no_gradient():
    logits = torch.randn(1, 16, requires_grad=True)
    mask = torch.zeros(1, 16, dtype=torch.bool)
    mask[0, 12:] = True
    EpsilonMixture(0.2).log_probs(logits, mask)[0, 3].backward()
    assert not logits.grad.any()
