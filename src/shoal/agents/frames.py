"""What a replay memory has seen of images: every frame once, in its own type.

An observation is known by the numbers of its frames. A leaf of an observation whose first axis is a stack (an image
with its channels first) consists of as many frames as that axis is long, any other leaf of one. The next observation of
a lane brings one new frame, and shows the others one place further on. Whether it does is seen from the bytes, so
whoever stacked them, and however an episode begins, what is read again is what was seen.

Frames are numbered from 0 as they come; frame i lies at place i modulo the places there are, of which some are to
spare, as in `shoal.agents.replay`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from shoal.agents.images import image_of
from shoal.agents.rollout import Ended
from shoal.trees import Tree, at_path, map_tree
from shoal.vector.spaces import empty_batch, leaf_spaces

Allocate = Callable[[str, tuple[int, ...], np.dtype], np.ndarray]
"""From a name, a shape and a type to memory, e.g. a mapped file."""
EXTRA = 1 / 64
"""Frames beyond one per transition, as a share: the last of an episode, and the first of the next. Where episodes are
so short that this is not enough, the oldest transitions go before their time."""


class Leaf(NamedTuple):
    """One part of the observation."""

    path: tuple[str | int, ...]
    stack: int  # K, frames of one observation
    shape: tuple[int, ...]  # of a frame
    dtype: np.dtype

    @property
    def frame_bytes(self) -> int:
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def frames_of(self, obs: Tree) -> np.ndarray:
        """Observations [..., *obs] as frames [..., K, *frame]."""
        leaf = np.asarray(at_path(obs, self.path))
        leading = leaf.ndim - len(self.shape) - (self.stack > 1)
        return leaf.reshape(*leaf.shape[:leading], self.stack, *self.shape)


class Ring:
    """The frames of one leaf."""

    def __init__(self, leaf: Leaf, capacity: int) -> None:
        self.leaf, self.capacity, self.total = leaf, capacity, 0
        self.lost = 0  # frames before this one were overwritten, though they might still count
        self._frames: np.ndarray | None = None

    @property
    def frames(self) -> np.ndarray:
        """[places, *frame]; made when they are first needed, since they are large."""
        if self._frames is None:
            self._frames = np.zeros((self.capacity, *self.leaf.shape), self.leaf.dtype)
        return self._frames

    @frames.setter
    def frames(self, frames: np.ndarray) -> None:
        self._frames = frames

    @property
    def first(self) -> int:
        """The number of the oldest frame that counts."""
        return max(0, self.total - self.capacity)

    def add(self, frames: np.ndarray) -> np.ndarray:
        """Numbers [N] of new frames [N, *frame]."""
        numbers = np.arange(self.total, self.total + len(frames))
        self.frames[numbers % len(self.frames)] = frames
        self.total += len(frames)
        return numbers

    def begin(self, obs: np.ndarray) -> np.ndarray:
        """Numbers [L, K] of observations [L, K, *frame] that nothing is known of."""
        return self._complete(obs, np.full(obs.shape[:2], -1))

    def follow(self, obs: np.ndarray, before: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Numbers [L, K] of observations [L, K, *frame] that come after `before`, whose numbers these are."""
        same = _equal(obs[:, :-1], before[:, 1:])
        known = np.full(numbers.shape, -1)
        known[:, :-1] = np.where(same, numbers[:, 1:], -1)
        return self._complete(obs, known)

    def _complete(self, obs: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """`numbers` with those that are -1 filled in. The newest frame always is a new one, or a picture that stands
        still would keep a number that grows old; the others may be copies of it, as at the start of an episode."""
        newest = self.add(obs[:, -1])
        copies = _equal(obs[:, :-1], obs[:, -1:]) & (numbers[:, :-1] < 0)
        numbers[:, -1] = newest
        numbers[:, :-1][copies] = np.broadcast_to(newest[:, None], copies.shape)[copies]
        unknown = numbers < 0
        if unknown.any():
            numbers[unknown] = self.add(obs[unknown])
        return numbers

    def read(self, numbers: np.ndarray) -> Tensor:
        """Observations [N, K, *frame] of numbers [N, K]."""
        frames = torch.from_numpy(self.frames)
        places = torch.from_numpy(numbers.reshape(-1) % len(frames))
        return frames.index_select(0, places).view(*numbers.shape, *self.leaf.shape)


class Frames:
    """The frames of all leaves of observations of `space`, for `capacity` transitions."""

    def __init__(self, space: gym.Space, capacity: int) -> None:
        self.space = space
        self.leaves = [_leaf(path, part) for path, part in leaf_spaces(space)]
        self.rings = [Ring(leaf, _with_extra(capacity)) for leaf in self.leaves]
        stops = np.cumsum([leaf.stack for leaf in self.leaves])
        self._columns = [slice(stop - leaf.stack, stop) for leaf, stop in zip(self.leaves, stops, strict=True)]
        self.width = int(stops[-1])
        """Numbers by which an observation is known."""
        self.last = np.zeros((0, self.width), np.int64)  # [B, width] of the observations that come next
        self.groups: deque[tuple[int, ...]] = deque()
        """For transitions that came together: the number of the first one, and the oldest frame of every leaf."""
        self.outside = False  # whether the frames lie in memory that outlives the process
        self._written: np.ndarray | None = None  # totals, where frames lie outside

    @property
    def bytes_per_transition(self) -> int:
        return _with_extra(sum(leaf.frame_bytes for leaf in self.leaves))

    def keep_in(self, allocate: Allocate, spare: int) -> None:
        """Use memory from `allocate`, with `spare` more places. Before the first frame is added."""
        for i, ring in enumerate(self.rings):
            shape = (ring.capacity + _with_extra(spare), *ring.leaf.shape)
            ring.frames = allocate(f"frames_{i}", shape, ring.leaf.dtype)
        self._written = allocate("frames_written", (len(self.rings),), np.dtype(np.int64))
        self.outside = True

    def remember(self, obs: Tree, ended: Sequence[Ended]) -> tuple[np.ndarray, np.ndarray]:
        """Keep the observations of a rollout [T + 1, B, *obs].

        Returns numbers [T, B, width] of what was acted on, and of the true successors.
        """
        parts = [self._remember(i, leaf.frames_of(obs), ended) for i, leaf in enumerate(self.leaves)]
        seen, following = (np.concatenate(columns, -1) for columns in zip(*parts, strict=True))
        self.last = seen[-1].copy()
        if self._written is not None:
            self._written[:] = np.maximum(self._written, [ring.total for ring in self.rings])
        return seen[:-1], following

    def _remember(self, i: int, obs: np.ndarray, ended: Sequence[Ended]) -> tuple[np.ndarray, np.ndarray]:
        """The same for one leaf [T + 1, B, K, *frame]: numbers [T + 1, B, K] and [T, B, K]."""
        ring, leaf, columns = self.rings[i], self.leaves[i], self._columns[i]
        steps, lanes = len(obs) - 1, obs.shape[1]
        seen = np.empty((steps + 1, lanes, leaf.stack), np.int64)
        following = np.empty((steps, lanes, leaf.stack), np.int64)
        seen[0] = self._first(ring, obs[0], self.last[:, columns])
        at_end = {end.t: end for end in ended}
        for t in range(steps):
            end = at_end.get(t)
            if end is None:
                seen[t + 1] = following[t] = ring.follow(obs[t + 1], obs[t], seen[t])
                continue
            going = np.setdiff1d(np.arange(lanes), end.lanes)
            over = leaf.frames_of(end.obs)
            following[t, end.lanes] = ring.follow(over, obs[t, end.lanes], seen[t, end.lanes])
            seen[t + 1, end.lanes] = ring.begin(obs[t + 1, end.lanes])
            seen[t + 1, going] = following[t, going] = ring.follow(obs[t + 1, going], obs[t, going], seen[t, going])
        return seen, following

    def _first(self, ring: Ring, obs: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Numbers [B, K] of what a rollout begins with: where its last one ended, unless lanes were reset since."""
        if len(numbers) != len(obs):
            return ring.begin(obs)
        new = ~_equal(ring.read(numbers).numpy(), obs).all(-1)
        numbers = numbers.copy()
        if new.any():
            numbers[new] = ring.begin(obs[new])
        return numbers

    def read(self, numbers: np.ndarray) -> Tree:
        """Observations [N, *obs] of numbers [N, width], as tensors."""
        parts = (ring.read(numbers[:, columns]) for ring, columns in zip(self.rings, self._columns, strict=True))
        return map_tree(lambda leaf: next(parts).view(len(numbers), *leaf.shape[1:]), empty_batch(self.space, 0))

    # ------------------------------------------------------------------ how long

    def note(self, first_row: int, numbers: np.ndarray) -> None:
        """Transitions from `first_row` on were added, whose observations have these numbers [N, width]."""
        if len(numbers):
            self.groups.append((first_row, *(int(numbers[:, columns].min()) for columns in self._columns)))

    def first_row(self, first: int, total: int) -> int:
        """The oldest of the transitions `first` to `total` all of whose frames are still there."""
        while len(self.groups) > 1 and self.groups[1][0] <= first:
            self.groups.popleft()
        while self.groups and self._is_gone(self.groups[0]):
            self.groups.popleft()
        return max(first, self.groups[0][0]) if self.groups else total

    def _is_gone(self, group: tuple[int, ...]) -> bool:
        return any(oldest < max(ring.first, ring.lost) for ring, oldest in zip(self.rings, group[1:], strict=True))

    # ------------------------------------------------------------------ persistence

    def tensors(self) -> dict[str, Tensor]:
        """What must be saved: the numbers, and the frames themselves unless they lie outside."""
        saved = {
            "totals": torch.tensor([ring.total for ring in self.rings]),
            "last": torch.from_numpy(self.last.copy()),
            "groups": torch.tensor(list(self.groups), dtype=torch.int64).reshape(-1, 1 + len(self.rings)),
        }
        for i, ring in enumerate(self.rings):
            if not self.outside:
                numbers = np.arange(ring.first, ring.total)
                saved[f"frames_{i}"] = torch.from_numpy(ring.frames[numbers % len(ring.frames)])
            elif isinstance(ring.frames, np.memmap):
                ring.frames.flush()
        return saved

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Go back to what `tensors` returned."""
        for i, (ring, total) in enumerate(zip(self.rings, tensors["totals"].tolist(), strict=True)):
            ring.total = total
            if self._written is not None:  # more may have come after what is gone back to than there was room to spare
                ring.lost = max(0, int(self._written[i]) - len(ring.frames))
            if f"frames_{i}" in tensors and not self.outside:
                numbers = np.arange(ring.first, ring.total)
                ring.frames[numbers % len(ring.frames)] = tensors[f"frames_{i}"].numpy()
        self.last = tensors["last"].numpy().copy()
        self.groups = deque(map(tuple, tensors["groups"].tolist()))


def _leaf(path: tuple[str | int, ...], space: gym.Space) -> Leaf:
    shape, dtype, image = space.shape or (), np.dtype(space.dtype), image_of(space)
    is_stack = image is not None and len(shape) > 2 and image.order[0] == 0 and shape[0] > 1
    return Leaf(path, shape[0], shape[1:], dtype) if is_stack else Leaf(path, 1, shape, dtype)


def _with_extra(count: int) -> int:
    return count + int(np.ceil(count * EXTRA))


def _equal(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Which frames [L, K, *frame] are the same, [L, K]."""
    return (one == other).all(tuple(range(2, one.ndim)))
