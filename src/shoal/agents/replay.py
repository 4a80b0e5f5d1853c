"""Replay memories: a ring of transitions, drawn evenly or by priority.

A transition is one row of float32: obs, action, reward, discount, next_obs and, where actions are masked, the masks of
next_obs and obs. One row is one gather. Rows are numbered from 0 as they come; row i lies at place i modulo the places
there are. There may be more places than `capacity`: what lies in the spare ones can be drawn again after going back to
an earlier state, which is how a run resumes exactly without copying its memory into every checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from shoal.errors import ConfigError
from shoal.jit import entry

Allocate = Callable[[tuple[int, int]], np.ndarray]
"""From a shape to float32 memory of that shape, e.g. a mapped file."""


class Columns(NamedTuple):
    """Which columns of a row hold what."""

    obs: slice
    action: slice
    obs_action: slice  # both, side by side: what a critic reads
    reward: int
    discount: int
    next_obs: slice
    next_mask: slice
    mask: slice
    width: int


def columns(obs: int, action: int, next_mask: int = 0, mask: int = 0) -> Columns:
    """The layout for observations, actions and masks of these widths."""
    reward = obs + action
    after = reward + 2 + obs
    masks = after + next_mask
    return Columns(
        slice(0, obs),
        slice(obs, reward),
        slice(0, reward),
        reward,
        reward + 1,
        slice(reward + 2, after),
        slice(after, masks),
        slice(masks, masks + mask),
        masks + mask,
    )


def check_room(capacity: int, spare: int, each: int, free: int, where: str) -> None:
    """`ConfigError` with what would fit, unless `capacity + spare` transitions of `each` bytes fit into `free` ones."""
    needed, fits = (capacity + spare) * each, free * 9 // 10 // each - spare
    if needed <= free:
        return
    of = f"{each:,} bytes each" + (f", and {spare:,} more to resume exactly" if spare else "")
    remedy = f"Set replay_capacity to {fits:,} or less." if fits > 0 else "Make room, or use PPO, which has no memory."
    if fits <= 0 and spare > capacity:
        remedy = "Lower checkpoint_every: what is added between two checkpoints needs places of its own."
    raise ConfigError(
        f"replay_capacity={capacity:,} transitions ({of}) need {needed / 1e9:,.1f} GB, but {where} has "
        f"{free / 1e9:,.1f} GB. {remedy}"
    )


class Drawn(NamedTuple):
    """Which rows were drawn for an update, and what each counts."""

    numbers: np.ndarray  # [N] row numbers
    weights: Tensor | None  # [N] corrections for drawing by priority; None where rows are drawn evenly


class Replay:
    """The last `capacity` rows, drawn evenly."""

    def __init__(self, capacity: int, width: int) -> None:
        self.capacity, self.width = capacity, width
        self.total = self.first = 0  # rows ever added; the first one that still counts
        self._rows: np.ndarray | None = None
        self.outside = False  # whether the rows lie in memory that outlives the process

    @property
    def rows(self) -> np.ndarray:
        """[places, width]; made when they are first needed, since they may be large and belong elsewhere."""
        if self._rows is None:
            self._rows = np.zeros((self.capacity, self.width), np.float32)
        return self._rows

    @property
    def count(self) -> int:
        """Rows that can be drawn."""
        return self.total - self.first

    def keep_in(self, allocate: Allocate, spare: int) -> None:
        """Use memory from `allocate`, with `spare` more places than the capacity. Before the first row is added."""
        self._rows = allocate((self.capacity + spare, self.width))
        self.outside = True

    def add(self, rows: np.ndarray) -> np.ndarray:
        """Add rows [N, width]; returns their numbers [N]."""
        numbers = np.arange(self.total, self.total + len(rows))
        self.rows[numbers % len(self.rows)] = rows
        self.total += len(rows)
        self.first = max(self.first, self.total - self.capacity)
        return numbers

    def clear(self) -> None:
        """Forget all rows."""
        self.forget_before(self.total)

    def forget_before(self, number: int) -> None:
        """Forget the rows before this one."""
        self.first = max(self.first, number)

    def draw(self, count: int, generator: torch.Generator, correction: float = 1.0) -> Drawn:
        """`count` rows, each drawn evenly from all."""
        drawn = torch.randint(self.first, self.total, (count,), generator=generator)
        return Drawn(drawn.numpy(), None)

    def read(self, numbers: np.ndarray, out: Tensor) -> Tensor:
        """Rows [N, width] of these numbers, into `out`."""
        places = torch.from_numpy(numbers % len(self.rows))
        return torch.index_select(torch.from_numpy(self.rows), 0, places, out=out)

    def update_priorities(self, numbers: np.ndarray, errors: np.ndarray) -> None:
        """Errors [N] of rows that were drawn: they change nothing here."""

    def tensors(self) -> dict[str, Tensor]:
        """What must be saved: the counters, and the rows themselves unless they lie outside."""
        counters = {"counters": torch.tensor([self.total, self.first])}
        if isinstance(self.rows, np.memmap):
            self.rows.flush()
        return counters if self.outside else {**counters, "rows": torch.from_numpy(self.window())}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Go back to what `tensors` returned."""
        self.total, self.first = tensors["counters"].tolist()
        if "rows" in tensors and not self.outside:
            self.rows[self._numbers() % len(self.rows)] = tensors["rows"].numpy()

    def _numbers(self) -> np.ndarray:
        return np.arange(self.first, self.total)

    def window(self) -> np.ndarray:
        """All rows that can be drawn, oldest first, [count, width]; a copy."""
        return self.rows[self._numbers() % len(self.rows)]


