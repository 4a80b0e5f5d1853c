"""A group of lanes in one process: the loop that steps them, and everything that can happen to a lane in it.

`SerialBatch` has one group, each worker process of `WorkerBatch` has one, so both give the same trajectories.
Inside a group, `row` counts its own lanes from 0; reports speak of `lane`, the number in the whole batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import LaneFault
from shoal.seeding import lane_seeds
from shoal.trees import Tree, assign_tree, copy_tree, index_tree
from shoal.vector.lanes.buffers import Buffers, row_views
from shoal.vector.lanes.faults import CRASHES, Fault, describe_exception, fault_kind
from shoal.vector.lanes.infos import CONTRACT_KEYS, Columns, to_columns
from shoal.vector.lanes.making import EnvMaker, Traits, check_alike, close_quietly, make_lane
from shoal.vector.lanes.own_random import OwnRandom, Turns, split
from shoal.vector.lanes.snapshot import Snapshots
from shoal.vector.lanes.values import as_info, as_mask, as_reward, conformer, rows_of


@dataclass
class Report:
    """What a step or reset of some lanes gave besides the buffers. Empty for lanes without infos and faults."""

    infos: Columns = field(default_factory=dict)
    final_infos: Columns = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.infos or self.final_infos or self.faults)


class LaneGroup:
    """Some lanes of a batch, stepped one after the other.

    Args:
        make: makes one environment.
        traits: what `probe` found out about it.
        buffers: the rows of these lanes.
        first_lane: number of the first of them in the batch.
        restart: put a fresh environment in the place of one that faults, instead of raising `LaneFault`.
        current: [1] int64, told which lane is at work (-1: none), so that a parent can name a lane that hangs.
    """

    def __init__(
        self,
        make: EnvMaker,
        traits: Traits,
        buffers: Buffers,
        *,
        autoreset_mode: AutoresetMode,
        first_lane: int = 0,
        restart: bool = False,
        current: np.ndarray | None = None,
    ) -> None:
        self.make, self.traits, self.buffers = make, traits, buffers
        self.first_lane, self.num_lanes = first_lane, len(buffers.reward)
        self.restart = restart
        self.same_step = autoreset_mode is AutoresetMode.SAME_STEP
        self.next_step = autoreset_mode is AutoresetMode.NEXT_STEP
        self._conform = conformer(traits.observation_space)
        # single numbers are written through memoryviews, which take half the time of arrays
        self._current = (np.full(1, -1, np.int64) if current is None else current).data
        self._reward: Any = buffers.reward.data
        self._terminated, self._truncated = buffers.terminated.data, buffers.truncated.data
        self._is_leaf = isinstance(buffers.obs, np.ndarray)
        self._obs_rows = row_views(buffers.obs, self.num_lanes)
        self._final_rows = row_views(buffers.final_obs, self.num_lanes)
        self._snapshots = Snapshots(make)
        self._turns = Turns([None] * self.num_lanes)
        self._infos: list[tuple[int, dict[str, object]]] = []
        self._final_infos: list[tuple[int, dict[str, object]]] = []
        self._faults: list[Fault] = []
        self.envs: list[gym.Env] = []
        self._steps: list[Any] = []
        try:
            for row in range(self.num_lanes):
                self._install(row, make_lane(make, first_lane + row))
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ what batches and workers call

    def reset(self, rows: Sequence[int], seeds: Sequence[int | None], options: dict[str, object] | None) -> Report:
        """Begin new episodes in `rows`: writes their obs and masks."""
        with self._taking_turns():
            for row, seed in zip(rows, seeds, strict=True):
                self._current[0] = self.first_lane + row
                if seed is not None:
                    self.buffers.seed[row] = seed % 2**63
                    self.buffers.restarts[row] = 0
                try:
                    self._begin(row, seed, options)
                except CRASHES as error:
                    self._replace(row, "reset()", error)
                    self._begin_fresh(row, seed, options)
        return self._take_report()

    def step(self, rows: Sequence[int] | None = None) -> Report:
        """Step `rows` (None: all) with the actions in the buffers, autoreset included. Fills the buffers."""
        # a copy: an environment may keep its action, and the buffer holds another one a step later
        action = self.buffers.action
        actions = copy_tree(action) if rows is None else index_tree(action, rows)
        with self._taking_turns():
            self._step_rows(range(self.num_lanes) if rows is None else rows, actions)
        return self._take_report()

    def _step_rows(self, rows: Sequence[int], actions: Tree) -> None:
        steps, first, current, give_turn = self._steps, self.first_lane, self._current, self._turns.give
        reward_out, terminated_out, truncated_out = self._reward, self._terminated, self._truncated
        conform, obs_rows, is_leaf, mask_source = self._conform, self._obs_rows, self._is_leaf, self.traits.mask_source
        logs = self._snapshots.logs
        for row, action in zip(rows, rows_of(self.traits.action_space, actions), strict=True):
            current[0] = first + row
            give_turn(row)
            if self.next_step and self.buffers.ended[row]:
                self._reset_ended(row)
                continue
            try:
                if logs is not None:
                    logs[row].add(action)
                obs, reward, terminated, truncated, info = steps[row](action)
                obs = conform(obs)
                if info.__class__ is not dict:
                    info = as_info(info)
                reward_out[row] = as_reward(reward)
                terminated_out[row] = terminated
                truncated_out[row] = truncated
                if terminated or truncated:
                    if terminated:
                        truncated_out[row] = False  # an ending has one cause, and TimeLimit does not look for another
                    self._end(row, obs, info)
                    continue
                if mask_source:
                    self._write_mask(row, info)
            except LaneFault:
                raise
            except CRASHES as error:
                self._replace(row, "step()", error)
                self._begin_anew(row)
                continue
            if is_leaf:
                obs_rows[row][...] = obs
            else:
                assign_tree(obs_rows[row], ..., obs)
            if info:
                self._infos.append((first + row, info))

    def revive_all(self) -> Report:
        """Every lane of a worker that was lost begins anew: its episode counts as truncated."""
        with self._taking_turns():
            for row in range(self.num_lanes):
                self._current[0] = self.first_lane + row
                self._begin_anew(row)
        return self._take_report()

    def save(self) -> list[bytes]:
        """The state of each environment, and of what it draws from."""
        saved = [self._snapshots.save(env, row, self.first_lane + row) for row, env in enumerate(self.envs)]
        return [data if own is None else data + own.saved() for data, own in zip(saved, self._turns.own, strict=True)]

    def load(self, saved: list[bytes]) -> None:
        """Go back to what `save` returned."""
        for row, whole in enumerate(saved):
            data, self._turns.own[row] = split(whole)
            env, log = self._snapshots.load(self.envs[row], data)
            if env is not self.envs[row]:
                self._install(row, env)
            if log is not None and self._snapshots.logs is not None:
                self._snapshots.logs[row] = log

    def call(self, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> list[Any]:
        """What method `name` of each environment returns; its value where it is not a method."""
        results = []
        with self._taking_turns():
            for row, env in enumerate(self.envs):
                lane = self._current[0] = self.first_lane + row
                self._turns.give(row)
                member = env.get_wrapper_attr(name)
                try:
                    results.append(member(*args, **kwargs) if callable(member) else member)
                except CRASHES as error:
                    raise LaneFault(describe_exception(lane, f"{name}()", error), lane) from error
        return results

    def set_attr(self, name: str, values: list[Any]) -> None:
        """Set attribute `name` of each environment."""
        for env, value in zip(self.envs, values, strict=True):
            env.set_wrapper_attr(name, value)

    def close(self) -> None:
        """Close every environment; errors in doing so are of no further interest."""
        for env in self.envs:
            close_quietly(env)
        self.envs.clear()

    # ------------------------------------------------------------------ episodes

    def _install(self, row: int, env: gym.Env) -> None:
        check_alike(env, self.first_lane + row, self.traits)
        if row == len(self.envs):
            self.envs.append(env)
            self._steps.append(env.step)
        else:
            close_quietly(self.envs[row])
            self.envs[row], self._steps[row] = env, env.step
        self._snapshots.watch(row, env)

    def _begin(self, row: int, seed: int | None, options: dict[str, object] | None = None) -> None:
        if self._snapshots.logs is not None:
            self._snapshots.logs[row].begin(self.envs[row], seed, options)
        self._give_turn(row, seed)
        obs, info = self.envs[row].reset(seed=seed, options=options)
        obs, info = self._conform(obs), as_info(info)
        if self.traits.mask_source:
            self._write_mask(row, info)
        assign_tree(self._obs_rows[row], ..., obs)
        self.buffers.ended[row] = False
        if info:
            self._infos.append((self.first_lane + row, info))

    def _give_turn(self, row: int, seed: int | None) -> None:
        """Lane `row` draws from now on; from generators of its own, if it is given a seed."""
        if seed is not None:
            self._turns.own[row] = OwnRandom(seed % 2**64)
        self._turns.give(row)

    @contextlib.contextmanager
    def _taking_turns(self) -> Iterator[None]:
        """Lanes are at work, one by one; after that it is nobody's turn."""
        try:
            yield
        finally:
            self._turns.end()
            self._current[0] = -1

    def _end(self, row: int, obs: Tree, info: dict[str, object]) -> None:
        """The episode of `row` ended with `obs`: begin the next one now, or say that the lane waits for it."""
        lane = self.first_lane + row
        if not self.same_step:
            if self.traits.mask_source:
                self._write_mask(row, info)
            assign_tree(self._obs_rows[row], ..., obs)
            self.buffers.ended[row] = True
            if info:
                self._infos.append((lane, info))
            return
        assign_tree(self._final_rows[row], ..., obs)
        if info:
            self._final_infos.append((lane, dict(info)))
        self._begin_next(row)

    def _reset_ended(self, row: int) -> None:
        """NEXT_STEP: this step of `row` is its reset."""
        self.buffers.reward[row] = 0.0
        self.buffers.terminated[row] = self.buffers.truncated[row] = False
        self._begin_next(row)

    def _begin_next(self, row: int) -> None:
        """The episode after one that ended."""
        try:
            self._begin(row, None)
        except CRASHES as error:
            self._replace(row, "reset()", error)
            self._begin_fresh(row, self._restart_seed(row))

    def _write_mask(self, row: int, info: dict[str, object]) -> None:
        if self.traits.mask_source == "method":
            mask = self.envs[row].get_wrapper_attr("action_masks")()
        else:
            mask = info.get("action_mask")
        masks = self.buffers.action_mask
        assert masks is not None
        masks[row] = as_mask(mask, masks.shape[1])

    # ------------------------------------------------------------------ faults

    def _replace(self, row: int, during: str, error: BaseException) -> None:
        """Raise the fault; where lanes are restarted, note it and put a fresh environment in place."""
        kind, lane = fault_kind(error), self.first_lane + row
        reason = describe_exception(lane, during, error)
        if not self.restart:
            self._take_report()
            raise LaneFault(reason, lane) from error
        self._faults.append(Fault(lane, kind, reason))
        self._install(row, make_lane(self.make, lane))

    def _begin_anew(self, row: int) -> None:
        """The step of `row` is void: its episode is truncated at the last good observation, and the first one of the
        fresh environment begins."""
        self.buffers.reward[row] = 0.0
        self.buffers.terminated[row], self.buffers.truncated[row] = False, True
        if self.same_step:
            assign_tree(self._final_rows[row], ..., self._obs_rows[row])
            self._begin_fresh(row, self._restart_seed(row))
        else:
            self._begin_fresh(row, self._restart_seed(row), only_seed=True)
            self.buffers.ended[row] = True

    def _begin_fresh(
        self, row: int, seed: int | None, options: dict[str, object] | None = None, only_seed: bool = False
    ) -> None:
        """Reset the fresh environment in `row`; a second fault in a row is no accident and is raised.

        With `only_seed` the observation is dropped: the lane's next step or reset is to begin the episode.
        """
        try:
            if only_seed:
                self._give_turn(row, seed)
                self.envs[row].reset(seed=seed)
            else:
                self._begin(row, seed, options)
        except CRASHES as error:
            lane, during = self.first_lane + row, "reset() of a fresh environment after a fault"
            raise LaneFault(describe_exception(lane, during, error), lane) from error

    def _restart_seed(self, row: int) -> int | None:
        """A seed for the environment that follows a fault: a function of the lane's seed and how many came before."""
        self.buffers.restarts[row] += 1
        seed, count = int(self.buffers.seed[row]), int(self.buffers.restarts[row])
        return None if seed < 0 else lane_seeds(seed, count + 1)[count]

    def _take_report(self) -> Report:
        report = Report(faults=self._faults)
        if self._infos:
            report.infos = to_columns(self._infos, skip=CONTRACT_KEYS)
        if self._final_infos:
            report.final_infos = to_columns(self._final_infos)
        self._infos, self._final_infos, self._faults = [], [], []
        return report
