"""The loop over lanes around an author's functions, written out as a module of its own.

The text depends only on the shape of a kernel (its spaces, whether it has a mask or infos). It is compiled together
with the author's functions, or run as it is for `compiled=False`: one loop, two ways.

Arrays, leading axis B: `state` records, `book` records (see `BOOK`), `obs_k` and `final_k` leaves. `guard_k` is a
scratch row with margins: the last lane of a chunk is observed there and copied, so that a kernel that writes outside
its observation is caught instead of spoiling memory that is not its own. (Inside a chunk the next lane's own
observation repairs what its neighbour spoiled.)
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.errors import KernelError
from shoal.vector.spaces import num_actions

BOOK = np.dtype(
    [
        ("words", np.uint64, (2,)),
        ("total", np.float64),
        ("length", np.int64),
        ("began", np.float64),
        ("ended", np.bool_),
    ],
    align=True,
)
EPISODE = np.dtype([("r", np.float64), ("l", np.int64), ("t", np.float64)])

SAME_STEP, NEXT_STEP, DISABLED = 0, 1, 2
MARGIN = 64  # elements on either side of a guarded row

# A fault is returned as -(kind * FAULT_STRIDE + lane + 1).
NAN_REWARD, NAN_OBS, OUTSIDE, BAD_ACTION, NOT_RESET = 1, 2, 3, 4, 5
FAULT_STRIDE = 2**40

_TEMPLATE = f"""\
@jit
def fault(kind, i):
    return -(kind * {FAULT_STRIDE} + i + 1)


@jit
def look(state, p, i, last, OBS, GUARD):
    s = state[i]
    if i < last:
        observe(s, p, ROW_OF_OBS)
    else:
        observe(s, p, ROW_OF_GUARD)
        COPY_GUARD
    CHECK_NAN
    return 0


@jit
def renew(s, b, p, rng, now):
    reset(s, p, rng)
    b.total = 0.0
    b.length = 0
    b.began = now
    b.ended = False


@jit_cached
def begin(state, book, params, which, now, OBS, GUARD, INFO, MASK):
    p = params[0]
    last = len(state) - 1
    for i in range(len(state)):
        if not which[i]:
            continue
        s = state[i]
        b = book[i]
        renew(s, b, p, Rng(b.words), now)
        code = look(state, p, i, last, OBS, GUARD)
        if code != 0:
            return fault(code, i)
        TELL_INFO
        TELL_MASK
    return 0


@jit_cached
def check(book, action, low, high, mode, lo, hi):
    for i in range(lo, hi):
        CHECK_ACTION
    if mode == {DISABLED}:
        for i in range(lo, hi):
            if book[i].ended:
                return fault({NOT_RESET}, i)
    return 0


@jit_cached
def run(action, now, checked, lo, hi, GUARD, state, book, params, low, high, mode, episode, done, INFO, FINAL_INFO,
        OBS, reward, terminated, truncated, FINAL, MASK):
    if not checked:
        code = check(book, action, low, high, mode, lo, hi)
        if code != 0:
            return code
    p = params[0]
    count = 0
    for i in range(lo, hi):
        s = state[i]
        b = book[i]
        rng = Rng(b.words)
        if b.ended:  # NEXT_STEP: the step after the end begins the new episode
            renew(s, b, p, rng, now)
            reward[i] = 0.0
            terminated[i] = False
            truncated[i] = False
            done[i] = False
        else:
            r, ends, cut = step(s, action[i], p, rng)
            if r != r:
                return fault({NAN_REWARD}, i)
            b.total += r
            b.length += 1
            reward[i] = r
            terminated[i] = ends
            truncated[i] = cut and not ends
            done[i] = ends or cut
            if ends or cut:
                count += 1
                episode[i].r = b.total
                episode[i].l = b.length
                episode[i].t = now - b.began
                if mode == {SAME_STEP}:
                    observe(s, p, ROW_OF_FINAL)
                    TELL_FINAL_INFO
                    renew(s, b, p, rng, now)
                else:
                    b.ended = True
        code = look(state, p, i, hi - 1, OBS, GUARD)
        if code != 0:
            return fault(code, i)
        TELL_INFO
        TELL_MASK
    return count
