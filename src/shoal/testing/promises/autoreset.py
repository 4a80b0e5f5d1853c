"""Autoreset to the letter, in each mode that is offered."""

from __future__ import annotations

from contextlib import closing
from copy import deepcopy

import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.testing.findings import Broken
from shoal.testing.player import Case, Moment, Player, join, same_moments, same_story
from shoal.testing.subject import Subject
from shoal.testing.trees import demand_same
from shoal.trees import index_tree


def each_batch_announces_its_own_mode(subject: Subject, case: Case) -> None:
    """`metadata["autoreset_mode"]` is the batch's own, and stays so when another batch is made in another mode."""
    mode, other = subject.default_mode, subject.reference_mode(subject.default_mode)
    if other is None:
        return
    with closing(subject.fresh(case.num_envs)) as env:
        subject.fresh(case.num_envs, other).close()
        if env.metadata["autoreset_mode"] is not mode:
            raise Broken(
                f"A {mode.name} batch says it is {env.metadata['autoreset_mode'].name} since a {other.name} batch was "
                "made: they share one metadata dict."
            )


def same_step_gives_the_true_successor(subject: Subject, case: Case) -> None:
    """SAME_STEP: obs begins the new episode, `final_obs` is the true successor, and only where an episode ended."""
    player = subject.player(case, subject.demand(AutoresetMode.SAME_STEP)).play()
    for k, moment in enumerate(player.moments):
        _check_final_keys(k, moment)
    _compare_modes(subject, case, player)


def _check_final_keys(k: int, moment: Moment) -> None:
    for key in ("final_obs", "final_info"):
        if not moment.done.any():
            if key in moment.info:
                raise Broken(f"info has {key!r} in step {k + 1}, in which no episode ended.")
            continue
        mask = moment.info.get(f"_{key}")
        if key not in moment.info or mask is None:
            had = sorted(moment.info)
            raise Broken(f"An episode ended in step {k + 1}, but info lacks {key!r} or '_{key}'; it has {had}.")
        if not np.array_equal(mask, moment.done):
            raise Broken(f"In step {k + 1} '_{key}' is {mask}, but episodes ended in {moment.done}.")


def next_step_ignores_the_action_and_pays_nothing(subject: Subject, case: Case) -> None:
    """NEXT_STEP: the step after an end ignores its action, pays 0, ends nothing, and begins the new episode."""
    player = subject.player(case, subject.demand(AutoresetMode.NEXT_STEP)).play()
    for k, moment in enumerate(player.moments):
        if np.any(moment.reward[moment.began] != 0):
            raise Broken(f"The step after an end (step {k + 1}) pays {moment.reward[moment.began]} instead of 0.")
        if moment.done[moment.began].any():
            raise Broken(f"The step after an end (step {k + 1}) ends the episode that it begins.")
    _compare_with_other_ignored_actions(subject, case, player)
    _compare_modes(subject, case, player)


def _compare_with_other_ignored_actions(subject: Subject, case: Case, player: Player) -> None:
    """Play the same again with different actions wherever they must be ignored."""
    other = subject.player(case, player.mode, twin=1)
    space = deepcopy(player.env.single_action_space)
    space.seed(case.action_seed + 1)
    for moment in player.moments:
        rows = [
            space.sample() if moment.began[lane] else index_tree(moment.action, lane) for lane in range(case.num_envs)
        ]
        other.step(join(space, rows))
    same_moments(player, other, ("one run", "a run that differs only in actions to be ignored"))


def disabled_resets_only_whom_it_is_told(subject: Subject, case: Case) -> None:
    """DISABLED: a masked reset begins new episodes in its lanes and leaves the others bit-identical."""
    mode = subject.demand(AutoresetMode.DISABLED)
    before = subject.player(case, mode).play(case.num_steps // 2)
    undisturbed = subject.player(case, mode, twin=1).play(case.num_steps // 2)
    before.choose(), undisturbed.choose()  # resets the lanes that have ended, so that all are alive
    chosen = case.seed % case.num_envs
    mask = np.arange(case.num_envs) == chosen
    last_obs = before.moments[-1].obs if before.moments else before.first_obs
    shown = before.resets.get(len(before.moments), (None, last_obs))[1]
    obs = before.reset_lanes(mask)
    one, other = before.step(before.choose()), undisturbed.step(undisturbed.choose())  # alike but for that lane
    for what, now, then in (("observation", obs, shown), ("next step", one.outcome, other.outcome)):
        for lane in map(int, np.flatnonzero(~mask)):
            otherwise = f"A reset of lane {chosen} alone changed the {what} of lane {lane}"
            demand_same(index_tree(now, lane), index_tree(then, lane), otherwise)


def disabled_refuses_to_step_an_ended_lane(subject: Subject, case: Case) -> None:
    """DISABLED: stepping a lane whose episode has ended raises, instead of inventing a transition."""
    player = subject.player(case, subject.demand(AutoresetMode.DISABLED))
    for _ in range(case.num_steps):
        moment = player.step(player.choose())
        if moment.done.any():
            try:
                player.env.step(moment.action)
            except Exception:
                return  # loud, as promised
            lane = int(np.argmax(moment.done))
            raise Broken(f"Lane {lane} ended in step {len(player.moments)}, and step() went on without a reset.")


def _compare_modes(subject: Subject, case: Case, player: Player) -> None:
    reference = subject.reference_mode(player.mode)
    if reference is None:
        return
    other = subject.player(case, reference).play()
    same_story(player, other, (player.mode.name, reference.name), lanes=case.num_envs)
