"""The tensor engine behind the same call as the compiled one, and expansions of single states for comparison."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from shoal.errors import ConfigError
from shoal.worlds.kg.engine.lanes import MAX_SKIPS, Lanes, Settings
from shoal.worlds.kg.knowledge import KnowledgeBase
from shoal.worlds.kg.tensor.choose import ActionLister, Listed
from shoal.worlds.kg.tensor.expand import Expander

MAX_BYTES = 4 << 30  # of candidates; beyond this a batch is refused instead of taking the machine down


class TensorFill:
    """Lists the actions of lanes with tensor operations on `device`."""

    def __init__(
        self, kb: KnowledgeBase, lanes: Lanes, settings: Settings, *, device: str = "cpu", fact_cap: int | None = None
    ) -> None:
        num_envs, max_atoms = lanes.state.shape[:2]
        expander = Expander(kb, max_atoms, fact_cap=fact_cap, bound_first=settings.bound_first)
        needed = num_envs * expander.num_candidates * (max_atoms - 1 + kb.rules.max_body) * 24
        if needed > MAX_BYTES:
            raise ConfigError(
                f"The tensor engine would need {needed / 2**30:.0f} GB for {expander.num_candidates} candidates of "
                f"{num_envs} lanes. Set fact_cap, use fewer lanes, or engine='compiled'."
            )
        self.device, self.dropped = torch.device(device), 0
        self._lister = ActionLister(expander, settings).to(self.device)
        self._codes = expander

    @torch.no_grad()
    def __call__(self, options: Settings, lanes: Lanes, which: np.ndarray) -> None:
        """Fill in the actions of the lanes in `which` [B] bool; forced moves may advance their state."""
        state, query = self._put(lanes.state), self._put(lanes.query)
        state = torch.where(self._put(lanes.idle)[:, None, None] > 0, 0, state)
        history, num_past, key = self._put(lanes.history), self._put(lanes.num_past), self._put(lanes.episode_key)
        skipped = torch.zeros_like(num_past)
        listed = self._lister(state, query, history, num_past, key)
        if options.skip_unary:
            moves = listed.only & self._put(which).bool()
            for _ in range(MAX_SKIPS):
                if not moves.any():
                    break
                state = torch.where(moves[:, None, None], listed.rows[:, 0], state)
                code = self._codes.fingerprint(state)
                slot = torch.arange(history.shape[1], device=self.device)
                history = torch.where((slot == num_past[:, None]) & moves[:, None], code[:, None], history)
                num_past, skipped = num_past + moves, skipped + moves
                listed = self._lister(state, query, history, num_past, key)
                moves = moves & listed.only
            listed = self._give_up(listed, state, moves)
        self._write(lanes, which, listed, state, history, num_past, skipped)

    def _give_up(self, listed: Listed, state: Tensor, stuck: Tensor) -> Listed:
        """Lanes that were moved too often have the single action False."""
        false = torch.full_like(listed.num_actions, self._lister.settings.false)
        rows, kept = self._lister.offer_end(listed.rows, listed.num_actions, stuck, false)
        one = torch.where(stuck, 1, listed.n_successors)
        return listed._replace(rows=rows, num_actions=kept, n_successors=one, n_cut=torch.where(stuck, 0, listed.n_cut))

    def _put(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self.device, torch.int64)

    def _write(
        self,
        lanes: Lanes,
        which: np.ndarray,
        listed: Listed,
        state: Tensor,
        history: Tensor,
        num_past: Tensor,
        skipped: Tensor,
    ) -> None:
        busy = which & ~lanes.idle
        for target, value, rows in (
            (lanes.successors, listed.rows, which),
            (lanes.num_actions, listed.num_actions, which),
            (lanes.n_successors, listed.n_successors, which),
            (lanes.n_cut, listed.n_cut, which),
            (lanes.n_skipped, skipped, which),
            (lanes.state, state, busy),
            (lanes.history, history, busy),
            (lanes.num_past, num_past, busy),
        ):
            target[rows] = value.cpu().numpy()[rows]
        self.dropped += int(listed.dropped.cpu().numpy()[busy].sum())


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
        found = expander(state, torch.from_numpy(np.stack(excluded[begin : begin + chunk])).long())
        assert not found.dropped.any()
        for i in range(len(part)):
            rows = [
                row[:size].numpy()
                for row, size, valid in zip(found.rows[i], found.size[i].tolist(), found.valid[i], strict=True)
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