"""


def leaves(space: gym.Space) -> list[gym.Space]:
    """The arrays of an observation space in order: one for Box and the like, one per key for a flat Dict."""
    if not isinstance(space, gym.spaces.Dict):
        return [space]
    for key, sub in space.spaces.items():
        if sub.shape is None:
            raise KernelError("A kernel's Dict observation must be flat: one level of Box, Discrete or MultiBinary.")
        if not key.isidentifier() or key in ("count", "index", "view"):  # methods of tuples and of Numba's values
            raise KernelError(f"Observation key {key!r} is no name that `out.{key}` could use. Rename it.")
    return list(space.spaces.values())


def driver_source(observation_space: gym.Space, action_space: gym.Space, has_mask: bool, has_info: bool) -> str:
    """Text of a module with `begin`, `check` and `run`; its globals `reset`, `step`, ... are put in by the caller."""
    parts = leaves(observation_space)
    lists = {
        "OBS": [f"obs_{k}" for k in range(len(parts))],
        "FINAL": [f"final_{k}" for k in range(len(parts))],
        "GUARD": [f"guard_{k}" for k in range(len(parts))],
        "INFO": ["info"] if has_info else [],
        "FINAL_INFO": ["final_info"] if has_info else [],
        "MASK": ["action_mask"] if has_mask else [],
    }
    width = num_actions(action_space) if has_mask else 0
    tell_mask = [f"for j in range({width}):", "    action_mask[i, j] = False", "mask(s, p, action_mask[i])"]
    blocks = {
        "COPY_GUARD": [line for k, part in enumerate(parts) for line in _copy_guard(k, part)],
        "CHECK_NAN": [line for k, part in enumerate(parts) for line in _check_nan(k, part)],
        "CHECK_ACTION": _check_action(action_space),
        "TELL_INFO": ["inform(s, p, info[i])"] if has_info else [],
        "TELL_FINAL_INFO": ["inform(s, p, final_info[i])"] if has_info else [],
        "TELL_MASK": tell_mask if has_mask else [],
    }
    is_dict = isinstance(observation_space, gym.spaces.Dict)
    rows = {
        "ROW_OF_OBS": _as_out([_row(f"obs_{k}", part) for k, part in enumerate(parts)], is_dict),
        "ROW_OF_FINAL": _as_out([_row(f"final_{k}", part) for k, part in enumerate(parts)], is_dict),
        "ROW_OF_GUARD": _as_out([_guarded(k, part) for k, part in enumerate(parts)], is_dict),
    }
    text = []
    for line in _TEMPLATE.splitlines():
        word = line.strip()
        if word in blocks:
            indent = line[: len(line) - len(word)]
            text += [indent + filled for filled in blocks[word]]
            continue
        for name, row in rows.items():
            line = line.replace(name, row)
        text.append(_fill_lists(line, lists))
    return "\n".join(text) + "\n"


def _fill_lists(line: str, lists: dict[str, list[str]]) -> str:
    """Put lists of argument names in place of their upper-case words; an empty list takes its comma with it."""
    for name in sorted(lists, key=len, reverse=True):
        names = ", ".join(lists[name])
        line = line.replace(f"{name}, ", f"{names}, " if names else "")
        line = line.replace(f", {name})", f", {names})" if names else ")").replace(f"{name})", f"{names})")
        if line.rstrip().endswith(f"{name},"):
            line = line.replace(f"{name},", f"{names}," if names else "")
    return line


def _as_out(rows: list[str], is_dict: bool) -> str:
    return f"Out({', '.join(rows)})" if is_dict else rows[0]


def _size(space: gym.Space) -> int:
    return int(np.prod(space.shape or (1,)))


def _row(array: str, space: gym.Space) -> str:
    """The author's `out` for lane i; a space of shape () becomes an array of one."""
    return f"{array}[i]" if space.shape else f"{array}[i : i + 1]"


def _flat(array: str, space: gym.Space) -> str:
    return f"{array}[i]" if len(space.shape or ()) == 1 else f"{array}[i : i + 1].reshape({_size(space)})"


def _guarded(k: int, space: gym.Space) -> str:
    cut = f"guard_{k}[{MARGIN} : {MARGIN + _size(space)}]"
    return cut if len(space.shape or ()) < 2 else f"{cut}.reshape({space.shape})"


def _sentinel(space: gym.Space) -> int:
    return 1 if space.dtype == np.bool_ else 85


def _copy_guard(k: int, space: gym.Space) -> list[str]:
    odd, size = _sentinel(space), _size(space)
    return [
        f"for j in range({MARGIN}):",
        f"    if guard_{k}[j] != {odd} or guard_{k}[{MARGIN + size} + j] != {odd}:",
        f"        return {OUTSIDE}",
        f"target_{k} = {_flat(f'obs_{k}', space)}",
        f"for j in range({size}):",
        f"    target_{k}[j] = guard_{k}[{MARGIN} + j]",
    ]


def _check_nan(k: int, space: gym.Space) -> list[str]:
    if np.dtype(space.dtype).kind != "f":
        return []
    return [
        f"seen_{k} = {_flat(f'obs_{k}', space)}",
        f"odd_{k} = False",
        f"for j in range({_size(space)}):",
        f"    odd_{k} |= seen_{k}[j] != seen_{k}[j]",
        f"if odd_{k}:",
        f"    return {NAN_OBS}",
    ]


def _check_action(space: gym.Space) -> list[str]:
    """Refuse what lies outside [low, high]; the comparison is written so that NaN fails it."""
    if not space.shape:
        return [
            "if not (action[i] >= low[0] and action[i] <= high[0]):",
            f"    return fault({BAD_ACTION}, i)",
        ]
    return [
        f"row = {_flat('action', space)}",
        "good = True",
        f"for j in range({_size(space)}):",
        "    good &= (row[j] >= low[j]) & (row[j] <= high[j])",
        "if not good:",
        f"    return fault({BAD_ACTION}, i)",
    ]


def guard_rows(space: gym.Space) -> tuple[np.ndarray, ...]:
    """Scratch rows for `look`, one per observation leaf, margins filled with the sentinel."""
    return tuple(np.full(2 * MARGIN + _size(part), _sentinel(part), part.dtype) for part in leaves(space))


def action_bounds(space: gym.Space) -> tuple[np.ndarray, np.ndarray]:
    """Flat lowest and highest action, in the type of the actions."""
    if isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
        sizes = space.n if isinstance(space, gym.spaces.Discrete) else space.nvec
        low = np.asarray(space.start, space.dtype).ravel()
        return low, low + np.asarray(sizes, space.dtype).ravel() - np.ones(1, space.dtype)
    if isinstance(space, gym.spaces.MultiBinary):
        return np.zeros(_size(space), space.dtype), np.ones(_size(space), space.dtype)
    if isinstance(space, gym.spaces.Box):
        return space.low.ravel().copy(), space.high.ravel().copy()
    raise KernelError(f"A kernel takes Box, Discrete, MultiDiscrete or MultiBinary actions, not {space}.")
