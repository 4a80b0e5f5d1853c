"""What stands between the matrix products of the decoder: gathering, attention of one query, and the choice.

`AttentionModel` defines what is computed here; only the order of sums differs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.worlds.dvrp.lanes.oracles.neural.compiled import f32, jit_cached, jit_quick

_DAY = f32(86_400)


@jit_quick
def _dot(a, b):
    total = f32(0)
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@jit_quick
def _mean_of(nodes, which, out):
    """The mean of some nodes of [N, d], and the depot."""
    for k in range(len(out)):
        out[k] = nodes[0, k]
    for j in range(len(which)):
        for k in range(len(out)):
            out[k] += nodes[which[j], k]
    for k in range(len(out)):
        out[k] /= f32(len(which) + 1)


@jit_quick
def _mean_of_all(nodes, which, out):
    """The mean of some nodes of [N, d]."""
    out[:] = f32(0)
    for j in range(len(which)):
        for k in range(len(out)):
            out[k] += nodes[which[j], k]
    for k in range(len(out)):
        out[k] /= f32(len(which))


@jit_cached
def situate(plans, rows, closes, fleet, nodes, mean, numbers):
    """numbers [R, 3d + 4]: the request set, the work that is left, where the vehicles are, and four numbers."""
    width, (here, used, open_, todo) = nodes.shape[2], plans
    for r in range(len(rows)):
        b, out = rows[r], numbers[r]
        left = open_[b, : todo[b]]
        for k in range(width):
            out[k] = mean[b, k]
        _mean_of(nodes[b], left, out[width : 2 * width])
        _mean_of_all(nodes[b], here[b], out[2 * width : 3 * width])
        soon, waiting = _DAY, 0
        for k in range(len(left)):
            soon = min(soon, closes[b, left[k]])
            waiting += left[k] % 2
        out[3 * width] = soon / f32(43_200) - f32(1)
        out[3 * width + 1] = f32(waiting) / f32(15) - f32(1)
        out[3 * width + 2] = min(max(f32(fleet - used[b]) / f32(5), f32(-1)), f32(1))
        out[3 * width + 3] = f32(1) if used[b] >= fleet else f32(0)


@jit_quick
def _attend(query, keys, values, which, weight, seen):
    """One head: query [h] over keys and values [N, h] of some nodes and the depot."""
    scale = f32(1) / np.sqrt(f32(len(query)))
    highest = _dot(query, keys[0]) * scale
    last = len(which)
    weight[last] = highest
    for j in range(last):
        weight[j] = _dot(query, keys[which[j]]) * scale
        highest = max(highest, weight[j])
    total = np.exp(weight[last] - highest)
    for k in range(len(query)):
        seen[k] = total * values[0, k]
    for j in range(last):
        share, value = np.exp(weight[j] - highest), values[which[j]]
        total += share
        for k in range(len(query)):
            seen[k] += share * value[k]
    for k in range(len(query)):
        seen[k] /= total


@jit_cached
def glimpse(open_, todo, rows, query, keys, values, weight, seen):
    """seen [R, d]: what the query [R, d] of every row sees of those who wait; keys and values [B, heads, N, h]."""
    heads, size = keys.shape[1], keys.shape[3]
    for r in range(len(rows)):
        b = rows[r]
        for h in range(heads):
            low, high = h * size, (h + 1) * size
            left = open_[b, : todo[b]]
            _attend(query[r, low:high], keys[b, h], values[b, h], left, weight, seen[r, low:high])


@jit_cached
def gather(here, aboard, rows, wheel_row, wheel_vehicle, stops, situation, out):
    """out [U, d] every vehicle that can move: where it is, who is on board, the situation of its row; none below 0."""
    width = situation.shape[1]
    for u in range(len(out)):
        r, v = wheel_row[u], wheel_vehicle[u]
        b = rows[r]
        for k in range(width):
            out[u, k] = stops[b, here[b, v], k] + situation[r, k]
        for seat in range(aboard.shape[2]):
            node = aboard[b, v, seat]
            if node > 0:
                for k in range(width):
                    out[u, k] += stops[b, node, width + k]
        for k in range(width):
            out[u, k] = max(out[u, k], f32(0))


@jit_cached
def judge(rows, row, wheel, node, known, stops, asked, judged, score):
    """Add node and vehicle to what is known of the moves, judged [M, m], none below 0; and score [M] of the stops.

    `asked` [U, d + m] is what every vehicle looks for: in a stop, and in a move.
    """
    width = asked.shape[1] - judged.shape[1]
    for m in range(len(score)):
        b, at, asks = rows[row[m]], node[m], asked[wheel[m]]
        score[m] = _dot(asks[:width], stops[b, at, 2 * width :]) / np.sqrt(f32(width))
        for k in range(judged.shape[1]):
            judged[m, k] = max(judged[m, k] + known[b, at, k] + asks[width + k], f32(0))


@jit_cached
def choose(row, vehicle, node, logits, vehicles, noise, best, code):
    """code [R]: the move with the highest logit plus `noise` [R, codes] or none; the lowest code of several."""
    code[:] = -1
    for m in range(len(logits)):
        r, mine = row[m], node[m] * vehicles + vehicle[m]
        value = logits[m] + noise[r, mine] if noise.size else logits[m]
        if code[r] < 0 or value > best[r] or (value == best[r] and mine < code[r]):
            best[r], code[r] = value, mine


# ---------------------------------------------------------------------- the encoder's view of pairs


class PairLayers(NamedTuple):
    """Weights of `AttentionModel.pairs`."""

    first: np.ndarray  # [k, 4] float32
    first_bias: np.ndarray  # [k]
    second: np.ndarray  # [layers * heads, k]
    second_bias: np.ndarray  # [layers * heads]


@jit_quick
def _pair_row(layers, inputs, hidden, out, channel):
    """One channel out [N] of hidden [k, N]; the hidden channels are made from inputs [4, N] at the first."""
    if channel == 0:
        for h in range(len(hidden)):
            w0, w1, w2, w3 = layers.first[h, 0], layers.first[h, 1], layers.first[h, 2], layers.first[h, 3]
            bias = layers.first_bias[h]
            for j in range(len(out)):
                value = w0 * inputs[0, j] + w1 * inputs[1, j] + w2 * inputs[2, j] + w3 * inputs[3, j] + bias
                hidden[h, j] = max(value, f32(0))
    out[:] = layers.second_bias[channel]
    for h in range(len(hidden)):
        weight = layers.second[channel, h]
        for j in range(len(out)):
            out[j] += weight * hidden[h, j]


@jit_cached
def pair_biases(given, seconds_to, wanted, layers, inputs, hidden, out):
    """out [layers, B, heads, N, N]: what every pair adds to attention; see `pair_features`."""
    num_layers, rows, heads, nodes = out.shape[:4]
    for b in range(rows):
        opens, closes = given.opens[b], given.closes[b]
        for i in range(nodes):
            seconds, back = given.seconds[b, i], seconds_to[b, i]
            for j in range(nodes):
                inputs[0, j], inputs[1, j] = seconds[j] / f32(1800), back[j] / f32(1800)
                gap = (opens[j] - opens[i]) / f32(3600)
                spare = (closes[j] - max(opens[i] + seconds[j], opens[j])) / f32(1800)
                inputs[2, j] = min(max(gap, f32(-3)), f32(3))
                inputs[3, j] = min(max(spare, f32(-3)), f32(3))
            for channel in range(num_layers * heads):
                row = out[channel // heads, b, channel % heads, i]
                _pair_row(layers, inputs, hidden, row, channel)
                for j in range(nodes):
                    if not wanted[b, j]:
                        row[j] = f32(-1e9)
