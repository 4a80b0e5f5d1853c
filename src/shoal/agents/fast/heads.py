"""PPO between forward and backward: drawing actions, and the loss of a tile with its gradient by the network's outputs.

The same formulas as `PPO.loss` and the heads in `networks`, differentiated by hand. Outputs are flat [P, TILE] and
everything else [TILE], so that the loops, which run over rows, become vector code. Python calls `act`, `add_gradient`
and `moments`, which run over all tiles, through `compiled`: those of discrete or of continuous actions, which are
compiled apart, since few need both. `head` is the sizes of the parts of a discrete action, or log_std [P].
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

import numpy as np
from numba.core.dispatcher import Dispatcher

from shoal.agents.choosing import BELOW_ONE, FORBIDDEN
from shoal.agents.fast.tile import TILE, Layout, Tile, add_first_grad, backward, forward, load_inputs, pack, sum_of
from shoal.jit import LEAN, entry_points, inner
from shoal.jit.simd import FAST, ROWS, exp32, log32

_FORBIDDEN, _BELOW_ONE, _LOG_2PI = np.float32(FORBIDDEN), np.float32(BELOW_ONE), np.float32(math.log(2 * math.pi))
_ZERO, _HALF, _ONE, _TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)
# Numba would compile what is called with a plain 0 by itself, and again for any other number
_START = cast("int", np.int64(0))
LOG_PROB, VALUE, ADVANTAGE, TARGET = range(4)  # columns of `Rows.history`
POLICY_LOSS, VALUE_LOSS, ENTROPY, KL, CLIPPED = range(5)  # places in the sums of a minibatch


class Rows(NamedTuple):
    """What the loss needs of every row of a rollout, N = T * B of them."""

    features: np.ndarray  # [N, D] float32
    action: np.ndarray  # [N, parts] int64, or continuous as drawn: [N, P] float32
    history: np.ndarray  # [N, 4] float32: log_prob and value when acting, advantage, target
    allowed: np.ndarray  # [N, P] bool; [0, 0] without masks


class Weights(NamedTuple):
    """Settings of the loss for a minibatch of M rows."""

    clip: float
    entropy: float
    value: float
    value_clip: float  # infinite where values are not clipped
    share: float  # 1 / M
    advantage_mean: float
    advantage_scale: float


@inner(**LEAN)
def load_history(history, index, start, count, local):
    """Columns of the rows `index[start : start + count]`, into local [4 * TILE]."""
    for row in range(count):
        source = index[start + row]
        for column in range(4):
            local[column * TILE + row] = history[source, column]


@inner(**LEAN)
def mask_outputs(outputs, allowed, index, start, count):
    """Push the logits of forbidden actions to probability zero."""
    for a in range(allowed.shape[1]):
        for row in range(count):
            if not allowed[index[start + row], a]:
                outputs[a * TILE + row] = _FORBIDDEN


@inner(**LEAN, fastmath=FAST)
def log_softmax(outputs, probs, first, last, count, top, total):
    """Logits in rows `first` to `last` of outputs become log-probabilities; probs [P, TILE] become their exponentials.

    `top` and `total` are scratch [TILE].
    """
    for row in range(count):  # for arrays of unknown sizes, Numba would compile what to say if they differ
        top[row] = outputs[first * TILE + row]
    for a in range(first + 1, last):
        line = outputs[a * TILE : (a + 1) * TILE]
        for row in range(count):
            top[row] = line[row] if line[row] > top[row] else top[row]
    total[:count] = _ZERO
    for a in range(first, last):
        line, p = outputs[a * TILE : (a + 1) * TILE], probs[a * TILE : (a + 1) * TILE]
        for row in range(count):
            p[row] = exp32(line[row] - top[row])
            total[row] += p[row]
    for row in range(count):
        top[row] += log32(total[row])
        total[row] = _ONE / total[row]
    for a in range(first, last):
        line, p = outputs[a * TILE : (a + 1) * TILE], probs[a * TILE : (a + 1) * TILE]
        for row in range(count):
            line[row] -= top[row]
            p[row] *= total[row]


@inner(**LEAN, fastmath=FAST)
def add_entropy(outputs, probs, first, last, count, entropy):
    """Add the entropy of one part to `entropy` [TILE]."""
    for a in range(first, last):
        line, p = outputs[a * TILE : (a + 1) * TILE], probs[a * TILE : (a + 1) * TILE]
        for row in range(count):
            entropy[row] -= p[row] * line[row]


@inner(**LEAN, fastmath=FAST)
def categorical_log_prob(outputs, probs, sizes, choice, index, start, count, log_prob, entropy, top, total):
    """`outputs` and `probs` as in `log_softmax`; fills log_prob and entropy [TILE] of the chosen actions."""
    log_prob[:count] = _ZERO
    entropy[:count] = _ZERO
    first = _START
    for part in range(len(sizes)):
        last = first + sizes[part]
        log_softmax(outputs, probs, first, last, count, top, total)
        for row in range(count):
            log_prob[row] += outputs[(first + choice[index[start + row], part]) * TILE + row]
        add_entropy(outputs, probs, first, last, count, entropy)
        first = last


@inner(**LEAN, fastmath=FAST)
def categorical_slopes(outputs, probs, sizes, _, choice, index, start, count, slope, entropy_weight, entropy):
    """`probs` become the gradient by the logits, given `slope` [TILE] = d loss / d log_prob.

    The loss also has -entropy_weight * entropy. `entropy` is scratch [TILE].
    """
    first = _START
    for part in range(len(sizes)):
        last = first + sizes[part]
        entropy[:count] = _ZERO
        add_entropy(outputs, probs, first, last, count, entropy)
        for a in range(first, last):
            line, p = outputs[a * TILE : (a + 1) * TILE], probs[a * TILE : (a + 1) * TILE]
            for row in range(count):
                p[row] *= entropy_weight * (line[row] + entropy[row]) - slope[row]
        for row in range(count):
            probs[(first + choice[index[start + row], part]) * TILE + row] += slope[row]
        first = last


@inner(**LEAN, fastmath=FAST)
def gaussian_log_prob(outputs, _, log_std, drawn, index, start, count, log_prob, entropy, top, total):
    """Fills log_prob and entropy [TILE] of the actions drawn around the means `outputs`."""
    log_prob[:count] = _ZERO
    entropy[:count] = _ZERO
    for d in range(len(log_std)):
        precision, mean = exp32(-log_std[d]), outputs[d * TILE : (d + 1) * TILE]
        for row in range(count):
            z = (drawn[index[start + row], d] - mean[row]) * precision
            log_prob[row] -= _HALF * (z * z + _LOG_2PI) + log_std[d]
            entropy[row] += log_std[d] + _HALF * (_LOG_2PI + _ONE)


@inner(**LEAN, fastmath=FAST)
def gaussian_slopes(outputs, output_slope, log_std, log_std_grad, drawn, index, start, count, slope, entropy_weight, _):
    """Gradient by the means, and by log_std into `log_std_grad`, given `slope` [TILE] = d loss / d log_prob."""
    for d in range(len(log_std)):
        precision, total = exp32(-log_std[d]), _ZERO
        mean, mean_slope = outputs[d * TILE : (d + 1) * TILE], output_slope[d * TILE : (d + 1) * TILE]
        for row in range(count):
            z = (drawn[index[start + row], d] - mean[row]) * precision
            mean_slope[row] = slope[row] * z * precision
            total += slope[row] * (z * z - _ONE)
        log_std_grad[d] += total - entropy_weight * np.float32(count)


@inner(**LEAN, fastmath=FAST)
def surrogate(weights, local, count, log_prob, slope, sums):
    """The clipped surrogate of a tile: fills `slope` = d loss / d log_prob and adds to `sums` what is to be logged."""
    clip, share = np.float32(weights.clip), np.float32(weights.share)
    mean, scale = np.float32(weights.advantage_mean), np.float32(weights.advantage_scale)
    low, high = _ONE - clip, _ONE + clip
    policy_loss = kl = clipped = _ZERO
    advantages, old_log_prob = local[ADVANTAGE * TILE :], local[LOG_PROB * TILE :]
    for row in range(count):
        advantage = (advantages[row] - mean) * scale
        log_ratio = log_prob[row] - old_log_prob[row]
        ratio = exp32(log_ratio)
        bounded = low if ratio < low else (high if ratio > high else ratio)
        gain, bounded_gain = ratio * advantage, bounded * advantage
        stopped = bounded_gain < gain  # a bound that is the smaller gain stops the gradient
        policy_loss -= bounded_gain if stopped else gain
        slope[row] = _ZERO if stopped else -gain * share
        kl += ratio - _ONE - log_ratio
        clipped += _ZERO if bounded == ratio else _ONE
    sums[POLICY_LOSS] += policy_loss
    sums[KL] += kl
    sums[CLIPPED] += clipped


@inner(**LEAN, fastmath=FAST)
def value_error(weights, local, count, value, value_slope, sums):
    """The squared error of the values of a tile: fills `value_slope` and adds to `sums`."""
    reach, factor = np.float32(weights.value_clip), _TWO * np.float32(weights.value * weights.share)
    value_loss = _ZERO
    old_value, targets = local[VALUE * TILE :], local[TARGET * TILE :]
    for row in range(count):
        old, target = old_value[row], targets[row]
        change = value[row] - old
        near = old - reach if change < -reach else (old + reach if change > reach else value[row])
        error, near_error = value[row] - target, near - target
        stopped = near_error * near_error > error * error  # then the value was clipped, and its gradient stops
        value_loss += near_error * near_error if stopped else error * error
        value_slope[row] = _ZERO if stopped else factor * error
    sums[VALUE_LOSS] += value_loss


# ---------------------------------------------------------------------- acting


@inner(**LEAN, fastmath=FAST)
def draw_choices(outputs, probs, sizes, noise, start, count, choice, log_prob, top, total):
    """Discrete actions by inversion of the cumulative distribution, or the likeliest where noise is infinite."""
    log_prob[start : start + count] = 0
    first = _START
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


@inner(**LEAN, fastmath=FAST)
def invert_cumulative(probs, first, last, row, level):
    """The first action whose cumulative probability exceeds `level`; never one of probability zero."""
    chosen, cumulative = first, np.float32(0.0)
    for a in range(first, last):
        p = probs[a * TILE + row]
        if p > 0 and cumulative <= level:
            chosen = a
        cumulative += p
    return chosen


@inner(**LEAN, fastmath=FAST)
def draw_normals(outputs, _, log_std, noise, start, count, drawn, log_prob, top, total):
    """Continuous actions: mean plus scaled noise; the mean itself where noise is infinite."""
    log_prob[start : start + count] = 0
    for d in range(len(log_std)):
        std = exp32(log_std[d])
        for row in range(count):
            z = np.float32(0.0) if math.isinf(noise[start + row, d]) else noise[start + row, d]
            drawn[start + row, d] = outputs[d * TILE + row] + std * z
            log_prob[start + row] -= np.float32(0.5) * (z * z + _LOG_2PI) + log_std[d]


# ---------------------------------------------------------------------- over all tiles


def acting(draw: Dispatcher) -> Dispatcher:
    """`act` for the kind of actions that `draw` draws."""

    @inner(**LEAN, fastmath=FAST)
    def act(flat, packed, layout, work, tile, features, index, allowed, noise, head, action, log_prob, value):
        """Values, and actions where `noise` is given: [N, parts] uniforms, or [N, P] normals. Infinite noise asks for
        the likeliest action. `index` counts the rows."""
        layout, tile = Layout(*layout), Tile(*tile)
        pack(flat, layout, packed)
        outputs, probs = work[tile.outputs : tile.output_slope], work[tile.output_slope : tile.value]
        top, total = work[tile.spare : tile.spare + TILE], work[tile.spare + TILE : tile.spare + 2 * TILE]
        for start in range(0, len(features), TILE):
            count = min(TILE, len(features) - start)
            load_inputs(layout, work, tile, features, index, start, count)
            forward(flat, packed, layout, work, tile, count)
            for row in range(count):
                value[start + row] = work[tile.value + row]
            if len(noise) == 0:
                continue
            if len(allowed):
                mask_outputs(outputs, allowed, index, start, count)
            draw(outputs, probs, head, noise, start, count, action, log_prob, top, total)

    return act


def learning(find_log_prob: Dispatcher, find_slopes: Dispatcher) -> Dispatcher:
    """`add_gradient` for a kind of actions."""

    @inner(**LEAN, fastmath=FAST)
    def add_gradient(flat, packed, layout, work, tile, rows, index, start, stop, weights, head, head_grad, grad, sums):
        """Gradient of the rows `index[start:stop]` into `grad`, and what is to be logged into `sums`."""
        layout, tile, weights = Layout(*layout), Tile(*tile), Weights(*weights)
        features, action, history, allowed = rows
        outputs, output_slope = work[tile.outputs : tile.output_slope], work[tile.output_slope : tile.value]
        value, value_slope = work[tile.value : tile.value_slope], work[tile.value_slope : tile.spare]
        local, spare = work[tile.spare : tile.spare + 4 * TILE], work[tile.spare + 4 * TILE : tile.size]
        log_prob, entropy, slope = spare[:TILE], spare[TILE : 2 * TILE], spare[2 * TILE : 3 * TILE]
        top, total = spare[3 * TILE : 4 * TILE], spare[4 * TILE :]
        entropy_weight = np.float32(weights.entropy * weights.share)
        for at in range(start, stop, TILE):
            count = min(TILE, stop - at)
            load_inputs(layout, work, tile, features, index, at, count)
            load_history(history, index, at, count, local)
            forward(flat, packed, layout, work, tile, count)
            if len(allowed):
                mask_outputs(outputs, allowed, index, at, count)
            find_log_prob(outputs, output_slope, head, action, index, at, count, log_prob, entropy, top, total)
            surrogate(weights, local, count, log_prob, slope, sums)
            value_error(weights, local, count, value, value_slope, sums)
            sums[ENTROPY] += sum_of(entropy[:count])
            find_slopes(outputs, output_slope, head, head_grad, action, index, at, count, slope, entropy_weight, top)
            # rows that only fill up the last block must not count
            for row in range(count, (count + ROWS - 1) // ROWS * ROWS):
                value_slope[row] = 0
                for o in range(layout.outputs):
                    output_slope[o * TILE + row] = 0
            backward(flat, layout, work, tile, count, grad)
        add_first_grad(layout, work, tile, grad)

    return add_gradient


@inner(**LEAN)
def moments(history, index, start, stop):
    """Mean and (unbiased) standard deviation of the advantages of the rows `index[start:stop]`."""
    total, count = 0.0, stop - start
    for i in range(start, stop):
        total += history[index[i], ADVANTAGE]
    mean, squares = total / count, 0.0
    for i in range(start, stop):
        squares += (history[index[i], ADVANTAGE] - mean) ** 2
    return mean, math.sqrt(squares / max(count - 1, 1))


@inner(**LEAN)
def pack_weights(flat, layout, packed):
    """`pack`, for Python."""
    pack(flat, Layout(*layout), packed)


Titled = tuple[str, tuple[Dispatcher, ...]]
"""Functions that are compiled together, by the title that users are told."""


class Parts(NamedTuple):
    """What is compiled for a kind of actions. Acting and learning are apart: two processes can share the work."""

    actor: Titled
    learner: Titled


def parts_of(act: Dispatcher, add_gradient: Dispatcher) -> Parts:
    """The parts of an agent that acts and learns so."""
    return Parts(("ppo_actor", (act,)), ("ppo_learner", (pack_weights, add_gradient, moments)))


DISCRETE = parts_of(acting(draw_choices), learning(categorical_log_prob, categorical_slopes))
CONTINUOUS = parts_of(acting(draw_normals), learning(gaussian_log_prob, gaussian_slopes))


@functools.cache
def compiled(parts: Parts) -> Mapping[str, Callable]:
    """The functions that Python calls, by name."""
    return {**entry_points(*parts.actor), **entry_points(*parts.learner)}
