"""The first weights of an agent's networks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def own_weights(generator: torch.Generator) -> Iterator[None]:
    """Weights that are made here come from `generator`, and torch's own generator stays as it was.

    They are made on one thread: orthogonal ones of 64 columns and more would differ with the number of threads.
    """
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
