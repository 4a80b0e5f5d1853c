"""What batches of ordinary environments share, whoever runs the groups of lanes: in and out of the buffers."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import StateError
from shoal.seeding import Seed, Seeds, lane_seeds
from shoal.trees import assign_tree, index_tree, named_leaves
from shoal.vector.batch import Array, Batch, Info, State, Step, episode_over, one_per_lane
from shoal.vector.episodes import Episodes, Rows
from shoal.vector.lanes.buffers import Buffers
from shoal.vector.lanes.faults import Fault
from shoal.vector.lanes.group import Report
from shoal.vector.lanes.infos import to_dense
from shoal.vector.lanes.making import Traits
from shoal.vector.lanes.values import checked_actions

_ALL = slice(None)
_FAULTS_KEPT = 100


class LaneBatch(Batch):
    """A batch of `gymnasium.Env` lanes over `Buffers`. A backend runs the groups: the `_run_*` methods."""

    buffers: Buffers

    def __init__(
        self, num_envs: int, traits: Traits, buffers: Buffers, autoreset_mode: AutoresetMode | str, copy: bool
    ) -> None:
        super().__init__(
            num_envs,
            traits.observation_space,
            traits.action_space,
            autoreset_mode=autoreset_mode,
            has_action_mask=traits.mask_source is not None,
            copy=copy,
            metadata=traits.metadata,
        )
        self.render_mode = traits.render_mode
        self.buffers = buffers
        self.buffers.seed[:] = -1
        self.num_faults = 0
        self.faults: deque[Fault] = deque(maxlen=_FAULTS_KEPT)
        self._episodes = Episodes(num_envs)
        self._lane_numbers = np.arange(num_envs)

    # ------------------------------------------------------------------ what a backend writes

    @abstractmethod
    def _run_reset(
        self, lanes: np.ndarray, seeds: list[int | None], options: dict[str, object] | None
    ) -> list[Report]: ...

    @abstractmethod
    def _run_step(self) -> list[Report]: ...

    @abstractmethod
    def _run_save(self) -> list[bytes]: ...

    @abstractmethod
    def _run_load(self, saved: list[bytes]) -> None: ...

    @abstractmethod
    def _run_call(self, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> list[Any]: ...

    @abstractmethod
    def _run_set_attr(self, name: str, values: list[Any]) -> None: ...

    # ------------------------------------------------------------------ attributes and methods of the environments

    def call(self, name: str, *args: object, **kwargs: object) -> tuple[Any, ...]:
        """What method `name` of each lane's environment, or of a wrapper of it, returns; the value if it is no method.

        The batch does not look at what it does: begin episodes with `reset` and not with `call("reset")`.
        """
        self._refuse_if_closed("call")
        return tuple(self._run_call(name, args, kwargs))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Attribute `name` of each lane's environment."""
        return self.call(name)

    def render(self) -> tuple[Any, ...]:
        """What `render()` of each lane's environment returns, e.g. [H, W, 3] uint8 with render_mode="rgb_array"."""
        return self.call("render")

    def set_attr(self, name: str, values: object) -> None:
        """Set attribute `name` of every lane's environment: one value for all, or a list or tuple of one per lane.

        An environment that takes the place of one that crashed (`on_fault="restart"`) is as it was made.
        """
        self._refuse_if_closed("set_attr")
        self._run_set_attr(name, one_per_lane(name, values, self.num_envs))

    # ------------------------------------------------------------------ the contract

    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: dict[str, object]) -> Info:
        lanes = self._lane_numbers if mask is None else np.flatnonzero(mask)
        given = lane_seeds(seed, self.num_envs) if isinstance(seed, int | Seed) else seed or [None] * self.num_envs
        passed_on = {key: value for key, value in options.items() if key != "reset_mask"}
        reports = self._run_reset(lanes, [given[lane] for lane in lanes], passed_on or None)
        self._episodes.begin(lanes)
        assign_tree(out.obs, lanes, index_tree(self.buffers.obs, lanes))
        if out.action_mask is not None and self.buffers.action_mask is not None:
            out.action_mask[lanes] = self.buffers.action_mask[lanes]
        return self._infos(reports, out.action_mask, self.num_envs)

    def _step_lanes(self, action: Array, out: Step) -> Info:
        self._refuse_ended(_ALL)
        assign_tree(self.buffers.action, _ALL, checked_actions(action, self.single_action_space, self.num_envs))
        resetting = self._lanes_to_reset(_ALL)
        return self._deliver(_ALL, self._run_step(), resetting, out)

    def _deliver(self, lanes: Rows, reports: list[Report], resetting: np.ndarray | None, out: Step) -> Info:
        """Results of `lanes` (indices, or `slice(None)`) out of the buffers into the rows of `out`; their infos."""
        buffers, num_rows = self.buffers, len(out.reward)
        assign_tree(out.obs, _ALL, index_tree(buffers.obs, lanes))
        out.reward[:] = buffers.reward[lanes]
        out.terminated[:] = buffers.terminated[lanes]
        out.truncated[:] = buffers.truncated[lanes]
        if out.action_mask is not None and buffers.action_mask is not None:
            out.action_mask[:] = buffers.action_mask[lanes]
        row_of_lane = None if isinstance(lanes, slice) else _rows_of_lanes(lanes, self.num_envs)
        info = self._infos(reports, out.action_mask, num_rows, row_of_lane)
        self._episodes.advance(lanes, out.reward)
        if resetting is not None and resetting.any():
            self._episodes.begin(self._lane_numbers[lanes][resetting])
        done = out.terminated | out.truncated
        if done.any():
            self._finish(lanes, done, reports, row_of_lane, out, info)
        return info

    def _finish(
        self,
        lanes: Rows,
        done: np.ndarray,
        reports: list[Report],
        row_of_lane: np.ndarray | None,
        out: Step,
        info: Info,
    ) -> None:
        """Add to `info` what is due where an episode ended, and start counting the next ones."""
        info["episode"], info["_episode"] = self._episodes.summary(lanes), done
        rows = done.nonzero()[0]
        ended = self._lane_numbers[lanes][rows]
        self._episodes.begin(ended)
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            assign_tree(out.final_obs, rows, index_tree(self.buffers.final_obs, ended))
            info["final_obs"], info["_final_obs"] = out.final_obs, done
            finals = [report.final_infos for report in reports if report.final_infos]
            info["final_info"], info["_final_info"] = to_dense(finals, len(done), row_of_lane), done

    def _infos(
        self, reports: list[Report], action_mask: Array | None, num_rows: int, row_of_lane: np.ndarray | None = None
    ) -> Info:
        parts = [report.infos for report in reports if report.infos]
        info = to_dense(parts, num_rows, row_of_lane) if parts else {}
        if action_mask is not None:
            info["action_mask"] = action_mask
        faults = [fault for report in reports for fault in report.faults]
        if faults:
            self.num_faults += len(faults)
            self.faults.extend(faults)
            codes = np.zeros(num_rows, np.int8)
            for fault in faults:
                codes[fault.lane if row_of_lane is None else row_of_lane[fault.lane]] = fault.kind
            info["fault"], info["_fault"] = codes, codes != 0
        return info

    # ------------------------------------------------------------------ moments

    def _ended(self, lanes: Rows) -> np.ndarray:
        """[n] bool: the episode is over, the user knows, and the lane waits for its reset (NEXT_STEP, DISABLED)."""
        return self.buffers.ended[lanes].copy()

    def _refuse_ended(self, lanes: Rows) -> None:
        """DISABLED: an ended lane must be reset before it steps."""
        if self.autoreset_mode is AutoresetMode.DISABLED and (ended := self._ended(lanes)).any():
            raise episode_over(self._lane_numbers[lanes][ended][0])

    def _lanes_to_reset(self, lanes: Rows) -> np.ndarray | None:
        """NEXT_STEP: [n] bool, the lanes whose coming step is their reset."""
        return self._ended(lanes) if self.autoreset_mode is AutoresetMode.NEXT_STEP else None

    # ------------------------------------------------------------------ state

    def _get_state(self) -> State:
        saved = self._run_save()
        return {
            "lane_bytes": np.frombuffer(b"".join(saved), np.uint8).copy(),
            "lane_sizes": np.array([len(data) for data in saved], np.int64),
            "ended": self.buffers.ended.copy(),
            "seed": self.buffers.seed.copy(),
            "restarts": self.buffers.restarts.copy(),
            **{name: leaf.copy() for name, leaf in named_leaves(self.buffers.obs, "obs")},
            **self._episodes.get_state(),
        }

    def _set_state(self, state: State) -> None:
        sizes = state.get("lane_sizes")
        if sizes is None or len(sizes) != self.num_envs:
            given = "no lanes" if sizes is None else f"{len(sizes)} lanes"
            raise StateError(
                f"set_state() got the state of {given}; this batch has {self.num_envs}. "
                "Pass what get_state() of a batch of the same environments and the same num_envs returned."
            )
        stops = np.cumsum(sizes)
        data = state["lane_bytes"].tobytes()
        self._run_load([data[stop - size : stop] for stop, size in zip(stops, sizes, strict=True)])
        self.buffers.ended[:] = state["ended"]
        self.buffers.seed[:] = state["seed"]
        self.buffers.restarts[:] = state["restarts"]
        for name, leaf in named_leaves(self.buffers.obs, "obs"):
            leaf[:] = state[name]
        self._episodes.set_state(state)


def _rows_of_lanes(lanes: np.ndarray, num_envs: int) -> np.ndarray:
    rows = np.zeros(num_envs, np.intp)
    rows[lanes] = np.arange(len(lanes))
    return rows
