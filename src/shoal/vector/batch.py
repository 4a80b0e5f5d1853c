"""The contract: what every batch of environments promises. Read this file first.

A *lane* is one environment; a *batch* is many lanes behind one `gymnasium.vector.VectorEnv`.
B = num_envs is the leading axis of every array. Beyond Gymnasium, a batch promises:

- **Lanes are independent.** Lane i's trajectory depends on (seed, i, its actions) and nothing else: not on the
  backend, the number of threads or workers, or how many other lanes there are.
- **Autoreset is explicit.** `metadata["autoreset_mode"]` is kept to the letter:
  SAME_STEP (default): `step` returns the first observation of the new episode; the last one of the old episode is
  in `info["final_obs"]`. NEXT_STEP: the step after an end ignores its action and returns the reset observation with
  reward 0. DISABLED: an ended lane must be reset with `reset(options={"reset_mask": mask})` before the next step.
- **Infos are dense.** Every info is an array with leading axis B, never a list of dicts. Where an episode ended in
  this step (and only then) the keys `episode` {r, l, t} + `_episode` are present, and under SAME_STEP also
  `final_obs` + `_final_obs` and `final_info` + `_final_info`. `_x` is the [B] mask of the rows of `x` that mean
  something; the other rows are unspecified.
- **No hidden copies.** `step_into` writes into buffers that the caller owns. `step` uses buffers of the batch and
  copies them unless `copy=False`, in which case what it returns is valid until the next call.
- **State is a value.** `set_state(get_state())` changes nothing, bit for bit; the value is plain arrays.
- **Masks are first class.** A batch whose lanes forbid actions has `has_action_mask` and delivers
  `info["action_mask"]` [B, A], True = allowed, for the observation just returned.
- **Faults are loud.** Bad input and broken lanes raise a `ShoalError` that names the lane and the remedy; nothing
  has moved when an action is refused.

A lane may have **seats**, for several who act in it: `num_seats` S. Observations, actions, masks and rewards then have
an axis S after B, and so has `info["episode"]["r"]`; `seat_observation_space` and `seat_action_space` are those of one
seat. Seats may differ in how many numbers or choices they have: these spaces then have room for each of them,
`spaces_of_seats` says what is whose, rows are filled up with zeros, and the mask forbids what a seat does not have. An
episode begins and ends for the whole lane: `terminated` and `truncated` stay [B]. Where
seats play in turn, `info["turn"]` [B] says whose action counts; those of the others are ignored. Where seats may leave
before the others, `info["present"]` [B, S] says who is still there: who has left stays away, is paid nothing, and is
not on turn. Where actions are discrete and some are ignored, a mask allows such a seat the first action alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from shoal.errors import ConfigError, StateError
from shoal.platform import free_memory
from shoal.seeding import Seed, Seeds, check_run_seed
from shoal.trees import Tree, copy_tree, leaves
from shoal.vector.spaces import SeatSpace, common, empty_batch, num_actions, seated

Array = Any  # numpy.ndarray or torch.Tensor
State = dict[str, np.ndarray]
Info = dict[str, Tree]
SURELY_FIT = 1 << 16  # lanes whose observations are not worth measuring


class Drawn(NamedTuple):
    """A parameter that every episode draws anew, and the values [B] that were drawn."""

    low: float
    high: float
    values: np.ndarray


class Step(NamedTuple):
    """Buffers that one step fills. Leading axis B, one row per lane; then S where lanes have seats."""

    obs: Tree  # [B, *obs]       what to act on next; already reset where an episode ended (SAME_STEP)
    reward: Array  # [B]         float32; [B, S] where lanes have seats
    terminated: Array  # [B]     bool: the task ended, nothing lies beyond
    truncated: Array  # [B]      bool: the clock ended, bootstrap from final_obs
    final_obs: Tree  # [B, *obs] true successor, written only in rows where an episode ended (SAME_STEP)
    action_mask: Array | None = None  # [B, A] bool, True = allowed in obs; None if the lanes have no mask


class Batch(VectorEnv):
    """Many lanes behind one contract. `step` is `step_into` on buffers of our own.

    A backend calls `super().__init__` once it knows its spaces and implements `_reset_lanes`, `_step_lanes`,
    `_get_state` and `_set_state`.
    """

    state_is_data = False
    """Whether `set_state` only copies numbers. Where it may run code (a pickle), only one's own runs are resumed."""
    statistics = True
    """Whether `step` puts `episode` into infos. Off makes room for Gymnasium's `RecordEpisodeStatistics`."""
    closed = True  # until `__init__` has run: what was never made must not be closed when it is collected

    def __init__(
        self,
        num_envs: int,
        single_observation_space: SeatSpace,
        single_action_space: SeatSpace,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        has_action_mask: bool = False,
        copy: bool = True,
        metadata: Mapping[str, object] | None = None,
        seats: int = 0,
    ) -> None:
        """`seats`: how many act in each lane; the spaces are then those of one seat, or a list with one for each seat.
        0 for lanes without that axis."""
        self.num_envs = check_num_envs(num_envs)
        self.num_seats = seats
        given = single_observation_space, single_action_space
        self.seat_observation_space, self.seat_action_space = map(common, given)
        self._own_spaces = [[space] * seats if isinstance(space, gym.Space) else list(space) for space in given]
        self.single_observation_space = seated(single_observation_space, seats)
        self.single_action_space = seated(single_action_space, seats)
        check_room(self.num_envs, self.single_observation_space)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.autoreset_mode = check_autoreset_mode(autoreset_mode)
        self.metadata = {**(metadata or {}), "autoreset_mode": self.autoreset_mode}
        self.has_action_mask = has_action_mask
        self.copy = copy
        self._buffers: Step | None = None
        self._was_reset = False
        self.closed = False

    # ------------------------------------------------------------------ what a user calls

    def reset(self, *, seed: Seeds = None, options: Mapping[str, object] | None = None) -> tuple[Tree, Info]:
        """Begin new episodes. Returns obs [B, *obs] and infos.

        Args:
            seed: an int, or a `Seed`, starts every lane's random stream anew from (seed, lane); a list gives each
                lane its own; None continues the streams (fresh entropy the first time).
            options: `{"reset_mask": [B] bool}` resets only these lanes and leaves the others untouched.
        """
        if self._buffers is None:
            self._buffers = self.empty_step()
        info = self.reset_into(self._buffers, seed=seed, options=options)
        return (copy_tree(self._buffers.obs), copy_tree(info)) if self.copy else (self._buffers.obs, info)

    def step(self, actions: Array) -> tuple[Tree, Array, Array, Array, Info]:
        """Step every lane. Takes [B, *action]; returns obs, reward, terminated, truncated, info."""
        out = self._buffers
        if out is None:
            out = self._buffers = self.empty_step()
        info = self.step_into(actions, out)
        if not self.statistics:
            info = {key: value for key, value in info.items() if key not in ("episode", "_episode")}
        if self.copy:
            flags = copy_tree(out.reward), copy_tree(out.terminated), copy_tree(out.truncated)
            return copy_tree(out.obs), *flags, copy_tree(info)
        return out.obs, out.reward, out.terminated, out.truncated, info

    def reset_into(self, out: Step, *, seed: Seeds = None, options: Mapping[str, object] | None = None) -> Info:
        """`reset` into the caller's buffers. Rows of lanes that are not reset keep what they hold."""
        self._refuse_if_closed("reset")
        mask = check_reset_mask(options, self.num_envs)
        if mask is not None and not self._was_reset:
            raise StateError("reset(options={'reset_mask': ...}) came before any full reset. Call reset() once first.")
        info = self._reset_lanes(out, check_seed(seed, self.num_envs), mask, dict(options or {}))
        self._was_reset = True
        return info

    def step_into(self, action: Array, out: Step) -> Info:
        """`step` into the caller's buffers (see `empty_step`). The infos returned are valid until the next call."""
        if not self._was_reset or self.closed:
            self._refuse_if_closed("step")
            raise StateError("step() came before reset(). Call reset() first to begin the episodes.")
        return self._step_lanes(action, out)

    def empty_step(self) -> Step:
        """Buffers of the right shapes and types for one step of this batch."""
        return self._empty_rows(self.num_envs)

    def _empty_rows(self, count: int) -> Step:
        """Buffers for `count` of the lanes."""
        obs, final_obs = (empty_batch(self.single_observation_space, count) for _ in range(2))
        rows = (count, self.num_seats) if self.num_seats else (count,)
        mask = np.ones((*rows, num_actions(self.seat_action_space)), np.bool_) if self.has_action_mask else None
        terminated, truncated = np.zeros((2, count), np.bool_)
        return Step(obs, np.zeros(rows, np.float32), terminated, truncated, final_obs, mask)

    def get_state(self) -> State:
        """Everything the batch remembers, as a flat dict of plain arrays that the caller owns."""
        self._refuse_if_closed("get_state")
        if not self._was_reset:
            raise StateError("get_state() came before reset(): there are no episodes to save yet.")
        return self._get_state()

    def set_state(self, state: State) -> None:
        """Go back to what `get_state` returned, exactly. The next `step` continues from there."""
        self._refuse_if_closed("set_state")
        self._set_state(state)
        self._was_reset = True

    def cpu_seconds_elsewhere(self) -> float:
        """CPU seconds so far of the processes that step lanes for this one; 0 where there are none."""
        return 0.0

    @property
    def num_lanes(self) -> int:
        """Environments in the batch: `num_envs`, unless the rows of this batch are seats of fewer lanes."""
        return self.num_envs

    @property
    def spaces_of_seats(self) -> list[tuple[gym.Space, gym.Space]]:
        """What each seat observes and does: spaces that may be narrower than those that have room for all seats."""
        return list(zip(*self._own_spaces, strict=True))

    @property
    def pattern(self) -> Batch:
        """Lanes of this kind in this process, to ask and to change settings in: these, unless they are elsewhere."""
        return self

    def drawn(self) -> dict[str, Drawn]:
        """Parameters that every episode draws anew: where from, and what the running ones have drawn."""
        return {}

    def get_settings(self) -> Any:
        """What was set since the lanes were made and is not part of their state, e.g. opponents; it can be pickled."""
        return None

    def set_settings(self, settings: Any) -> None:
        """Take over what `get_settings` of other lanes of this kind returned; where nothing changed this is quick."""

    def __del__(self) -> None:
        """A batch that is dropped leaves nothing running. (Gymnasium 1.4 no longer does this for us.)"""
        if not self.closed:
            self.close()

    # ------------------------------------------------------------------ what a backend writes

    @abstractmethod
    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: dict[str, object]) -> Info:
        """Reset the lanes in `mask` (all if None): write rows of `out.obs` (and `out.action_mask`), return infos."""

    @abstractmethod
    def _step_lanes(self, action: Array, out: Step) -> Info:
        """Check the actions, step, fill `out`, return infos."""

    @abstractmethod
    def _get_state(self) -> State: ...

    @abstractmethod
    def _set_state(self, state: State) -> None: ...

    # ------------------------------------------------------------------ shared checks

    def _refuse_if_closed(self, call: str) -> None:
        if self.closed:
            raise StateError(f"{call}() came after close(). Make a new batch to go on.")

    def _lanes_to_seed(self, seed: Seeds, which: np.ndarray) -> np.ndarray:
        """[B] bool: the lanes of `which` whose random streams begin anew, which are all of them at the first reset."""
        if not self._was_reset:
            return which
        return which & ([s is not None for s in seed] if isinstance(seed, list) else seed is not None)


