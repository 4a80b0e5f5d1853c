"""Episodes of lanes: draw a query, take the chosen successor, pay the reward. Scalar source, see `jit`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.worlds.kg.lanes.engine.actions import close_twin, fingerprint_of, put_state, remember, scramble
from shoal.worlds.kg.lanes.engine.jit import jit
from shoal.worlds.kg.lanes.engine.resolve import narrow

TRAIN, ROUND_ROBIN, EVAL, POOL = range(4)
HEAD, TAIL, BOTH = 1, 2, 3
RESAMPLES = 16


class Source(NamedTuple):
    """Where queries come from."""

    mode: int
    triples: np.ndarray  # [m, 3] int32
    label: np.ndarray  # [m] int32
    depth: np.ndarray  # [m] int32
    cumulative: np.ndarray  # [m] float64, rising to 1: weights of the draw; empty is uniform
    ratio: int  # negatives per positive
    sides: int  # HEAD, TAIL or BOTH may be corrupted
    cursor: np.ndarray  # [1] int64, next of a shared pool
    num_lanes: int  # that share the queries of EVAL between them
    domain_start: np.ndarray
    domain_members: np.ndarray
    domain_of_constant: np.ndarray
    domain_of_predicate: np.ndarray
    known_start: np.ndarray  # all known triples by (predicate, first): no corruption may be one
    known_other: np.ndarray
    known_stride: int


# ---------------------------------------------------------------------- random numbers


@jit
def random_bits(lanes, i):
    """The next 64 bits of lane i's stream, SplitMix64."""
    lanes.rng[i] += -7046029254386353131
    return scramble(lanes.rng[i])


@jit
def random_below(lanes, i, n):
    """Uniform on 0..n-1, n below 2**31."""
    return (((random_bits(lanes, i) >> 32) & 0xFFFFFFFF) * n) >> 32


@jit
def random_unit(lanes, i):
    """Uniform on [0, 1)."""
    return float((random_bits(lanes, i) >> 11) & 0x1FFFFFFFFFFFFF) * 1.1102230246251565e-16


# ---------------------------------------------------------------------- beginning


@jit
def begin(kb, opt, source, lanes, which, now):
    """Start an episode in every lane in `which` [B]."""
    for i in range(len(which)):
        if which[i]:
            begin_lane(kb, opt, source, lanes, i, now)


@jit
def begin_lane(kb, opt, source, lanes, i, now):
    draw_query(source, lanes, i)
    lanes.depth[i] = 0
    lanes.success[i] = False
    lanes.ended[i] = False
    lanes.total[i] = 0.0
    lanes.began[i] = now
    lanes.num_past[i] = 0
    lanes.episode_key[i] = random_bits(lanes, i)
    state = lanes.state[i]
    put_state(state, lanes.query[i : i + 1], 0 if lanes.idle[i] else 1)
    if lanes.idle[i]:
        state[0, 0] = opt.false
    remember(lanes, i, fingerprint_of(kb, state))


@jit
def draw_query(source, lanes, i):
    """The next query of lane i; idle if there is none."""
    number = lanes.draws[i]
    lanes.draws[i] += 1
    item = next_item(source, lanes, i, number)
    lanes.idle[i] = item < 0
    lanes.item[i] = item
    lanes.label[i] = -1
    if item < 0:
        return
    for j in range(3):
        lanes.query[i, j] = source.triples[item, j]
    lanes.label[i] = source.label[item]
    lanes.query_depth[i] = source.depth[item]
    if source.mode <= ROUND_ROBIN and number % (source.ratio + 1) != 0:
        corrupt(source, lanes, i)


@jit
def next_item(source, lanes, i, number):
    m = len(source.triples)
    if source.mode == TRAIN:
        if len(source.cumulative) == 0:
            return random_below(lanes, i, m)
        return min(np.searchsorted(source.cumulative, random_unit(lanes, i), side="right"), m - 1)
    if source.mode == ROUND_ROBIN:
        return (lanes.number[i] + number) % m
    if source.mode == EVAL:
        item = lanes.number[i] + number * source.num_lanes
        return item if item < m else -1
    item = source.cursor[0]
    if item >= m:
        return -1
    source.cursor[0] += 1
    return item


