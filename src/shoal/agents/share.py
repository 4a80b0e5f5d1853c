"""Acting in some of the lanes of a run as one process would act in all of them, bit for bit.

Two things could differ. Random numbers: whoever acts in a share draws for all lanes of the run and keeps its own rows.
And rounding: matrix products may add in another order for another number of rows, so a network is given more rows than
there are lanes where that is needed (`Share.agreeing_with`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shoal.trees import Tree, index_tree

_BLOCK = 16
"""Rows that the matrix products in use treat alike; a multiple of them is tried before the rows of the whole run."""


@dataclass(frozen=True)
class Share:
    """`count` of the `total` lanes of a run, beginning with lane `first`."""

    first: int
    count: int
    total: int
    rows: int = 0
    """Rows that a network is given: repetitions around the lanes here; 0 for these lanes alone."""

    @property
    def lanes(self) -> slice:
        """Its lanes among those of the run."""
        return slice(self.first, self.first + self.count)

    def forward(self, network: Callable[..., Any], *inputs: Tree) -> Any:
        """`network(*inputs)` for inputs [count, ...] (or None) and outputs alike."""
        if not self.rows:
            return network(*inputs)
        before = self.first if self.rows == self.total else 0
        around = torch.from_numpy((np.arange(self.rows) - before) % self.count)
        outputs = network(*(None if tree is None else index_tree(tree, around) for tree in inputs))
        mine = slice(before, before + self.count)
        if isinstance(outputs, tuple):
            return tuple(None if output is None else output[mine] for output in outputs)
        return outputs[mine]

    def draw(self, count: int, draw: Callable[[int], Tensor]) -> Tensor:
        """Random numbers [count, ...] for its lanes: their rows of `draw(total)`."""
        assert count == self.count
        return draw(self.total)[self.lanes]

    def agreeing_with(self, act: Callable[[Share | None, Tree], tuple[Tensor, ...]], obs: Tree) -> Share:
        """This share with as few rows as give the numbers of one process, as far as `obs` [total, ...] show.

        `act(share, obs)` acts in a share, or for None in all lanes.
        """
        everyone = act(None, obs)
        for rows in (0, -(-self.count // _BLOCK) * _BLOCK):
            share = replace(self, rows=rows)
            mine = act(share, index_tree(obs, self.lanes))
            if all(torch.equal(part, whole[self.lanes]) for part, whole in zip(mine, everyone, strict=True)):
                return share
        return replace(self, rows=self.total)


def draw_rows(share: Share | None, count: int, draw: Callable[[int], Tensor]) -> Tensor:
    """Random numbers [count, ...] from `draw(count)`; in a share they are its rows of what is drawn for all lanes."""
    return draw(count) if share is None else share.draw(count, draw)


def forward_rows(share: Share | None, network: Callable[..., Any], *inputs: Tree) -> Any:
    """`network(*inputs)`, with the numbers that it gives for all lanes of the run."""
    return network(*inputs) if share is None else share.forward(network, *inputs)