def episode_over(lane: int) -> StateError:
    """The error for stepping a lane that waits for its reset."""
    return StateError(
        f"The episode of lane {lane} has ended and autoreset is disabled. "
        "Reset it with reset(options={'reset_mask': mask}) before the next step."
    )


def check_num_envs(num_envs: object) -> int:
    """`num_envs` as an int of at least 1, or a `ConfigError`."""
    if isinstance(num_envs, bool) or not isinstance(num_envs, int | np.integer):
        raise ConfigError(f"num_envs={num_envs!r} is not a whole number. Pass an int of at least 1.")
    if num_envs < 1:
        raise ConfigError(f"num_envs must be at least 1, not {num_envs}.")
    return int(num_envs)


def check_room(num_envs: int, observation_space: gym.Space) -> None:
    """`ConfigError` if observations and their successors alone need more than the free memory."""
    if num_envs < SURELY_FIT:
        return
    each, free = sum(leaf.nbytes for leaf in leaves(empty_batch(observation_space, 2))), free_memory()
    if free is not None and num_envs * each > free:
        raise ConfigError(
            f"num_envs={num_envs:,} lanes need at least {num_envs * each / 2**30:,.1f} GiB, but "
            f"{free / 2**30:,.1f} GiB are free here. Lower num_envs."
        )


