"""`KernelBatch`: a kernel's lanes stepped by one compiled loop, on threads where that pays."""

from __future__ import annotations

import time
from typing import Any

import numba
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError, KernelError, StateError
from shoal.vector.batch import Array, Batch, State, Step
from shoal.vector.kernel import driver
from shoal.vector.kernel.bound import table_of
from shoal.vector.kernel.compiler import load_compiled, load_uncompiled
from shoal.vector.kernel.dry_run import dry_run
from shoal.vector.kernel.kernel import Kernel
from shoal.vector.kernel.rng import seed_words
from shoal.vector.kernel.source import where
from shoal.vector.kernel.threads import Crew
from shoal.vector.seeding import lane_keys
from shoal.vector.spaces import as_actions, raise_action_outside

_MODES = {
    AutoresetMode.SAME_STEP: driver.SAME_STEP,
    AutoresetMode.NEXT_STEP: driver.NEXT_STEP,
    AutoresetMode.DISABLED: driver.DISABLED,
}


class KernelBatch(Batch):
    """Lanes of one `Kernel`.

    Args:
        kernel: a `Kernel` instance or class.
        lanes: values for fields of the state record, one for all lanes or [B], written before the first reset;
            a kernel whose `reset` leaves these fields alone has per-lane settings.
        compiled: False runs the same source as ordinary Python, for breakpoints; trajectories are the same.
        num_threads: an int, or "auto": as many as the process may use, and only while they are faster than one.
    """

    def __init__(
        self,
        kernel: Kernel | type[Kernel],
        num_envs: int,
        *,
        lanes: dict[str, Any] | None = None,
        compiled: bool = True,
        num_threads: int | str = "auto",
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        copy: bool = True,
    ) -> None:
        self.kernel = kernel if isinstance(kernel, Kernel) else kernel()
        super().__init__(
            num_envs,
            self.kernel.observation_space,
            self.kernel.action_space,
            autoreset_mode=autoreset_mode,
            has_action_mask=self.kernel.function("mask") is not None,
            copy=copy,
            metadata=dict(self.kernel.metadata),
        )
        self._mode = _MODES[self.autoreset_mode]
        self._low, self._high = driver.action_bounds(self.single_action_space)
        self._action_shape, self._action_dtype = self.action_space.shape, self.action_space.dtype
        self._params = self.kernel.param_record()
        self._state = np.zeros(self.num_envs, self.kernel.state)
        self._book = np.zeros(self.num_envs, driver.BOOK)
        self._episode = np.zeros(self.num_envs, driver.EPISODE)
        self._done = np.zeros(self.num_envs, np.bool_)
        info_type = self.kernel.info
        self._infos = () if info_type is None else tuple(np.zeros(self.num_envs, info_type) for _ in range(2))
        self._buffers = self.empty_step()
        self._crew = Crew(num_threads if compiled else 1, self.num_envs)
        self._guards = [driver.guard_rows(self.single_observation_space) for _ in range(self._crew.size)]
        self._seeded = False
        self.set_lanes(**(lanes or {}))
        self._load(compiled)
        self._standing = self._standing_info()
        self._ended = self._ended_views()
        # about our own buffers there is always the same to say, without ended episodes and with
        self._own_infos = self._info(self._buffers), self._ended_info(self._buffers)

    # ------------------------------------------------------------------ per-lane settings

    @property
    def lane_state(self) -> np.ndarray:
        """The records of all lanes, [B]: the memory itself, for looking and for setting up situations."""
        return self._state

    def set_lanes(self, **fields: Any) -> None:
        """Write fields of the state record, one value for all lanes or [B] values."""
        for name, value in fields.items():
            if name not in (self.kernel.state.names or ()):
                raise ConfigError(f"{self.kernel.name} has no state field {name!r}; it has {self.kernel.state.names}.")
            self._state[name] = value

    # ------------------------------------------------------------------ the contract

    def _reset_lanes(self, out: Step, seed: Any, mask: np.ndarray | None, options: dict[str, Any]) -> dict[str, Any]:
        self._check_buffers(out)
        which = np.ones(self.num_envs, np.bool_) if mask is None else mask
        if seed is not None or not self._seeded:
            named = which & [s is not None for s in seed] if isinstance(seed, list) and self._seeded else which
            self._book["words"][named] = seed_words(lane_keys(seed, self.num_envs))[named]
            self._seeded = True
        mask_out = () if out.action_mask is None else (out.action_mask,)
        outputs = (*_arrays(out.obs), *self._guards[0], *self._info_records[:1], *mask_out)
        code = self._begin(*self._records[:3], which, time.perf_counter(), *outputs)
        if code < 0:
            self._raise_fault(code, None)
        return self._info(out)

    def _step_lanes(self, action: Array, out: Step) -> dict[str, Any]:
        if (  # most actions are right as they are, and a small batch feels every microsecond
            type(action) is not np.ndarray
            or action.dtype is not self._action_dtype
            or action.shape != self._action_shape
            or not action.flags.c_contiguous
        ):
            action = as_actions(action, self.single_action_space, self.num_envs)
        if out is self._buffers:
            run, fixed = self._run_bound, self._own_arguments
        else:
            arguments = self._arguments(out)
            run, fixed = self._run, [(*guards, *arguments) for guards in self._guards]
        now = time.perf_counter()
        if self._crew.size == 1:
            ended = run(action, now, False, 0, self.num_envs, *fixed[0])
        else:
            ended = self._crew.step(
                lambda chunk, lo, hi, checked: run(action, now, checked, lo, hi, *fixed[chunk]),
                lambda: self._check(self._records[1], action, self._low, self._high, self._mode, 0, self.num_envs),
            )
        if ended < 0:
            self._raise_fault(ended, action)
        if out is self._buffers:
            return self._own_infos[ended > 0].copy()
        return self._ended_info(out) if ended else self._info(out)

    def _get_state(self) -> State:
        book = self._book.view(np.uint8).copy()
        book.view(driver.BOOK)["began"] = 0.0  # a clock reading means nothing in another process
        return {"lanes": self._state.view(np.uint8).copy(), "book": book}

    def _set_state(self, state: State) -> None:
        for name, target in (("lanes", self._state), ("book", self._book)):
            stored = np.asarray(state.get(name, ()))
            if stored.size != target.nbytes:
                raise StateError(
                    f"This state has {stored.size} bytes in {name!r}; {self.num_envs} lanes of {self.kernel.name} "
                    f"have {target.nbytes}. Use a state of the same world, version and num_envs."
                )
        self._state.view(np.uint8)[:] = state["lanes"]
        self._book.view(np.uint8)[:] = state["book"]
        self._book["began"] = time.perf_counter()
        self._seeded = True

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads."""
        self._crew.close()

    # ------------------------------------------------------------------ infos

    def _standing_info(self) -> dict[str, Any]:
        return {name: self._infos[0][name] for name in self.kernel.info.names or ()} if self.kernel.info else {}

    def _info(self, out: Step) -> dict[str, Any]:
        return self._standing if out.action_mask is None else {**self._standing, "action_mask": out.action_mask}

    def _ended_info(self, out: Step) -> dict[str, Any]:
        """`_info` with the episodes that ended."""
        info = {**self._info(out), **self._ended}
        if self._mode == driver.SAME_STEP:
            info["final_obs"] = out.final_obs
        return info

    def _ended_views(self) -> dict[str, Any]:
        """The arrays about ended episodes, which are the same at every step."""
        done = self._done
        views = {"episode": {name: self._episode[name] for name in ("r", "l", "t")}, "_episode": done}
        if self._mode == driver.SAME_STEP:
            final_info = {name: self._infos[1][name] for name in self._standing}
            views |= {"_final_obs": done, "final_info": final_info, "_final_info": done}
        return views

    # ------------------------------------------------------------------ buffers and loading

    def _arguments(self, out: Step) -> tuple:
        """The arguments of `run` that stay the same as long as it writes to `out`."""
        self._check_buffers(out)
        state, book, params, episode = self._records
        ours = (state, book, params, self._low, self._high, self._mode, episode, self._done, *self._info_records)
        theirs = (*_arrays(out.obs), out.reward, out.terminated, out.truncated, *_arrays(out.final_obs))
        return (*ours, *theirs, *(() if out.action_mask is None else (out.action_mask,)))

    def _check_buffers(self, out: Step) -> None:
        """Compiled code trusts its arguments, so foreign buffers are compared with our own first."""
        for ours, theirs in zip(_arrays(self._buffers), _arrays(out), strict=True):
            if theirs.shape != ours.shape or theirs.dtype != ours.dtype or not theirs.flags.c_contiguous:
                raise ConfigError(
                    f"step_into() got a buffer of shape {theirs.shape} and type {theirs.dtype}; it needs a "
                    f"C-contiguous {ours.shape} of {ours.dtype}. Take the buffers from empty_step()."
                )

    def _load(self, compiled: bool) -> None:
        view = (lambda array: array) if compiled else (lambda array: array.view(np.recarray))  # s.x needs a recarray
        self._records = tuple(map(view, (self._state, self._book, self._params, self._episode)))
        self._info_records = tuple(map(view, self._infos))
        assert self._buffers is not None
        # for each thread, what `run` takes besides actions and lanes, as long as it writes to our own buffers
        self._own_arguments = [(*guards, *self._arguments(self._buffers)) for guards in self._guards]
        if not compiled:
            module = load_uncompiled(self.kernel)
            self._run = self._run_bound = module.run
        else:
            signatures = self._signatures()
            module = load_compiled(self.kernel, signatures, lambda: dry_run(self.kernel, self._state[:1]))
            # straight to the machine code: the types are checked here, once, and not by Numba at every call
            self._run, self._run_bound = (
                getattr(module, name).overloads[signatures[name]].entry_point for name in ("run", "run_bound")
            )
            self._own_arguments = [(table_of(arguments),) for arguments in self._own_arguments]
        self._begin, self._check = module.begin, module.check

    def _signatures(self) -> dict[str, tuple]:
        """Numba's types of the arguments of the compiled functions, read off our own buffers."""
        out, guards = self._buffers, self._guards[0]
        assert out is not None
        action = np.zeros((self.num_envs, *self.single_action_space.shape), self.single_action_space.dtype)  # type: ignore[misc]
        mask = () if out.action_mask is None else (out.action_mask,)
        records = (self._state, self._book, self._params)
        begin = (*records, out.terminated, 0.0, *_arrays(out.obs), *guards, *self._infos[:1], *mask)
        check = (self._book, action, self._low, self._high, 0, 0, 0)
        moving = (action, 0.0, False, 0, 0)
        run, run_bound = (*moving, *self._own_arguments[0]), (*moving, table_of(self._own_arguments[0]))
        calls = {"begin": begin, "check": check, "run": run, "run_bound": run_bound}
        return {name: tuple(map(numba.typeof, arguments)) for name, arguments in calls.items()}

    def _raise_fault(self, code: int, action: np.ndarray | None) -> None:
        kind, lane = divmod(-code - 1, driver.FAULT_STRIDE)
        if kind == driver.BAD_ACTION:
            assert action is not None
            raise_action_outside(lane, action[lane], self.single_action_space)
        if kind == driver.NOT_RESET:
            raise StateError(
                f"The episode of lane {lane} has ended and autoreset is disabled. "
                "Reset it with reset(options={'reset_mask': mask}) before the next step."
            )
        function, what = {
            driver.NAN_REWARD: ("step", "returned a reward that is NaN"),
            driver.NAN_OBS: ("observe", "wrote an observation that is NaN"),
            driver.OUTSIDE: ("observe", f"wrote outside its observation, {self.single_observation_space}"),
        }[kind]
        raise KernelError(
            f"{where(self.kernel.function(function))} {what}, in lane {lane}. "  # type: ignore[arg-type]
            "KernelBatch(..., compiled=False) runs the same lane under a debugger."
        )


def _arrays(tree: Any) -> tuple[np.ndarray, ...]:
    """The arrays of an observation or a `Step`, flat."""
    if isinstance(tree, np.ndarray):
        return (tree,)
    if isinstance(tree, dict):
        return tuple(tree.values())
    return tuple(array for part in tree if part is not None for array in _arrays(part))
