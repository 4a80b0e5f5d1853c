"""n-step transitions against a slow reference, one lane and one step at a time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.n_step import EpisodeWindow, NStepWindow, Steps, Transitions, n_step


def draw_steps(rng, num_steps, num_lanes, end_rate):
    """Random steps whose observations name their lane and time, so that a wrong successor shows."""
    place = np.stack(np.indices((num_steps, num_lanes)), -1).astype(np.float32)
    ends = rng.random((num_steps, num_lanes)) < end_rate
    terminated = ends & (rng.random(ends.shape) < 0.5)
    return Steps(
        place,
        rng.normal(size=(num_steps, num_lanes, 2)).astype(np.float32),
        rng.normal(size=(num_steps, num_lanes)).astype(np.float32),
        terminated,
        ends & ~terminated,
        place + 0.5,
        (rng.random((num_steps, num_lanes, 3)) < 0.5).astype(np.float32),
        (rng.random((num_steps, num_lanes, 3)) < 0.5).astype(np.float32),
        rng.random((num_steps, num_lanes)) < 0.8,
    )


def reference(steps, n, gamma):
    """Rows (obs, action, reward, discount, next_obs, mask, next_mask), by the definition."""
    rows = []
    for t in range(steps.num_steps - n + 1):
        for lane in range(steps.reward.shape[1]):
            if not steps.valid[t, lane]:
                continue
            total, k = 0.0, 0
            while True:
                total += gamma**k * float(steps.reward[t + k, lane])
                ended = steps.terminated[t + k, lane] or steps.truncated[t + k, lane]
                if ended or k == n - 1:
                    break
                k += 1
            discount = 0.0 if steps.terminated[t + k, lane] else gamma ** (k + 1)
            last = steps.next_obs[t + k, lane], steps.mask[t, lane], steps.next_mask[t + k, lane]
            rows.append((steps.obs[t, lane], steps.action[t, lane], total, discount, *last))
    return rows


cases = given(
    seed=st.integers(0, 2**32 - 1),
    num_lanes=st.integers(1, 4),
    n=st.integers(1, 5),
    more=st.integers(0, 12),
    gamma=st.sampled_from([0.0, 0.5, 0.99, 1.0]),
    end_rate=st.sampled_from([0.0, 0.2, 0.9]),
)


@cases
def test_transitions_are_those_of_the_definition(seed, num_lanes, n, more, gamma, end_rate):
    steps = draw_steps(np.random.default_rng(seed), n + more, num_lanes, end_rate)
    found, wanted = n_step(steps, n, gamma), reference(steps, n, gamma)
    assert len(found.reward) == len(wanted)
    for row, expected in zip(zip(*found, strict=True), wanted, strict=True):
        for ours, theirs in zip(row, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@cases
def test_how_steps_are_cut_into_rollouts_changes_nothing(seed, num_lanes, n, more, gamma, end_rate):
    rng = np.random.default_rng(seed)
    steps = draw_steps(rng, n + more, num_lanes, end_rate)
    window, parts, at = NStepWindow(n, gamma), [], 0
    while at < steps.num_steps:
        size = int(rng.integers(1, 5))
        parts.append(window.push(Steps(*(part[at : at + size] for part in steps))))
        at += size
    whole = n_step(steps, n, gamma)
    for field, expected in zip(zip(*parts, strict=True), whole, strict=True):
        np.testing.assert_array_equal(np.concatenate(field), expected)


def test_a_cut_keeps_pending_steps_apart_from_what_comes_after():
    steps = draw_steps(np.random.default_rng(0), 6, 1, 0.0)._replace(valid=np.ones((6, 1), np.bool_))
    window = NStepWindow(3, 0.5)
    first = window.push(Steps(*(part[:3] for part in steps)))
    window.cut()
    second = window.push(Steps(*(part[3:] for part in steps)))
    assert len(first.reward) == 1
    # steps 1 and 2 end at step 2, whose successor counts; nothing of step 3 is in them
    np.testing.assert_allclose(second.discount, [0.25, 0.5, 0.125])
    np.testing.assert_allclose(second.reward[0], steps.reward[1, 0] + 0.5 * steps.reward[2, 0], rtol=1e-6)
    np.testing.assert_array_equal(second.next_obs[:2], np.repeat(steps.next_obs[2], 2, 0))


@cases
def test_whole_episodes_give_the_same_transitions_later(seed, num_lanes, n, more, gamma, end_rate):
    rng = np.random.default_rng(seed)
    steps = draw_steps(rng, n + more, num_lanes, end_rate)
    steps.truncated[-1] |= ~steps.terminated[-1]  # in the end all episodes are over
    steps.valid[:] = rng.random(num_lanes) < 0.8
    seen = np.zeros(steps.reward.shape, int)

    def judge(window, lane, first, last):
        assert not (window.terminated | window.truncated)[first:last, lane].any()
        for row in range(first, last + 1):
            seen[tuple(window.obs[row, lane].astype(int))] += 1
            window.reward[row, lane] += 1.0

    window, parts, at = EpisodeWindow(n, gamma, judge), [], 0
    while at < steps.num_steps:
        size = int(rng.integers(1, 5))
        parts.append(window.push(Steps(*(part[at : at + size].copy() for part in steps))))
        at += size
    found = Transitions(*(np.concatenate(field) for field in zip(*parts, strict=True)))
    raised = steps._replace(reward=steps.reward + np.where(seen > 0, 1.0, 0.0).astype(np.float32))
    padded = Steps(*(np.concatenate([part, part[-1:].repeat(n - 1, 0)]) for part in raised))
    padded.valid[steps.num_steps :] = False
    wanted = n_step(padded, n, gamma)
    order, wanted_order = (np.lexsort(t.obs.T) for t in (found, wanted))
    assert seen.max() <= 1
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours[order], theirs[wanted_order], rtol=1e-5, atol=1e-5)


def test_a_cut_of_some_lanes_leaves_the_others_going_on():
    steps = draw_steps(np.random.default_rng(0), 6, 3, end_rate=0.0)
    steps = steps._replace(valid=np.ones_like(steps.valid))
    window = NStepWindow(3, 0.9)
    window.push(Steps(*(part[:3] for part in steps)))
    window.cut(slice(1, 2))
    after = window.push(Steps(*(part[3:] for part in steps)))
    # what was pending were steps 1 and 2: with the cut their successor is that of step 2
    pending = after.obs[:, 0] < 3
    pairs = zip(after.obs[pending], after.next_obs[pending], strict=True)
    successors = {(t, lane): time for (t, lane), (time, _) in pairs}
    assert [successors[1, lane] for lane in range(3)] == [3.5, 2.5, 3.5]
    assert [successors[2, lane] for lane in range(3)] == [4.5, 2.5, 4.5]
