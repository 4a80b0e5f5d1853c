"""From candidates to actions for B lanes, in the same order as `engine.actions`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from shoal.worlds.kg.lanes.engine.actions import scramble
from shoal.worlds.kg.lanes.engine.tables import CUT_RANDOM, Settings
from shoal.worlds.kg.lanes.tensor.expand import Expander, compact

_LAST = 2**63 - 1  # a fingerprint that sorts behind all others


class Listed(NamedTuple):
    """Actions of B lanes."""

    rows: Tensor  # [B, S, A, 3]
    num_actions: Tensor  # [B]
    n_successors: Tensor  # [B] before any were cut
    n_cut: Tensor  # [B]
    only: Tensor  # [B] bool: there is exactly one successor, and it is no end of a proof
    dropped: Tensor  # [B] facts beyond the cap


class ActionLister(nn.Module):
    """One pass of pruning, cutting and adding for all lanes. Forced moves are the caller's to repeat."""

    def __init__(self, expander: Expander, settings: Settings) -> None:
        super().__init__()
        self.expander, self.settings = expander, settings

    def forward(self, state: Tensor, query: Tensor, history: Tensor, num_past: Tensor, episode_key: Tensor) -> Listed:
        """State [B, A, 3], query [B, 3], history [B, H] fingerprints of which [:num_past] count, key [B]."""
        opt, A = self.settings, self.expander.max_atoms
        candidates = self.expander(state, query)
        proved = (candidates.valid & (candidates.size == 0)).any(1)
        rows = candidates.rows[:, :, :A]
        code = self.expander.fingerprint(rows)
        keep = candidates.valid & (candidates.size <= A)
        if opt.memory:
            past = torch.arange(history.shape[1], device=state.device) < num_past[:, None]
            keep = keep & ~((code[:, :, None] == history[:, None]) & past[:, None]).any(-1)
        keep = keep & first_of_equals(torch.where(keep, code, _LAST))
        count = keep.sum(1)
        finished = self.is_end(state)
        open_ended = ~proved & (count > 0) & ~finished
        taken = self.cut(keep, code, episode_key)
        rows, kept = self.take(rows, taken), taken.sum(1)
        rows, kept = self.add_extra(rows, kept, state)
        true = torch.where(finished, state[:, 0, 0] == opt.true, proved)
        rows, kept = self.offer_end(rows, kept, ~open_ended, torch.where(true, opt.true, opt.false))
        return Listed(
            rows,
            kept,
            torch.where(open_ended, count, 1),
            torch.where(open_ended, count - taken.sum(1), 0),
            open_ended & (count == 1),
            torch.where(finished, 0, candidates.dropped),
        )

    def is_end(self, state: Tensor) -> Tensor:
        """Lanes [B] whose state is not a list of goals."""
        return (state[:, 0, 0] > self.expander.num_regular) | (state[:, 0, 0] == 0)

    def close_twins(self, state: Tensor) -> Tensor:
        """States [B, A, 3] as lanes enter them: a `_kge` twin in front counts as proved, the other goals move up."""
        moved = torch.cat([state[:, 1:], torch.zeros_like(state[:, :1])], 1)
        empty = (moved[:, 0, 0] == 0)[:, None, None]
        moved = torch.where(empty, terminal(state, torch.full_like(state[:, 0, 0], self.settings.true)), moved)
        return torch.where((state[:, 0, 0] > self.settings.end_true)[:, None, None], moved, state)

    def cut(self, keep: Tensor, code: Tensor, episode_key: Tensor) -> Tensor:
        """The successors [B, K] bool that are offered: at most as many as there is room for."""
        room = self.settings.room
        if self.settings.cut != CUT_RANDOM:
            return keep & (keep.cumsum(1) <= room)
        place = torch.where(keep, scramble.py_func(episode_key[:, None] ^ code), _LAST)
        rank = place.argsort(dim=1, stable=True).argsort(1)
        return keep & (rank < room)

    def take(self, rows: Tensor, taken: Tensor) -> Tensor:
        """The taken rows [B, S, A, 3] of rows [B, K, A, 3], moved to the front."""
        S, K = self.settings.max_states, rows.shape[1]
        flat = compact(rows.flatten(2), taken)
        flat = flat[:, :S] if K >= S else nn.functional.pad(flat, (0, 0, 0, S - K))
        return flat.unflatten(2, rows.shape[2:])

    def add_extra(self, rows: Tensor, kept: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Append the actions that are not resolution."""
        opt = self.settings
        if opt.kge_action:
            goal, rest = self.expander.select(state)
            ground = (goal[:, 1:] <= self.expander.num_constants).all(1)
            twin = torch.cat([goal[:, :1] + opt.twin_shift, goal[:, 1:]], 1)
            rows, kept = append(rows, kept, torch.cat([twin[:, None], rest], 1), ground)
        for wanted, predicate in ((opt.end_action, opt.end), (opt.end_true_action, opt.end_true)):
            if wanted:
                everyone = torch.ones_like(kept, dtype=torch.bool)
                rows, kept = append(rows, kept, terminal(state, torch.full_like(kept, predicate)), everyone)
        return rows, kept

    def offer_end(self, rows: Tensor, kept: Tensor, which: Tensor, predicate: Tensor) -> tuple[Tensor, Tensor]:
        """Replace the actions of lanes `which` [B] by one end of a proof."""
        single = nn.functional.pad(terminal(rows[:, 0], predicate)[:, None], (0, 0, 0, 0, 0, rows.shape[1] - 1))
        return torch.where(which[:, None, None, None], single, rows), torch.where(which, 1, kept)


def first_of_equals(code: Tensor) -> Tensor:
    """[B, K] bool: no earlier entry of the row has the same code."""
    ordered, order = torch.sort(code, dim=1, stable=True)
    fresh = torch.cat([torch.ones_like(ordered[:, :1], dtype=torch.bool), ordered[:, 1:] != ordered[:, :-1]], 1)
    return fresh.gather(1, order.argsort(1))


def append(rows: Tensor, kept: Tensor, row: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
    """Put `row` [B, A, 3] behind the `kept` [B] rows of the lanes `which` [B]."""
    slot = torch.arange(rows.shape[1], device=rows.device)
    at = (slot == kept[:, None]) & which[:, None]
    return torch.where(at[..., None, None], row[:, None], rows), kept + which


def terminal(like: Tensor, predicate: Tensor) -> Tensor:
    """States [B, A, 3] of one end of a proof each."""
    state = torch.zeros_like(like)
    state[:, 0, 0] = predicate
    return state
