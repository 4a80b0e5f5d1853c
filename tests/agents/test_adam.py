from __future__ import annotations

import torch
from torch import nn

from shoal.agents.adam import FlatAdam


def make_network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))


def test_it_is_adam():
    ours, theirs = make_network(), make_network()
    adam, peer = FlatAdam(ours), torch.optim.Adam(theirs.parameters(), lr=1e-2, eps=1e-5)
    for i in range(20):
        x = torch.randn(16, 3, generator=torch.Generator().manual_seed(i))
        for network in (ours, theirs):
            (network(x) ** 2).mean().backward()
        adam.clip_grad(0.1)
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.1)
        adam.step(1e-2)
        peer.step()
        peer.zero_grad()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


def test_the_network_lives_in_the_flat_vector():
    network = make_network()
    adam = FlatAdam(network)
    adam.flat.fill_(0.5)
    assert all((p == 0.5).all() for p in network.parameters())
