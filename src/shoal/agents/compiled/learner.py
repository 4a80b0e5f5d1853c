"""One standard network, compiled: its outputs, the gradient of the PPO loss, and Adam.

A minibatch is cut into PARTS whose gradients are summed in a fixed order, so that the result does not depend on how
many threads share the work.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit

from shoal.agents.adam import FlatAdam
from shoal.agents.compiled.losses import (
    ADVANTAGE,
    ENTROPY,
    Rows,
    Weights,
    categorical_log_prob,
    categorical_slopes,
    gaussian_log_prob,
    gaussian_slopes,
    load_history,
    log_softmax,
    mask_outputs,
    surrogate,
    value_error,
)
from shoal.agents.compiled.network import (
    TILE,
    Layout,
    Tile,
    add_first_grad,
    backward,
    forward,
    layout_of,
    load_inputs,
    pack,
    packed_size,
    plan_tile,
)
from shoal.agents.compiled.simd import FAST, ROWS, exp32
from shoal.agents.networks import ActorCritic

PARTS = 4
_BELOW_ONE = np.float32(1 - 2**-22)  # as in `distributions`
_LOG_2PI = np.float32(math.log(2 * math.pi))


class _EntryPoints(NamedTuple):
    pack: Callable[..., None]
    act: Callable[..., None]
    add_gradient: Callable[..., None]
    moments: Callable[..., tuple[float, float]]
    adam: Callable[..., float]


@cache
def _entry_points(sources: str) -> _EntryPoints:
    """The functions that Python calls, compiled once and kept on disk.

    Numba looks only at the file of the function itself to see whether its cache is stale. `sources`, a hash of all
    files in this folder, is part of every function (as a variable it closes over) and so of its key in the cache.
    """

    @njit(cache=True, nogil=True)
    def pack_weights(flat, layout, packed):
        assert sources
        pack(flat, Layout(*layout), packed)

    @njit(cache=True, nogil=True, fastmath=FAST)
    def act(flat, packed, layout, work, tile, features, allowed, noise, sizes, log_std, choice, drawn, log_prob, value):
        """Values, and actions where `noise` is given: [N, parts] uniforms, or [N, P] normals. Infinite noise asks for
        the likeliest action."""
        assert sources
        layout, tile = Layout(*layout), Tile(*tile)
        pack(flat, layout, packed)
        outputs, probs = work[tile.outputs : tile.output_slope], work[tile.output_slope : tile.value]
        top, total = work[tile.spare : tile.spare + TILE], work[tile.spare + TILE : tile.spare + 2 * TILE]
        index = np.arange(len(features))
        for start in range(0, len(features), TILE):
            count = min(TILE, len(features) - start)
            load_inputs(layout, work, tile, features, index, start, count)
            forward(flat, packed, layout, work, tile, count)
            value[start : start + count] = work[tile.value : tile.value + count]
            if len(noise) == 0:
                continue
            if len(log_std):
                draw_normals(outputs, log_std, noise, start, count, drawn, log_prob)
            else:
                if len(allowed):
                    mask_outputs(outputs, allowed, index, start, count)
                draw_choices(outputs, probs, sizes, noise, start, count, choice, log_prob, top, total)

    @njit(cache=True, nogil=True, fastmath=FAST)
    def add_gradient(
        flat, packed, layout, work, tile, rows, index, start, stop, weights, sizes, log_std_at, grad, sums
    ):
        """Gradient of the rows `index[start:stop]` into `grad`, and what is to be logged into `sums`."""
        assert sources
        layout, tile, weights = Layout(*layout), Tile(*tile), Weights(*weights)
        features, choice, drawn, history, allowed = rows
        outputs, output_slope = work[tile.outputs : tile.output_slope], work[tile.output_slope : tile.value]
        value, value_slope = work[tile.value : tile.value_slope], work[tile.value_slope : tile.spare]
        local, spare = work[tile.spare : tile.spare + 4 * TILE], work[tile.spare + 4 * TILE : tile.size]
        log_prob, entropy, slope = spare[:TILE], spare[TILE : 2 * TILE], spare[2 * TILE : 3 * TILE]
        top, total = spare[3 * TILE : 4 * TILE], spare[4 * TILE :]
        entropy_weight = np.float32(weights.entropy * weights.share)
        continuous = log_std_at >= 0
        log_std = flat[log_std_at : log_std_at + layout.outputs]
        log_std_grad = grad[log_std_at : log_std_at + layout.outputs]
        for at in range(start, stop, TILE):
            count = min(TILE, stop - at)
            load_inputs(layout, work, tile, features, index, at, count)
            load_history(history, index, at, count, local)
            forward(flat, packed, layout, work, tile, count)
            if len(allowed):
                mask_outputs(outputs, allowed, index, at, count)
            if continuous:
                gaussian_log_prob(outputs, log_std, drawn, index, at, count, log_prob, entropy)
            else:
                categorical_log_prob(
                    outputs, output_slope, sizes, choice, index, at, count, log_prob, entropy, top, total
                )
            surrogate(weights, local, count, log_prob, slope, sums)
            value_error(weights, local, count, value, value_slope, sums)
            sums[ENTROPY] += entropy[:count].sum()
            if continuous:
                gaussian_slopes(
                    outputs, output_slope, log_std, drawn, index, at, count, slope, entropy_weight, log_std_grad
                )
            else:
                categorical_slopes(outputs, output_slope, sizes, choice, index, at, count, slope, entropy_weight, top)
            # rows that only fill up the last block must not count
            for row in range(count, (count + ROWS - 1) // ROWS * ROWS):
                value_slope[row] = 0
                for o in range(layout.outputs):
                    output_slope[o * TILE + row] = 0
            backward(flat, layout, work, tile, count, grad)
        add_first_grad(layout, work, tile, grad)

    @njit(cache=True, nogil=True)
    def moments(history, index, start, stop):
        """Mean and (unbiased) standard deviation of the advantages of the rows `index[start:stop]`."""
        assert sources
        total, count = 0.0, stop - start
        for i in range(start, stop):
            total += history[index[i], ADVANTAGE]
        mean, squares = total / count, 0.0
        for i in range(start, stop):
            squares += (history[index[i], ADVANTAGE] - mean) ** 2
        return mean, math.sqrt(squares / max(count - 1, 1))

    @njit(cache=True, nogil=True, fastmath=FAST)
    def adam(flat, grads, first, second, lr, beta_1, beta_2, eps, count, max_norm):
        """A step of Adam along the sum of grads [PARTS, n], shortened to `max_norm`; clears grads, returns the norm."""
        assert sources
        grad, f = grads[0], np.float32
        for part in range(1, len(grads)):
            for i in range(len(flat)):
                grad[i] += grads[part, i]
        squares = f(0.0)
        for i in range(len(flat)):
            squares += grad[i] * grad[i]
        norm = math.sqrt(squares)
        shorten, keep_1, keep_2 = f(min(1.0, max_norm / (norm + 1e-6))), f(1 - beta_1), f(1 - beta_2)
        rate, scale_2, eps_32 = f(lr / (1 - beta_1**count)), f(1 / (1 - beta_2**count)), f(eps)
        if not math.isfinite(norm):
            return norm
        for i in range(len(flat)):
            g = grad[i] * shorten
            first[i] += keep_1 * (g - first[i])
            second[i] += keep_2 * (g * g - second[i])
            flat[i] -= rate * first[i] / (math.sqrt(second[i] * scale_2) + eps_32)
        grads[:] = 0
        return norm

    return _EntryPoints(pack_weights, act, add_gradient, moments, adam)


@njit(nogil=True, fastmath=FAST)
def draw_choices(outputs, probs, sizes, noise, start, count, choice, log_prob, top, total):
    """Discrete actions by inversion of the cumulative distribution, or the likeliest where noise is infinite."""
    log_prob[start : start + count] = 0
    first = 0
    for part in range(len(sizes)):
        last = first + sizes[part]
        log_softmax(outputs, probs, first, last, count, top, total)
        for row in range(count):
            chosen, level = first, noise[start + row, part]
            if math.isinf(level):
                for a in range(first + 1, last):
                    if outputs[a * TILE + row] > outputs[chosen * TILE + row]:
                        chosen = a
            else:
                chosen = invert_cumulative(probs, first, last, row, level * _BELOW_ONE)
            choice[start + row, part] = chosen - first
            log_prob[start + row] += outputs[chosen * TILE + row]
        first = last


@njit(nogil=True, fastmath=FAST)
def invert_cumulative(probs, first, last, row, level):
    """The first action whose cumulative probability exceeds `level`; never one of probability zero."""
    chosen, cumulative = first, np.float32(0.0)
    for a in range(first, last):
        p = probs[a * TILE + row]
        if p > 0 and cumulative <= level:
            chosen = a
        cumulative += p
    return chosen


@njit(nogil=True, fastmath=FAST)
def draw_normals(outputs, log_std, noise, start, count, drawn, log_prob):
    """Continuous actions: mean plus scaled noise; the mean itself where noise is infinite."""
    log_prob[start : start + count] = 0
    for d in range(len(log_std)):
        std = exp32(log_std[d])
        for row in range(count):
            z = np.float32(0.0) if math.isinf(noise[start + row, d]) else noise[start + row, d]
            drawn[start + row, d] = outputs[d * TILE + row] + std * z
            log_prob[start + row] -= np.float32(0.5) * (z * z + _LOG_2PI) + log_std[d]


def _hash_of_sources() -> str:
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


class Outcome(NamedTuple):
    """Sums over the rows of one minibatch, as means; see `losses`."""

    policy_loss: float
    value_loss: float
    entropy: float
    kl: float
    clipped: float


class CompiledNetwork:
    """Acts with and trains one standard network, whose parameters lie in `optimizer.flat`."""

    def __init__(self, network: ActorCritic, optimizer: FlatAdam, sizes: list[int]) -> None:
        """`sizes` are those of the parts of a discrete action; empty for continuous ones."""
        self.calls = _entry_points(_hash_of_sources())
        self.optimizer = optimizer
        self.flat = optimizer.flat.numpy()
        layout = layout_of(network, optimizer.flat)
        self.layout = tuple(layout)
        self.packed = np.zeros(packed_size(layout), np.float32)
        self.tile = tuple(plan_tile(layout))
        self.work = np.zeros((PARTS, plan_tile(layout).size), np.float32)
        self.grads = np.zeros((PARTS, len(self.flat)), np.float32)
        self.sums = np.zeros((PARTS, 5), np.float64)
        self.sizes = np.array(sizes, np.int64)
        self.outputs = layout.outputs
        self.log_std_at = -1
        if not sizes:
            self.log_std_at = (network.policy.log_std.data_ptr() - optimizer.flat.data_ptr()) // 4
        self.log_std = self.flat[self.log_std_at : self.log_std_at + self.outputs] if not sizes else self.flat[:0]
        self._pool: ThreadPoolExecutor | None = None

    # ------------------------------------------------------------------ acting

    def act(self, features: np.ndarray, allowed: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, ...]:
        """features [N, D], allowed [N, P], noise [N, parts or P] -> raw actions, log_prob [N], value [N].

        No rows in `allowed`: no mask. Noise of infinity asks for the likeliest action; no rows of it, for values only.
        """
        count, parts = len(features), len(self.sizes)
        choice = np.empty((count, parts), np.int64)
        drawn = np.empty((count, 0 if parts else self.outputs), np.float32)
        log_prob, value = np.empty(count, np.float32), np.empty(count, np.float32)
        self.calls.act(
            self.flat, self.packed, self.layout, self.work[0], self.tile, features, allowed, noise,
            self.sizes, self.log_std, choice, drawn, log_prob, value,
        )  # fmt: skip
        return (choice if parts else drawn), log_prob, value

    # ------------------------------------------------------------------ learning

    def gradient(self, rows: Rows, index: np.ndarray, start: int, stop: int, weights: Weights) -> Outcome:
        """Gradient of the minibatch `index[start:stop]`, by parts, into `self.grads`; returns means over its rows."""
        self.calls.pack(self.flat, self.layout, self.packed)
        self.sums[:] = 0
        edges = [start + (stop - start) * part // PARTS for part in range(PARTS + 1)]
        plain_rows, plain_weights = tuple(rows), tuple(weights)

        def share(parts: range) -> None:
            for part in parts:
                self.calls.add_gradient(
                    self.flat, self.packed, self.layout, self.work[part], self.tile, plain_rows,
                    index, edges[part], edges[part + 1], plain_weights, self.sizes, self.log_std_at,
                    self.grads[part], self.sums[part],
                )  # fmt: skip

        self._on_threads(share)
        return Outcome(*(self.sums.sum(0) / (stop - start)))

    def advantage_moments(self, rows: Rows, index: np.ndarray, start: int, stop: int) -> tuple[float, float]:
        """Mean and standard deviation of the advantages of the minibatch `index[start:stop]`."""
        return self.calls.moments(rows.history, index, start, stop)

    def step(self, lr: float, max_norm: float) -> float:
        """Clip the gradient and take a step of Adam; returns the norm. A norm that is not finite moves nothing."""
        adam = self.optimizer
        count = int(adam.num_updates) + 1
        norm = self.calls.adam(
            self.flat, self.grads, adam.first_moment.numpy(), adam.second_moment.numpy(),
            lr, *adam.betas, adam.eps, count, max_norm,
        )  # fmt: skip
        if math.isfinite(norm):
            adam.num_updates += 1
        return norm

    def forget_gradient(self) -> None:
        """Drop the gradient of a minibatch that is not to be learned from."""
        self.grads[:] = 0

    def _on_threads(self, share: Callable[[range], Any]) -> None:
        """Do all PARTS, on as many threads as torch may use."""
        threads = min(torch.get_num_threads(), PARTS)
        if threads == 1:
            share(range(PARTS))
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(PARTS - 1, thread_name_prefix="shoal-learner")
        edges = [PARTS * i // threads for i in range(threads + 1)]
        others = [self._pool.submit(share, range(edges[i], edges[i + 1])) for i in range(1, threads)]
        share(range(edges[0], edges[1]))
        for other in others:
            other.result()
