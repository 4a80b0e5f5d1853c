"""From successors to actions, lane by lane: the fixed order of pruning, skipping, cutting and giving up.

Scalar source, see `jit`.
"""

from __future__ import annotations

from shoal.worlds.kg.lanes.engine.expansions import MISSING, expand_and_keep, recall
from shoal.worlds.kg.lanes.engine.jit import inline, jit
from shoal.worlds.kg.lanes.engine.resolve import PROVED, fingerprint, holds, resolve
from shoal.worlds.kg.lanes.engine.tables import CUT_RANDOM, MAX_SKIPS


@jit
def fill(kb, opt, lanes, which, kept, work):
    """List the actions of every lane in `which` [B]. `kept` are expansions to be recalled, if there is room for any."""
    for i in range(len(which)):
        if which[i]:
            fill_lane(kb, opt, lanes, i, kept, work)


@jit
def fill_lane(kb, opt, lanes, i, kept, work):
    """Successors of lane i's state, which forced moves may advance first."""
    lanes.n_skipped[i] = 0
    lanes.n_cut[i] = 0
    lanes.n_successors[i] = 0
    first = lanes.state[i, 0, 0]
    if lanes.idle[i] or first > kb.num_regular or first == 0:  # the end of a proof leads to itself, all else to False
        offer(lanes, i, opt.true if first == opt.true else opt.false)
        return
    while True:
        count = successors_of(kb, opt, lanes, i, kept, work)
        if count == PROVED:
            offer(lanes, i, opt.true)
            return
        if count == 0:
            offer(lanes, i, opt.false)
            return
        if not opt.skip_unary or count > 1:
            break
        if lanes.n_skipped[i] == MAX_SKIPS:
            offer(lanes, i, opt.false)
            return
        put_state(lanes.state[i], work.rows[0], work.size[0])  # a forced move is no step
        remember(lanes, i, work.print[0])
        lanes.n_skipped[i] += 1
    lanes.n_successors[i] = count
    take_rows(kb, opt, lanes, i, count, work)
    add_extra(kb, opt, lanes, i)


@jit
def successors_of(kb, opt, lanes, i, kept, work):
    """Admissible successors of lane i's state in `work`; their number, or `PROVED`."""
    state, history, query = lanes.state[i], lanes.history[i], lanes.query[i]
    past = lanes.num_past[i] if opt.memory else 0
    goals = num_goals(state)
    if len(kept.slot) > 0 and not holds(kb, query[0], query[1], query[2], (0, 0, 0)):
        code = fingerprint(kb, state, goals)
        count = recall(kept, code, history, past, work)
        kept.used[2] += count != MISSING
        if count == MISSING and expand_and_keep(kb, state, goals, code, query, opt.bound_first, kept, work):
            count = recall(kept, code, history, past, work)
        if count != MISSING:
            return count
    keep = len(work.size) - 1 if opt.cut == CUT_RANDOM else min(opt.max_states, len(work.size) - 1)
    return resolve(kb, state, goals, query, opt.bound_first, False, history, past, keep, work)


@jit
def num_goals(state):
    for k in range(len(state)):
        if state[k, 0] == 0:
            return k
    return len(state)


@jit
def offer(lanes, i, predicate):
    """Make the terminal state `predicate` the only action."""
    lanes.num_actions[i] = 0
    append_terminal(lanes, i, predicate)
    lanes.n_successors[i] = 1


@jit
def append_terminal(lanes, i, predicate):
    row = lanes.successors[i, lanes.num_actions[i]]
    put_state(row, row, 0)
    row[0, 0] = predicate
    lanes.num_actions[i] += 1


@jit
def put_state(target, goals, size):
    """Copy goals [:size] and clear the rest of `target`."""
    for k in range(len(target)):
        for j in range(3):
            target[k, j] = goals[k, j] if k < size else 0


@jit
def remember(lanes, i, code):
    lanes.history[i, lanes.num_past[i]] = code
    lanes.num_past[i] += 1


@jit
def take_rows(kb, opt, lanes, i, count, work):
    """Copy successors to the lane, as many as it has room for."""
    kept, room = 0, opt.room
    chooses = count > room and opt.cut == CUT_RANDOM
    threshold = random_threshold(lanes.episode_key[i], count, room, work) if chooses else 0
    for row in range(count):
        if kept == room:
            break
        if not chooses or random_order(lanes.episode_key[i], work.print[row]) <= threshold:
            put_state(lanes.successors[i, kept], work.rows[row], work.size[row])
            kept += 1
    lanes.num_actions[i] = kept
    lanes.n_cut[i] = count - kept


@jit
def random_order(key, code):
    """A place for a successor in the random order of an episode: a hash of both."""
    return scramble(key ^ code)


@inline
def scramble(z):
    """How SplitMix64 makes random bits of a counter."""
    z = (z ^ ((z >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
    z = (z ^ ((z >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
    return z ^ ((z >> 31) & 0x1FFFFFFFF)


@jit
def random_threshold(key, count, room, work):
    """The `room`-th smallest place among the successors, by quickselect."""
    for row in range(count):
        work.order[row] = random_order(key, work.print[row])
    low, high, wanted = 0, count - 1, room - 1
    while low < high:
        pivot = work.order[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while work.order[left] < pivot:
                left += 1
            while work.order[right] > pivot:
                right -= 1
            if left <= right:
                work.order[left], work.order[right] = work.order[right], work.order[left]
                left += 1
                right -= 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    return work.order[wanted]


@jit
def add_extra(kb, opt, lanes, i):
    """The actions that are not resolution: trust the KGE model, give up, declare proven."""
    state = lanes.state[i]
    if opt.kge_action:
        chosen = ground_goal(kb, opt, state)
        if chosen >= 0:
            append_twin(opt, lanes, i, chosen)
    if opt.end_action:
        append_terminal(lanes, i, opt.end)
    if opt.end_true_action:
        append_terminal(lanes, i, opt.end_true)


@jit
def ground_goal(kb, opt, state):
    """The goal that resolution selects, if it is ground, else -1."""
    for k in range(num_goals(state)):
        first, second = state[k, 1] <= kb.num_constants, state[k, 2] <= kb.num_constants
        if not opt.bound_first or first or second:
            return k if first and second else -1
    return -1


@jit
def append_twin(opt, lanes, i, chosen):
    """The state with its goal p(s,t) replaced by p_kge(s,t), which is put first; the other goals are kept."""
    state, row = lanes.state[i], lanes.successors[i, lanes.num_actions[i]]
    row[0, 0] = state[chosen, 0] + opt.twin_shift
    row[0, 1] = state[chosen, 1]
    row[0, 2] = state[chosen, 2]
    for k in range(1, len(row)):
        source = k - 1 if k <= chosen else k
        for j in range(3):
            row[k, j] = state[source, j]
    lanes.num_actions[i] += 1


@jit
def close_twin(kb, opt, state):
    """Take the first goal, a `_kge` twin, as proved: the others move up; with none left the state is True."""
    for k in range(len(state)):
        for j in range(3):
            state[k, j] = state[k + 1, j] if k + 1 < len(state) else 0
    if state[0, 0] == 0:
        state[0, 0] = opt.true


@jit
def fingerprint_of(kb, state):
    return fingerprint(kb, state, num_goals(state))