@jit
def corrupt(source, lanes, i):
    """Replace one argument by another of its domain such that the triple is not known to be true."""
    side = source.sides
    if side == BOTH:
        side = HEAD if lanes.negatives[i] % 2 == 0 else TAIL
    lanes.negatives[i] += 1
    place = 1 if side == HEAD else 2
    p, old = lanes.query[i, 0], lanes.query[i, place]
    domain = source.domain_of_predicate[p, place - 1]
    if domain < 0:
        domain = source.domain_of_constant[old]
    low, high = source.domain_start[domain], source.domain_start[domain + 1]
    at, after = narrow(source.domain_members, low, high, old)
    present = after - at  # the old one is skipped over: it is never drawn
    choices = high - low - present
    if choices > 0:
        for _ in range(RESAMPLES):
            drawn = low + random_below(lanes, i, choices)
            if present > 0 and drawn >= at:
                drawn += 1
            lanes.query[i, place] = source.domain_members[drawn]
            if not known(source, lanes.query[i]):
                lanes.label[i] = 0
                lanes.query_depth[i] = -2
                return
    lanes.unfiltered[i] += 1  # every draw was a true triple: keep the last as the positive it is


@jit
def known(source, triple):
    key = triple[0] * source.known_stride + triple[1]
    low, high = narrow(source.known_other, source.known_start[key], source.known_start[key + 1], triple[2])
    return low < high


# ---------------------------------------------------------------------- stepping


@jit
def advance(kb, opt, lanes, action, which, reward, terminated, truncated):
    """Take the actions of the lanes in `which` [B]; the others pay nothing."""
    for i in range(len(which)):
        reward[i] = 0.0
        terminated[i] = False
        truncated[i] = False
        if which[i] and not lanes.idle[i]:
            advance_lane(kb, opt, lanes, i, action[i], reward, terminated, truncated)


@jit
def advance_lane(kb, opt, lanes, i, action, reward, terminated, truncated):
    state = lanes.state[i]
    put_state(state, lanes.successors[i, action], len(state))
    if state[0, 0] > opt.end_true:
        close_twin(kb, opt, state)
    lanes.depth[i] += 1
    remember(lanes, i, fingerprint_of(kb, state))
    end = state[0, 0]
    lanes.success[i] = end == opt.true or end == opt.end_true
    terminated[i] = end >= opt.true and end <= opt.end_true
    truncated[i] = not terminated[i] and lanes.depth[i] >= opt.max_depth
    if terminated[i] or truncated[i]:
        reward[i] = pay(opt, lanes.label[i] == 1, lanes.success[i], end == opt.end)
        lanes.total[i] += reward[i]
        lanes.ended[i] = True


@jit
def pay(opt, positive, success, gave_up):
    """The reward of a finished episode, by type."""
    kind = opt.reward_type
    if positive and success:
        return 1.0
    if positive:
        return 0.0 if kind <= 2 else -0.5 if kind == 3 else -1.0
    if success:
        return 0.0 if kind == 0 or kind == 2 else -1.5 if kind == 3 else -1.0
    if kind <= 1:
        return 0.0
    if kind <= 3:
        return 1.0
    return opt.reject_weight + (0.3 if kind == 5 and gave_up else 0.0)


# ---------------------------------------------------------------------- looking


@jit
def observe(lanes, flat, which, state, successors, action_mask, dirty):
    """Write the padded observation of every lane in `which` [B]. Successors are flat rows [B, S * A * 3].

    `flat` is `lanes.successors` in that shape: copying and clearing are then single runs through memory. Of each row
    only the first `dirty` [B] numbers may differ from zero before; `dirty` is brought up to date.
    """
    width = lanes.state.shape[1] * 3
    for i in range(len(which)):
        if which[i]:
            put_state(state[i, 0], lanes.state[i], len(lanes.state[i]))
            count = lanes.num_actions[i]
            filled = count * width
            for k in range(filled):
                successors[i, k] = flat[i, k]
            for k in range(filled, dirty[i]):
                successors[i, k] = 0
            dirty[i] = filled
            for row in range(action_mask.shape[1]):
                action_mask[i, row] = row < count


@jit
def gather(lanes, which, successors, owner, start):
    """Ragged view: rows [M, A, 3] of all actions and the lane of each; `start` [B]."""
    total = 0
    for i in range(len(which)):
        start[i] = total
        if which[i]:
            for row in range(lanes.num_actions[i]):
                put_state(successors[total], lanes.successors[i, row], len(successors[total]))
                owner[total] = i
                total += 1
