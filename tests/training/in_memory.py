"""Runs that are kept in memory, and what every loop must do with them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from shoal.training.loop import Loop


class Memory:
    """A run that is kept in memory."""

    def __init__(self):
        self.rows, self.checkpoints, self.returns = [], [], []

    def log(self, step, metrics):
        self.rows.append({"step": step, **{k: v for k, v in metrics.items() if not k.startswith("time/")}})

    def episodes(self, step, returns, lengths):
        self.returns += returns

    def checkpoint(self, step, tensors, meta, score=None):
        self.checkpoints.append((tensors, meta, score))

    def say(self, sentence):
        pass


def assert_resumes_exactly(make_loop: Callable[[], Loop]) -> None:
    """A run that goes on from its first checkpoint ends with the weights and metrics of one that never stopped."""
    whole = make_loop()
    whole.train()
    tensors, meta, _ = whole.run.checkpoints[0]
    assert 0 < meta["step"] < whole.step

    rest = make_loop()
    rest.restore(tensors, meta)
    rest.train()

    ours, theirs = rest.agent.state_dict(), whole.agent.state_dict()
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert torch.equal(ours[name], tensor), name
    assert rest.run.rows == [row for row in whole.run.rows if row["step"] > meta["step"]]
