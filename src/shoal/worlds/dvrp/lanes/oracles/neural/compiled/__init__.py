"""Decoding in compiled code, row by row: what it works on, and how it is compiled.

B rows, V vehicles, N = 2n + 1 nodes, C seats; R rows are still under way, U vehicles of theirs have M moves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.jit import entry, inner
from shoal.jit.entries import LEAN

jit = inner(**LEAN)
jit_quick = inner(**LEAN, fastmath=True)  # sums of the network, whose order does not matter
jit_cached = entry("dvrp_decoding", **LEAN)
f32 = np.float32


class Given(NamedTuple):
    """`Problem` as arrays."""

    seconds: np.ndarray  # [B, N, N] float32
    price: np.ndarray  # [B, N, N]
    leave_by: np.ndarray  # [B, N, n]
    opens: np.ndarray  # [B, N]
    closes: np.ndarray  # [B, N]
    service: np.float32
    fleet: int


class Plans(NamedTuple):
    """`State` as arrays, and who was served in which order."""

    here: np.ndarray  # [B, V] int64
    clock: np.ndarray  # [B, V] float32
    aboard: np.ndarray  # [B, V, C] int64
    route: np.ndarray  # [B, V] int64
    possible: np.ndarray  # [B, V, N] bool
    slot: np.ndarray  # [B, V, n] int64
    waiting: np.ndarray  # [B, V, N] float32
    arrival: np.ndarray  # [B, V, N] float32
    extra: np.ndarray  # [B, V, N] float32
    open: np.ndarray  # [B, N] int64 nodes that are left, in order
    todo: np.ndarray  # [B] int64 how many
    used: np.ndarray  # [B] int64
    length: np.ndarray  # [B] float32
    node: np.ndarray  # [B, moves] int64 what was done, move by move
    made: np.ndarray  # [B, moves] int64 on which route
    done: np.ndarray  # [B] int64 moves so far
    latest: np.ndarray  # [C] float32 scratch


class Choices(NamedTuple):
    """Room for the moves of one step, and for what the network reads."""

    row: np.ndarray  # [M] int64 place among the R rows
    wheel: np.ndarray  # [M] int64 place among the U vehicles
    vehicle: np.ndarray  # [M] int64
    node: np.ndarray  # [M] int64
    features: np.ndarray  # [M, NUM_MOVE_FEATURES] float32
    wheel_row: np.ndarray  # [U] int64 place among the R rows
    wheel_vehicle: np.ndarray  # [U] int64
    numbers: np.ndarray  # [R, 3d + 4] float32 the situation of every row
    best: np.ndarray  # [R] float32 scratch, as are the next three
    weight: np.ndarray  # [N] float32
    reached: np.ndarray  # [n] int64 pickups that are left and that a vehicle reaches in time
    reach: np.ndarray  # [N] int64 how many vehicles reach every pickup