class PrioritisedReplay(Replay):
    """Rows drawn in proportion to (their last error + a little) ** exponent (Schaul et al. 2016).

    New rows have the highest priority so far, so that each is likely to be seen once. Row i has slot i modulo capacity
    in the tree.
    """

    MARGIN = 1e-6

    def __init__(self, capacity: int, width: int, exponent: float) -> None:
        super().__init__(capacity, width)
        self.exponent = exponent
        self.tree = empty_tree(capacity)
        self.highest = 1.0

    def add(self, rows: np.ndarray) -> np.ndarray:
        numbers = super().add(rows)
        kept = numbers[numbers >= self.first]
        set_priorities(self.tree, kept % self.capacity, np.full(len(kept), self.highest))
        return numbers

    def forget_before(self, number: int) -> None:
        forgotten = np.arange(self.first, max(self.first, number))
        super().forget_before(number)
        set_priorities(self.tree, forgotten % self.capacity, np.zeros(len(forgotten)))

    def draw(self, count: int, generator: torch.Generator, correction: float = 1.0) -> Drawn:
        """One row from each of `count` equal parts of the sum of priorities, and its weight relative to the largest."""
        uniforms = torch.rand(count, generator=generator, dtype=torch.float64).numpy()
        total = self.tree[1]
        slots = np.empty(count, np.int64)
        find(self.tree, (np.arange(count) + uniforms) * (total / count), slots)
        chance = self.tree[len(self.tree) // 2 + slots] / total
        weights = (chance * self.count) ** -correction
        numbers = self.total - 1 - (self.total - 1 - slots) % self.capacity
        return Drawn(numbers, torch.from_numpy((weights / weights.max()).astype(np.float32)))

    def update_priorities(self, numbers: np.ndarray, errors: np.ndarray) -> None:
        """Set the priorities of rows that were drawn from their new errors [N]."""
        priorities = (np.abs(errors.astype(np.float64)) + self.MARGIN) ** self.exponent
        self.highest = max(self.highest, float(priorities.max()))
        set_priorities(self.tree, numbers % self.capacity, priorities)

    def tensors(self) -> dict[str, Tensor]:
        leaves = self.tree[len(self.tree) // 2 + self._numbers() % self.capacity]
        return {
            **super().tensors(),
            "priorities": torch.from_numpy(leaves),
            "highest": torch.tensor(self.highest, dtype=torch.float64),
        }

    def load(self, tensors: dict[str, Tensor]) -> None:
        super().load(tensors)
        self.tree[:] = 0.0
        self.tree[len(self.tree) // 2 + self._numbers() % self.capacity] = tensors["priorities"].numpy()
        rebuild(self.tree)
        self.highest = float(tensors["highest"])


# ---------------------------------------------------------------------- the tree of priorities
#
# A binary tree of sums, for drawing in proportion to priorities and changing them in log time: `tree` is [2 * leaves],
# leaf i is at leaves + i, the parent of k is k // 2, and tree[1] is the sum of all. `leaves` is a power of two.


def empty_tree(capacity: int) -> np.ndarray:
    """A tree for `capacity` priorities, all zero."""
    return np.zeros(2 * (1 << max(capacity - 1, 0).bit_length()), np.float64)


@entry()
def set_priorities(tree, slots, priorities):
    """Write priorities [N] of slots [N], in order: where a slot comes twice, the last one counts."""
    leaves = len(tree) // 2
    for i in range(len(slots)):
        tree[leaves + slots[i]] = priorities[i]
    for i in range(len(slots)):  # each sum is made anew from its two parts, so that rounding errors do not gather
        k = (leaves + slots[i]) // 2
        while k >= 1:
            tree[k] = tree[2 * k] + tree[2 * k + 1]
            k //= 2


@entry()
def rebuild(tree):
    """Make all sums from the leaves."""
    for k in range(len(tree) // 2 - 1, 0, -1):
        tree[k] = tree[2 * k] + tree[2 * k + 1]


@entry()
def find(tree, levels, slots):
    """Slots [N] at which the running sum of priorities passes levels [N], each in [0, tree[1])."""
    leaves = len(tree) // 2
    for i in range(len(levels)):
        level, k = levels[i], 1
        while k < leaves:
            k *= 2
            # never into an empty branch, whatever rounding has done to the level
            if level >= tree[k] and tree[k + 1] > 0.0:
                level -= tree[k]
                k += 1
        slots[i] = k - leaves
