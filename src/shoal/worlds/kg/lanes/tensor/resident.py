"""Lanes on the device of the tensor engine.

A batch hands out NumPy arrays, so the host has every lane too. What crosses in a step are the actions and, back, what
the observation shows; states, histories and successors stay on the device. Lanes that begin anew are sent as rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from shoal.agents.checks import check_device
from shoal.errors import ConfigError
from shoal.worlds.kg.lanes.data.knowledge import KnowledgeBase
from shoal.worlds.kg.lanes.engine.tables import MAX_SKIPS, Lanes, Settings
from shoal.worlds.kg.lanes.tensor.expand import Expander
from shoal.worlds.kg.lanes.tensor.fill import ActionLister, Listed

MAX_BYTES = 4 << 30  # of candidates; beyond this a batch is refused instead of taking the machine down


class Resident(NamedTuple):
    """What the engine reads of B lanes, as int64 tensors on its device; see `Lanes`."""

    state: Tensor  # [B, A, 3]
    query: Tensor  # [B, 3]
    history: Tensor  # [B, H]
    num_past: Tensor  # [B]
    episode_key: Tensor  # [B]


class TensorFill:
    """Lists the actions of lanes with tensor operations on `device`, where it keeps them."""

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
        self.device, self.dropped = check_device(device, "engine_device"), 0
        self.settings, self._lister = settings, ActionLister(expander, settings).to(self.device)
        self.load(lanes)

    # ------------------------------------------------------------------ what happens to lanes

    def load(self, lanes: Lanes) -> None:
        """Take over all lanes: at the beginning, and when a state is restored."""
        self.on_device = Resident(*(self._put(getattr(lanes, name)) for name in Resident._fields))
        self.successors = self._put(lanes.successors)  # [B, S, A, 3]

    def load_rows(self, lanes: Lanes, rows: np.ndarray) -> None:
        """Take over some lanes [k], all but their successors: those that begin anew, or are set by a search."""
        at = self._put(rows)
        for name, ours in self.on_device._asdict().items():
            ours[at] = self._put(getattr(lanes, name)[rows])

    def load_successors(self, lanes: Lanes, rows: np.ndarray) -> None:
        """Take over the actions of some lanes [k] that the host has chosen among."""
        self.successors[self._put(rows)] = self._put(lanes.successors[rows])

    @torch.no_grad()
    def advance(self, action: np.ndarray, moved: np.ndarray) -> None:
        """The lanes in `moved` [B] bool take their actions [B], as `engine.episode.advance` has it for the host."""
        moves = self._put(moved).bool()
        self.on_device = advanced(self._lister, self.on_device, self.successors, self._put(action), moves)

    # ------------------------------------------------------------------ listing

    @torch.no_grad()
    def __call__(self, options: Settings, lanes: Lanes, which: np.ndarray) -> None:
        """Fill in the actions of the lanes in `which` [B] bool; forced moves may advance their state."""
        idle, meant = self._put(lanes.idle).bool(), self._put(which).bool()
        on = self.on_device._replace(state=torch.where(idle[:, None, None], 0, self.on_device.state))
        listed, skipped = self._lister(*on), torch.zeros_like(on.num_past)
        if options.skip_unary:
            on, listed, skipped = self._skip(on, listed, listed.only & meant)
            busy = meant & ~idle
            self.on_device = Resident(*(_where(busy, new, old) for new, old in zip(on, self.on_device, strict=True)))
        self.successors = _where(meant, listed.rows, self.successors)
        self._write(lanes, which, listed, skipped)

    def _skip(self, on: Resident, listed: Listed, moves: Tensor) -> tuple[Resident, Listed, Tensor]:
        """Repeat the forced moves of lanes `moves` [B]; those that never end give up."""
        skipped, first = torch.zeros_like(on.num_past), torch.zeros_like(on.num_past)
        for _ in range(MAX_SKIPS):
            if not moves.any():
                break
            on = advanced(self._lister, on, listed.rows, first, moves)
            skipped, listed = skipped + moves, self._lister(*on)
            moves = moves & listed.only
        return on, self._give_up(listed, moves), skipped

    def _give_up(self, listed: Listed, stuck: Tensor) -> Listed:
        """Lanes that were moved too often have the single action False."""
        false = torch.full_like(listed.num_actions, self.settings.false)
        rows, kept = self._lister.offer_end(listed.rows, listed.num_actions, stuck, false)
        one = torch.where(stuck, 1, listed.n_successors)
        return listed._replace(rows=rows, num_actions=kept, n_successors=one, n_cut=torch.where(stuck, 0, listed.n_cut))

    def _put(self, array: np.ndarray) -> Tensor:
        """On the device as int64, never sharing memory with the host's array."""
        return torch.from_numpy(array).to(self.device, torch.int64, copy=True)

    def _write(self, lanes: Lanes, which: np.ndarray, listed: Listed, skipped: Tensor) -> None:
        """Tell the host what the observation shows, and where forced moves have led."""
        busy = which & ~lanes.idle
        shown = [
            (lanes.successors, listed.rows, which),
            (lanes.num_actions, listed.num_actions, which),
            (lanes.n_successors, listed.n_successors, which),
            (lanes.n_cut, listed.n_cut, which),
            (lanes.n_skipped, skipped, which),
        ]
        if self.settings.skip_unary:
            on = self.on_device
            shown += [(lanes.state, on.state, busy), (lanes.history, on.history, busy)]
            shown += [(lanes.num_past, on.num_past, busy)]
        for target, value, rows in shown:
            target[rows] = value.cpu().numpy()[rows]
        self.dropped += int(listed.dropped.cpu().numpy()[busy].sum())


def advanced(lister: ActionLister, on: Resident, successors: Tensor, action: Tensor, moves: Tensor) -> Resident:
    """Lanes after those in `moves` [B] bool took the successors [B, S, A, 3] that `action` [B] names."""
    lane = torch.arange(len(action), device=action.device)
    state = _where(moves, lister.close_twins(successors[lane, action]), on.state)
    slot = torch.arange(on.history.shape[1], device=action.device)
    code = lister.expander.fingerprint(state)
    history = torch.where((slot == on.num_past[:, None]) & moves[:, None], code[:, None], on.history)
    return on._replace(state=state, history=history, num_past=on.num_past + moves)


def _where(which: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """Rows of `new` [B, ...] for the lanes in `which` [B], of `old` for the others."""
    return torch.where(which.reshape(-1, *[1] * (new.ndim - 1)), new, old)
