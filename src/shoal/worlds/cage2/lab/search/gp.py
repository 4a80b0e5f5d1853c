"""A Gaussian process over orders: BoTorch's, with a kernel that falls with the Kendall distance.

The Mallows kernel exp(-d / l), d the number of pairs that two orders rank differently, is positive definite (Jiao &
Vert 2015). An order is written as ten numbers, +1 or -1 for each pair of types; d is a quarter of the squared
distance of two such vectors. Under true-state compliance pairs that the rule never compares are 0, so that orders
with the same rule are the same point.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import missing_extra
from shoal.worlds.cage2.lanes.names import UNIT_TYPES
from shoal.worlds.cage2.lanes.workflow import Workflow, effective_rule

if TYPE_CHECKING:
    from gpytorch.kernels import Kernel

PAIRS = tuple(itertools.combinations(range(len(UNIT_TYPES)), 2))


def pair_features(orders: Sequence[Workflow], effective: bool) -> np.ndarray:
    """[N, 10]: +1 where the first of a pair comes first, -1 where the second does, 0 where it never matters."""
    return np.array([_features(order, effective) for order in orders], np.float64)


def _features(order: Workflow, effective: bool) -> list[float]:
    rule = effective_rule(order) if effective else order
    place = {kind: position for position, kind in enumerate(rule)}
    behind = len(order)  # types that the rule leaves out come after all others, and are not compared with each other
    if effective:
        place = {kind: place.get(kind, behind) for kind in range(len(order)) if UNIT_TYPES[kind] != "defender"}
    return [float(np.sign(place[b] - place[a])) if a in place and b in place else 0.0 for a, b in PAIRS]


def predict(
    orders: Sequence[Workflow], values: Sequence[float], at: Sequence[Workflow], effective: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Fit to the values of `orders`; returns mean and standard deviation [N] of the value of the orders `at`."""
    try:
        import torch
        from botorch.exceptions import BotorchWarning
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Standardize
        from gpytorch.kernels import ScaleKernel
        from gpytorch.mlls import ExactMarginalLogLikelihood
        from linear_operator.utils.warnings import NumericalWarning
    except ImportError:
        raise missing_extra("botorch", "search", "The Gaussian process over orders") from None

    x = torch.from_numpy(pair_features(orders, effective))
    y = torch.tensor(values, dtype=torch.float64).unsqueeze(-1)
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore", BotorchWarning)  # that ten features are not scaled to the unit cube is meant
        warnings.simplefilter("ignore", NumericalWarning)  # where an order was tried, hardly any variance is left
        torch.manual_seed(0)
        model = SingleTaskGP(x, y, covar_module=ScaleKernel(_kendall_kernel()), outcome_transform=Standardize(1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        with torch.no_grad():
            posterior = model.posterior(torch.from_numpy(pair_features(at, effective)))
            return posterior.mean.squeeze(-1).numpy(), posterior.variance.squeeze(-1).sqrt().numpy()


def _kendall_kernel() -> Kernel:
    """exp(-d / l) with d the number of pairs ranked differently; l is fitted, most of the ten pairs a priori."""
    import torch
    from gpytorch.kernels import Kernel
    from gpytorch.priors import LogNormalPrior

    class KendallKernel(Kernel):
        has_lengthscale = True

        def forward(self, x1: torch.Tensor, x2: torch.Tensor, diag: bool = False, **params: object) -> torch.Tensor:
            pairs = self.covar_dist(x1, x2, square_dist=True, diag=diag, **params) / 4
            scale = self.lengthscale.squeeze(-1) if diag else self.lengthscale
            return torch.exp(-pairs / scale)

    kernel = KendallKernel(lengthscale_prior=LogNormalPrior(2.0, 0.5))  # with few picks a flat prior sees only islands
    kernel.lengthscale = 7.0
    return kernel
