"""Which lanes are between `send` and `recv`, and what is known about them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.errors import ActionError, StateError
from shoal.vector.lanes.faults import Fault
from shoal.vector.lanes.group import Report


class Flight:
    """The lanes that have been sent an action and not yet been received."""

    def __init__(self, num_envs: int) -> None:
        self.busy = np.zeros(num_envs, np.bool_)  # sent, and not back
        self.resetting = np.zeros(num_envs, np.bool_)  # sent, and this step is their reset (NEXT_STEP)
        self.ready: list[int] = []  # back, and not received, in order of arrival
        self.reports: list[Report] = []
        self.lost: dict[int, Fault] = {}  # restarted while nobody waited for them: told when they are next sent

    def __len__(self) -> int:
        return int(self.busy.sum()) + len(self.ready)

    def check_lanes(self, lanes: object) -> np.ndarray:
        """The lanes of a `send` as indices, or the error that says why they cannot fly."""
        num_envs = len(self.busy)
        array = np.asarray(lanes)
        if array.ndim != 1 or not len(array) or array.dtype.kind not in "iu":
            raise ActionError(f"send() got lanes={lanes!r}. Pass a list of lane numbers from 0 to {num_envs - 1}.")
        if array.min() < 0 or array.max() >= num_envs:
            raise ActionError(
                f"send() got lane {array.max() if array.min() >= 0 else array.min()} of a batch of {num_envs}."
            )
        if len(np.unique(array)) != len(array):
            raise ActionError(f"send() got some lane twice: {array.tolist()}. Pass each lane once.")
        taken = [lane for lane in array.tolist() if self.busy[lane] or lane in self.ready]
        if taken:
            raise StateError(
                f"send() to lane {taken[0]}, which has been sent an action already and not been received "
                f"({len(taken)} such lanes). Call recv() until it comes back."
            )
        return array

    def depart(self, lanes: np.ndarray, resetting: np.ndarray | None) -> list[int]:
        """`lanes` are on their way; returns those that a worker must step."""
        self.resetting[lanes] = False if resetting is None else resetting
        flying = [lane for lane in lanes.tolist() if lane not in self.lost]
        for lane in lanes.tolist():
            if lane in self.lost:
                self.ready.append(lane)
                self.reports.append(Report(faults=[self.lost.pop(lane)]))
        self.busy[flying] = True
        return flying

    def arrive(self, lanes: list[int], reports: Sequence[Report] = ()) -> None:
        """`lanes` are back, with what they had to report."""
        self.busy[lanes] = False
        self.ready.extend(lanes)
        self.reports.extend(reports)

    def crash(self, faults: list[Fault]) -> None:
        """The worker of these lanes was lost and has begun them anew."""
        for fault in faults:
            if self.busy[fault.lane] or fault.lane in self.ready:
                self.reports.append(Report(faults=[fault]))
                if self.busy[fault.lane]:
                    self.arrive([fault.lane])
            else:
                self.lost[fault.lane] = fault

    def land(self) -> tuple[np.ndarray, np.ndarray, list[Report]]:
        """All lanes that are back, which of them were reset, and their reports: received now."""
        lanes, reports = np.array(self.ready), self.reports
        self.ready, self.reports = [], []
        return lanes, self.resetting[lanes], reports

    def forget_lost(self, lanes: np.ndarray) -> Report:
        """`lanes` are being reset, so this is the moment to tell which of them were restarted unnoticed."""
        return Report(faults=[self.lost.pop(lane) for lane in lanes.tolist() if lane in self.lost])

    def refuse_unless_empty(self, call: str) -> None:
        """For calls that need every lane at home."""
        if len(self):
            raise StateError(f"{call}() came while {len(self)} lanes are in flight. recv() them first.")
