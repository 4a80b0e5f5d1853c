"""Lanes with seats: whose action counts, and who is still there."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from shoal.testing.findings import Broken, NotOffered
from shoal.testing.player import Case, Player, join, same_moments
from shoal.testing.subject import Subject


def a_turn_names_a_seat_that_is_there(subject: Subject, case: Case) -> None:
    """`turn` [B] is a seat that is `present` [B, S], after `reset` and in every step."""
    player = _seated(subject, case)
    if player is None:
        return
    told = [player.first_info, *(moment.info for moment in player.play().moments)]
    if not any("turn" in info for info in told):
        raise NotOffered("All seats act at once: info has no 'turn'.")
    for k, info in enumerate(told):
        over = np.zeros(case.num_envs, np.bool_) if k == 0 else player.moments[k - 1].done
        if player.mode.name == "SAME_STEP":
            over = np.zeros_like(over)
        for lane in np.flatnonzero(~over):
            turn, seats = int(info["turn"][lane]), player.env.num_seats  # type: ignore[attr-defined]
            there = info["present"][lane] if "present" in info else np.ones(seats, np.bool_)
            if not 0 <= turn < seats or not there[turn]:
                raise Broken(f"After step {k} the turn of lane {lane} is {turn}; those present are {there}.")


def actions_of_seats_that_wait_change_nothing(subject: Subject, case: Case) -> None:
    """Whoever is not on turn, or has left, may hand in any action: the lane goes on as it would have."""
    player = _seated(subject, case)
    if player is None:
        return
    player.play()
    infos = [player.first_info, *(moment.info for moment in player.moments)]
    if not any(name in info for info in infos for name in ("turn", "present")):
        raise NotOffered("Every seat acts in every step.")
    other = subject.player(case, twin=1)
    space = deepcopy(player.env.single_action_space)
    space.seed(case.action_seed + 2)
    for moment, info in zip(player.moments, infos, strict=False):
        if other.mode.name == "DISABLED" and other.over.any():
            other.choose()
        rows = []
        for lane in range(case.num_envs):
            action, waits = np.array(moment.action[lane]), _waiting(player, info, lane)
            action[waits] = space.sample()[waits]
            rows.append(action)
        other.step(join(space, rows))
    same_moments(player, other, ("one run", "a run that differs only in actions of seats that wait"))


def who_has_left_stays_away_and_is_paid_nothing(subject: Subject, case: Case) -> None:
    """A seat that is not `present` comes back with the next episode only, and its reward is 0 until then."""
    player = _seated(subject, case)
    if player is None:
        return
    player.play()
    if "present" not in player.first_info:
        raise NotOffered("Nobody leaves before the others: info has no 'present'.")
    if not player.first_info["present"].all():
        raise Broken(f"Episodes begin without some of their seats: present is {player.first_info['present']}.")
    before = np.asarray(player.first_info["present"])
    for k, moment in enumerate(player.moments):
        now = np.where(
            moment.done[:, None], moment.info.get("final_info", moment.info)["present"], moment.info["present"]
        )
        gone = ~before & ~moment.began[:, None]
        if (gone & (now | (moment.reward != 0))).any():
            lane, seat = np.argwhere(gone & (now | (moment.reward != 0)))[0]
            what = "is back" if now[lane, seat] else f"is paid {moment.reward[lane, seat]:.6g}"
            raise Broken(f"Seat {seat} of lane {lane} had left before step {k + 1}, in which it {what}.")
        before = np.where(moment.done[:, None], True, now)


def _seated(subject: Subject, case: Case) -> Player | None:
    """Somebody to play lanes with seats; None where they have none."""
    return subject.player(case) if getattr(subject.batch(case.num_envs), "num_seats", 0) else None


def _waiting(player: Player, info: dict[str, Any], lane: int) -> np.ndarray:
    """[S] seats whose action is ignored."""
    seats = np.arange(player.env.num_seats)  # type: ignore[attr-defined]
    waits = np.zeros(len(seats), np.bool_)
    if "turn" in info:
        waits |= seats != info["turn"][lane]
    if "present" in info:
        waits |= ~info["present"][lane]
    return waits
