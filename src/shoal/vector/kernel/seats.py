"""What a loop over lanes with seats does besides: rewards for each seat, whose turn it is, and who is still there."""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError
from shoal.vector.kernel.kernel import Kernel


@dataclass(frozen=True)
class Seats:
    """How the seats of a lane play. The methods return lines of the driver's text, see `driver`."""

    count: int
    choices: tuple[int, ...]
    """Sizes of the parts of one seat's action; none where there is no mask."""
    own: tuple[int, ...]
    """How many choices each seat has of its own; none where all have the same."""
    pays: bool
    in_turn: bool
    may_leave: bool

    @property
    def tells(self) -> bool:
        """Whether lanes have infos about their seats."""
        return self.in_turn or self.may_leave

    def reward_blocks(self) -> dict[str, list[str]]:
        """What is different where a lane has several rewards. Sums are float64, as everything in a kernel."""
        paid = "due[i, j] + r" if self.pays else "r"
        ask = [*self._each("due[i, j] = 0.0"), "pay(LANE, P, due[i])"] if self.pays else []
        lines = (f"paid = {paid}", "odd |= paid != paid", "total[i, j] += paid", "reward[i, j] = paid")
        return {
            "CLEAR_TOTAL": self._each("total[i, j] = 0.0"),
            "COUNT": [],
            "PAY": [*ask, *self._each(*lines)],
            "PAY_NOTHING": self._each("reward[stop, j] = 0.0"),
            "RETURN": self._each("episode[i].r[j] = total[i, j]"),
        }

    def odd_reward(self) -> str:
        """Whether a reward of lane i is NaN."""
        return " or ".join(f"reward[i, {j}] != reward[i, {j}]" for j in range(self.count))

    def tell_lines(self, info: str, fault: str) -> list[str]:
        """Write who is there and whose turn it is; return `fault` where that is nobody who could act."""
        lines = self.present_lines(info)
        if not self.in_turn:
            return lines
        nobody = f"now_on < 0 or now_on >= {self.count}" + (
            f" or not {info}[i].present[now_on]" if self.may_leave else ""
        )
        return [
            *lines,
            "now_on = turn(LANE, P)",
            f"{info}[i].turn = now_on",
            "if not ended[i]:",
            f"    if {nobody}:",
            f"        return {fault}",
        ]

    def present_lines(self, info: str) -> list[str]:
        """Write who is there."""
        if not self.may_leave:
            return []
        return [*self._each(f"{info}[i].present[j] = False"), f"present(LANE, P, {info}[i].present)"]

    def mask_lines(self, has_own: bool) -> list[str]:
        """Write what each seat may do: what the author's `mask` says, or the first action alone where it is ignored."""
        if not self.choices:
            return []
        width, firsts = sum(self.choices), [sum(self.choices[:k]) for k in range(len(self.choices))]
        lines = self._each(f"for a in range({width}):", f"    action_mask[i, j, a] = {not has_own}")
        own = ["mask(LANE, P, action_mask[i])"] if has_own else []
        own += [
            line
            for seat, count in enumerate(self.own)
            if count < width
            for line in (f"for a in range({count}, {width}):", f"    action_mask[i, {seat}, a] = False")
        ]
        ignored = ["j != now_on"] if self.in_turn else []
        ignored += ["not info[i].present[j]"] if self.may_leave else []
        if not ignored:
            return [*lines, *own]
        return [
            *lines,
            *own,
            *self._each(
                f"if {' or '.join(ignored)}:",
                f"    for a in range({width}):",
                f"        action_mask[i, j, a] = {' or '.join(f'a == {first}' for first in firsts)}",
            ),
        ]

    def _each(self, *lines: str) -> list[str]:
        """The lines for every seat j."""
        return [f"for j in range({self.count}):", *("    " + line for line in lines)]


def seats_of(kernel: Kernel) -> Seats | None:
    """How the seats of a kernel play; None if it has none."""
    if not kernel.seats:
        return None
    space, choices, own = kernel.seat_action_space, tuple[int, ...](), tuple[int, ...]()
    if kernel.masks_actions:
        choices = tuple(map(int, space.nvec.flat)) if isinstance(space, gym.spaces.MultiDiscrete) else (int(space.n),)  # type: ignore[attr-defined]
        if space is not kernel.action_space:
            own = tuple(int(seat.n) for seat in kernel.action_space)  # type: ignore[union-attr]
    functions = (kernel.function(name) is not None for name in ("pay", "turn", "present"))
    return Seats(kernel.seats, choices, own, *functions)


def check_bots(kernel: Kernel, numbers: np.ndarray) -> None:
    """`ConfigError` for a number in the field `seat` that is nobody's."""
    unknown = numbers[(numbers < 0) | (numbers > len(kernel.bots))]
    if unknown.size:
        listed = ", ".join(f"{k + 1} for {bot}" for k, bot in enumerate(kernel.bots))
        raise ConfigError(
            f"Nobody has the number {unknown.flat[0]} in {kernel.name}. Use 0 for whoever acts from outside, {listed}."
        )
