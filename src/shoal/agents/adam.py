"""Adam over one flat vector: all parameters of a network lie side by side, so that a step is a few operations."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class FlatAdam:
    """Adam (Kingma & Ba 2015) for every trainable parameter of `network`.

    The parameters become views into `self.flat` and their gradients views into `self.grad`, in the order of
    `network.parameters()`; the network goes on working as before, on any device.
    """

    def __init__(self, network: nn.Module, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-5) -> None:
        self.flat = flatten_parameters(network)
        self.grad = torch.zeros_like(self.flat)
        self.first_moment = torch.zeros_like(self.flat)
        self.second_moment = torch.zeros_like(self.flat)
        self.num_updates = torch.zeros((), dtype=torch.int64)
        self.betas, self.eps = betas, eps
        for p, view in zip(_trainable(network), _views(self.grad, _trainable(network)), strict=True):
            p.grad = view

    def clip_grad(self, max_norm: float) -> Tensor:
        """Scale the gradient so that its norm is at most `max_norm`; returns the norm it had."""
        norm = torch.linalg.vector_norm(self.grad)
        self.grad.mul_(torch.clamp(max_norm / (norm + 1e-6), max=1.0))
        return norm

    def step(self, lr: float) -> None:
        """Move the parameters by one step along the gradient, and clear the gradient."""
        self.num_updates += 1
        (beta_1, beta_2), count = self.betas, int(self.num_updates)
        self.first_moment.lerp_(self.grad, 1 - beta_1)
        self.second_moment.mul_(beta_2).addcmul_(self.grad, self.grad, value=1 - beta_2)
        scale = (self.second_moment / (1 - beta_2**count)).sqrt_().add_(self.eps)
        self.flat.addcdiv_(self.first_moment, scale, value=-lr / (1 - beta_1**count))
        self.grad.zero_()

    def clipped_step(self, lr: float, max_norm: float) -> float:
        """`clip_grad` and `step`; returns the norm that the gradient had."""
        norm = float(self.clip_grad(max_norm))
        self.step(lr)
        return norm

    def tensors(self) -> dict[str, Tensor]:
        """The moments and the counter themselves (not copies), by name."""
        names = ("first_moment", "second_moment", "num_updates")
        return {name: getattr(self, name) for name in names}


def flatten_parameters(network: nn.Module) -> Tensor:
    """Put all trainable parameters into one vector, of which they become views; returns it."""
    parameters = _trainable(network)
    flat = torch.cat([p.data.flatten() for p in parameters])
    for p, view in zip(parameters, _views(flat, parameters), strict=True):
        p.data = view
    return flat


def _trainable(network: nn.Module) -> list[nn.Parameter]:
    return [p for p in network.parameters() if p.requires_grad]


def _views(flat: Tensor, parameters: list[nn.Parameter]) -> list[Tensor]:
    """Parts of `flat`, shaped like the parameters."""
    parts = flat.split([p.numel() for p in parameters])
    return [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]
