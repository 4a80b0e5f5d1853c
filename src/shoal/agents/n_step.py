"""From steps to transitions: n-step returns that respect the ends of episodes, lane by lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Judge = Callable[["Steps", int, int, int], None]


class Steps(NamedTuple):
    """Consecutive steps of several lanes. T steps, S lanes."""

    obs: np.ndarray  # [T, S, D]
    action: np.ndarray  # [T, S, A]
    reward: np.ndarray  # [T, S]
    terminated: np.ndarray  # [T, S] nothing lies beyond: no bootstrap
    truncated: np.ndarray  # [T, S] the episode is cut: bootstrap from next_obs
    next_obs: np.ndarray  # [T, S, D] the true successor, also where an episode ended
    mask: np.ndarray  # [T, S, M'] actions allowed in obs; M' = 0 for an agent that does not ask
    next_mask: np.ndarray  # [T, S, M] actions allowed in next_obs; M = 0 where nothing is forbidden
    valid: np.ndarray  # [T, S] whether the step is one to learn from; validity may only change between episodes

    @property
    def num_steps(self) -> int:
        """T."""
        return len(self.reward)


class Transitions(NamedTuple):
    """What a replay memory holds. N of them."""

    obs: np.ndarray  # [N, D]
    action: np.ndarray  # [N, A]
    reward: np.ndarray  # [N] discounted sum of up to n rewards
    discount: np.ndarray  # [N] what the value of next_obs counts: gamma ** (rewards summed), or 0 after a termination
    next_obs: np.ndarray  # [N, D]
    mask: np.ndarray  # [N, M']
    next_mask: np.ndarray  # [N, M]


def n_step(steps: Steps, n: int, gamma: float) -> Transitions:
    """One transition for each valid one of the first T - n + 1 steps, time first.

    A transition sums rewards up to n steps on, or up to the end of its episode if that comes first.
    """
    starts = steps.num_steps - n + 1
    rows, lanes = np.indices((starts, steps.reward.shape[1]))
    reward = np.zeros(rows.shape, np.float64)
    last, running = rows.copy(), np.ones(rows.shape, np.bool_)
    for k in range(n):
        here = rows + k
        reward += np.where(running, gamma**k * steps.reward[here, lanes], 0.0)
        last[running] = here[running]
        running &= ~(steps.terminated[here, lanes] | steps.truncated[here, lanes])
    discount = gamma ** (last - rows + 1) * ~steps.terminated[last, lanes]
    kept = steps.valid[:starts]
    return Transitions(
        steps.obs[:starts][kept],
        steps.action[:starts][kept],
        reward[kept].astype(np.float32),
        discount[kept].astype(np.float32),
        steps.next_obs[last, lanes][kept],
        steps.mask[:starts][kept],
        steps.next_mask[last, lanes][kept],
    )


class NStepWindow:
    """Keeps the last n - 1 steps of a stream, whose transitions are not complete yet, until more steps come."""

    def __init__(self, n: int, gamma: float) -> None:
        self.n, self.gamma = n, gamma
        self.pending: Steps | None = None

    def push(self, steps: Steps) -> Transitions:
        """The transitions that `steps` complete."""
        if self.pending is None:
            self.pending = _nothing_before(steps, self.n - 1)
        window = Steps(*(np.concatenate(parts) for parts in zip(self.pending, steps, strict=True)))
        self.pending = Steps(*(part[window.num_steps - self.n + 1 :] for part in window))
        return n_step(window, self.n, self.gamma)

    def cut(self, lanes: slice = slice(None)) -> None:
        """The lanes are reset from outside: what comes next does not continue what is pending."""
        if self.pending is not None and self.pending.num_steps:
            self.pending.truncated[-1, lanes] = True


class EpisodeWindow(NStepWindow):
    """Holds steps back until their episode is over, so that its outcome can still change their rewards.

    `judge(steps, lane, first, last)` is told of every whole episode, rows `first` to `last` of `lane`, and may write
    to `steps.reward`. Steps of an episode whose beginning is not held any more are passed on as they are.
    """

    def __init__(self, n: int, gamma: float, judge: Judge) -> None:
        super().__init__(n, gamma)
        self.judge = judge

    def push(self, steps: Steps) -> Transitions:
        window = steps
        if self.pending is not None:
            window = Steps(*(np.concatenate(parts) for parts in zip(self.pending, steps, strict=True)))
        ended = window.terminated | window.truncated
        total, lanes = ended.shape
        over = np.zeros((total, lanes), np.bool_)  # steps of episodes that are over
        keep_from = total
        for lane in range(lanes):
            first = 0
            for last in np.flatnonzero(ended[:, lane]):
                if window.valid[last, lane]:  # not passed on before
                    self.judge(window, lane, first, int(last))
                    over[first : last + 1, lane] = True
                first = int(last) + 1
            keep_from = min(keep_from, first)
        # no transition that begins in an ended episode looks beyond its end, so padding the window changes nothing
        padded = Steps(*(np.concatenate([part, np.repeat(part[-1:], self.n - 1, 0)]) for part in window))
        passed = padded._replace(valid=np.concatenate([window.valid & over, np.zeros((self.n - 1, lanes), np.bool_)]))
        self.pending = Steps(*(part[keep_from:].copy() for part in window))
        self.pending.valid[over[keep_from:]] = False
        return n_step(passed, self.n, self.gamma)


def _nothing_before(steps: Steps, count: int) -> Steps:
    """`count` steps that are not valid, shaped like `steps`."""
    return Steps(*(np.zeros((count, *part.shape[1:]), part.dtype) for part in steps))
