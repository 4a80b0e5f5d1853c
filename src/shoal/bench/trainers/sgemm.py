"""Nothing but the matrix products of a PPO iteration, by torch's sgemm: the limit that a trainer approaches."""

from __future__ import annotations

import torch

from shoal.bench.trainers import Trainer, Work

SIZES = (4, 64), (64, 64), (64, 2), (4, 64), (64, 64), (64, 1)  # of the actor, then of the critic


def start(work: Work) -> Trainer:
    """Products of the same shapes as in acting (one step of all lanes) and in learning (one minibatch)."""
    acting = [_Layer(work.num_envs, *size) for size in SIZES]
    learning = [_Layer(work.batch_size // work.minibatches, *size) for size in SIZES]

    def iterate(iterations: int) -> None:
        for _ in range(iterations):
            for _ in range(work.num_steps):
                for layer in acting:
                    layer.forward()
            for _ in range(work.epochs * work.minibatches):
                for layer in learning:
                    layer.forward()
                for layer in learning:
                    layer.backward()

    return Trainer(iterate, lambda: 0.0)


class _Layer:
    """A linear layer of `rows` samples on preallocated buffers."""

    def __init__(self, rows: int, inputs: int, outputs: int) -> None:
        self.x, self.weight = torch.randn(rows, inputs), torch.randn(inputs, outputs)
        self.z, self.grad, self.below = torch.zeros(rows, outputs), *map(torch.zeros_like, (self.weight, self.x))
        self.is_first = inputs == SIZES[0][0]

    def forward(self) -> None:
        torch.mm(self.x, self.weight, out=self.z)

    def backward(self) -> None:
        torch.mm(self.x.T, self.z, out=self.grad)
        if not self.is_first:
            torch.mm(self.z, self.weight.T, out=self.below)
