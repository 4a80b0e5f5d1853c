"""The tensor engine asked for successors of single states, without any cap, to compare it with the compiled one."""

from __future__ import annotations

import numpy as np
import torch

from shoal.worlds.kg.lanes.data.knowledge import KnowledgeBase
from shoal.worlds.kg.lanes.tensor.expand import Expander


@torch.no_grad()
def expand_states(
    kb: KnowledgeBase, states: list[np.ndarray], excluded: list[np.ndarray], max_atoms: int, chunk: int = 64
) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """For each state [k, 3] its distinct successors (one empty row for a proof) and all of them with repeats."""
    results: list[tuple[list[np.ndarray], list[np.ndarray]]] = []
    for begin in range(0, len(states), chunk):
        part = states[begin : begin + chunk]
        expander = Expander(kb, max_atoms, fact_cap=_largest(kb, part))
        state = torch.zeros(len(part), max_atoms, 3, dtype=torch.int64)
        for i, goals in enumerate(part):
            state[i, : len(goals)] = torch.from_numpy(goals)
        expanded = expander(state, torch.from_numpy(np.stack(excluded[begin : begin + chunk])).long())
        assert not expanded.dropped.any()
        for i in range(len(part)):
            rows = [
                row[:size].numpy()
                for row, size, valid in zip(expanded.rows[i], expanded.size[i].tolist(), expanded.valid[i], strict=True)
                if valid
            ]
            distinct = {row.tobytes(): row for row in rows}
            proofs = [row for row in rows if not len(row)]
            results.append((proofs[:1] or list(distinct.values()), rows))
    return results


def _largest(kb: KnowledgeBase, states: list[np.ndarray]) -> int:
    """Facts of the largest bucket that the selected goals of `states` need."""
    most, n = 1, kb.vocabulary.num_constants
    for goals in states:
        p, s, t = (int(x) for x in goals[0])
        first, second = (None if x > n else x for x in (s, t))
        if first is not None:
            second = None  # the engine looks at all facts of (p, s)
        most = max(most, len(kb.facts.match(p, first, second)) if p <= kb.vocabulary.num_regular else 0)
    return most