def one_per_lane(name: str, values: object, num_envs: int) -> list[Any]:
    """[B] values of an attribute: a list or tuple has one for each lane, anything else is for all of them."""
    if not isinstance(values, list | tuple):
        return [values] * num_envs
    if len(values) != num_envs:
        raise ConfigError(
            f"set_attr({name!r}) got {len(values)} values for {num_envs} lanes. Pass one value, or one per lane."
        )
    return list(values)


def check_autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """The `AutoresetMode` meant by a member or by its name in any spelling ("same_step", "SameStep")."""
    if isinstance(mode, AutoresetMode):
        return mode
    wanted = str(mode).replace("_", "").lower()
    for member in AutoresetMode:
        if member.value.lower() == wanted:
            return member
    raise ConfigError(f"autoreset_mode={mode!r} is unknown. Use 'same_step', 'next_step' or 'disabled'.")


def check_seed(seed: Seeds | np.integer | np.ndarray, num_envs: int) -> Seeds:
    """A seed as `reset` takes it, or a `ConfigError`."""
    if seed is None or isinstance(seed, Seed):
        return seed
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        return check_run_seed(int(seed))
    if isinstance(seed, list | tuple | np.ndarray):
        if len(seed) != num_envs:
            raise ConfigError(
                f"reset() got {len(seed)} seeds for {num_envs} lanes. Pass one int, or one seed per lane."
            )
        if all(s is None or (isinstance(s, int | np.integer) and s >= 0) for s in seed):
            return [None if s is None else int(s) for s in seed]
    raise ConfigError(f"seed={seed!r} is not a valid seed. Pass an int of at least 0, one such int per lane, or None.")


def check_reset_mask(options: Mapping[str, object] | None, num_envs: int) -> np.ndarray | None:
    """The [B] bool mask in `options["reset_mask"]`, or None where all lanes are meant."""
    mask = None if options is None else options.get("reset_mask")
    if mask is None:
        return None
    mask = np.asarray(mask)
    if mask.shape != (num_envs,) or mask.dtype != np.bool_:
        raise ConfigError(
            f"reset_mask has shape {mask.shape} and type {mask.dtype}; it must be {num_envs} booleans, one per lane."
        )
    if not mask.any():
        raise ConfigError("reset_mask selects no lane. Set at least one entry to True.")
    return mask
