"""Whole sequences through a cell at once: the numbers and gradients of stepping it."""

import pytest
import torch
from torch import nn

from shoal.agents.unrolled import unroll

T, N, F, H = 9, 3, 4, 5


def stepped(cell, features, state, done):
    """The definition: one step after the other."""
    outputs = []
    for t in range(len(features)):
        if isinstance(cell, nn.LSTMCell):
            hidden, memory = cell(features[t], state.chunk(2, -1))
            state = torch.cat([hidden, memory], -1)
        else:
            hidden = state = cell(features[t], state)
        outputs.append(hidden)
        state = state * (~done[t]).unsqueeze(-1)
    return torch.stack(outputs)


@pytest.mark.parametrize("kind", [nn.GRUCell, nn.LSTMCell])
@pytest.mark.parametrize("ends", ["none", "one", "some", "all"])
def test_gradients_are_those_of_autograd(kind, ends):
    torch.manual_seed(1)
    cell = kind(F, H).double()
    features = torch.randn(T, N, F, dtype=torch.float64, requires_grad=True)
    state = torch.randn(N, H * (2 if kind is nn.LSTMCell else 1), dtype=torch.float64, requires_grad=True)
    done = torch.rand(T, N) < {"none": 0.0, "one": 0.0, "some": 0.3, "all": 1.0}[ends]
    done[4, 1] |= ends == "one"  # so few that torch's LSTM is taken
    weights = torch.randn(T, N, H, dtype=torch.float64)
    inputs = [features, state, *cell.parameters()]
    expected, hidden = stepped(cell, features, state, done), unroll(cell, features, state, done)
    torch.testing.assert_close(hidden, expected)
    wanted = torch.autograd.grad((expected * weights).sum(), inputs)
    for ours, theirs in zip(torch.autograd.grad((hidden * weights).sum(), inputs), wanted, strict=True):
        torch.testing.assert_close(ours, theirs)
