"""The embedding model: customer -> probabilities of the four flexibility types, fitted to answers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from shoal.worlds.dvrp.lab.embedding.records import NUM_TYPES, fitting_types

EXPLAINED_BY_ALL = 0.5  # weight taken off records that every type explains: they say nothing
BALANCE = 0.4  # weight of the regulariser
STEPS_PER_PASS = 4
_TINY = 1e-9


class TypeModel(nn.Module):
    """An embedding per customer and a small network on top of it."""

    def __init__(self, num_customers: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_customers, 64)
        self.layers = nn.Sequential(
            nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, NUM_TYPES)
        )
        if generator is not None:
            with torch.no_grad():
                for parameter in self.parameters():
                    bound = parameter.shape[-1] ** -0.5
                    parameter.uniform_(-bound, bound, generator=generator)
                self.embedding.weight.normal_(generator=generator)

    def forward(self) -> Tensor:
        """[K, 4] probabilities of the types of all customers."""
        return self.layers(self.embedding.weight).softmax(-1)


class Fit(NamedTuple):
    """What a round of fitting did."""

    first_loss: float
    last_loss: float
    probabilities: np.ndarray  # [K, 4]


def loss_of(model: TypeModel, counts: Tensor, fits: Tensor) -> Tensor:
    """The likelihood of the answers under a soft assignment of types, plus a penalty on uneven embeddings.

    The responsibilities are held fixed, as in expectation maximisation; records that all types explain weigh half.

    Args:
        counts: [K, C] how often each customer gave each kind of answer.
        fits: [C, 4] whether a type explains that kind of answer.
    """
    probability = model()  # [K, 4]
    with torch.no_grad():
        share = probability[:, None] * fits  # [K, C, 4]
        share = share / share.sum(-1, keepdim=True).clamp(min=_TINY)
        informative = counts * (1 - EXPLAINED_BY_ALL * fits.all(-1).float())
        weight = (informative[..., None] * share).sum(1)  # [K, 4]
    log_likelihood = (weight * probability.clamp(min=_TINY).log()).sum()
    variance = model.embedding.weight.var(0)
    balance = ((variance / variance.mean() - 1) ** 2).mean()
    return -log_likelihood / counts.sum() + BALANCE * balance


def fit(model: TypeModel, optimizer: torch.optim.Optimizer, counts: np.ndarray, passes: int, use_purpose: bool) -> Fit:
    """Fit to counts [K, 3, 16, 2] as `Records.counts` gives them.

    A pass over the records is `STEPS_PER_PASS` steps of the full gradient, which the counts give exactly and without
    the noise for which minibatches would need many more.
    """
    kinds, which = np.unique(fitting_types(use_purpose).reshape(-1, NUM_TYPES), axis=0, return_inverse=True)
    grouped = np.zeros((len(counts), len(kinds)), np.float32)  # answers that the same types explain count as one
    np.add.at(grouped.T, which, counts.reshape(len(counts), -1).T)
    flat, fits = torch.as_tensor(grouped), torch.as_tensor(kinds)
    losses = []
    for _ in range(passes * STEPS_PER_PASS):
        loss = loss_of(model, flat, fits)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    with torch.no_grad():
        return Fit(float(losses[0]), float(losses[-1]), model().numpy())
