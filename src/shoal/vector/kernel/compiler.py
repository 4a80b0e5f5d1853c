"""From a kernel to its driver module: the loop over lanes around the author's functions, compiled or not.

What is compiled is kept on disk by `shoal.jit.cache`; what goes wrong is told with the author's function and line.
"""

from __future__ import annotations

import linecache
import math
import re
import types
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

from shoal.errors import KernelError
from shoal.jit import LEAN, inner
from shoal.jit.cache import CachedModule
from shoal.jit.digest import digest_of
from shoal.jit.rng import Rng
from shoal.vector.kernel import bits
from shoal.vector.kernel.build import Build
from shoal.vector.kernel.driver import Shape, book_of, driver_source, size_of
from shoal.vector.kernel.faults import KernelFault
from shoal.vector.kernel.forms import leaf_spaces, packed_space, type_names
from shoal.vector.kernel.kernel import SEAT_FUNCTIONS, Kernel
from shoal.vector.kernel.lane import (
    Disjoint,
    DisjointPart,
    fields_of,
    flatten,
    lane_maker,
    row_maker,
)
from shoal.vector.kernel.outputs import bound_source
from shoal.vector.kernel.params import LaneParams
from shoal.vector.kernel.reach import Reach, where
from shoal.vector.kernel.seats import seats_of
from shoal.vector.kernel.source import SourceSet, compile_at_once, compile_wrap

# Numba asks for the width of the elements of an array in a record, and has none for bools (one byte)
numba.types.Boolean.bitwidth = 8  # type: ignore[attr-defined]
# words by which the telling line of a report of Numba's is known, most specific first
_TELLING = (
    "Unknown attribute",
    "Invalid use of",
    "Cannot unify",
    "not supported",
    "Use of unsupported",
    "undeclared",
    "not defined",
    "No match",
    "Untyped global",
    "has no attribute",
)
_IN_OTHER_WORDS = {
    "returning of array": "a function cannot return an array here; hand the array in, and read or write it there",
    "unify return type": "a function returns a number in one place and a tuple or an array in another",
    "Cannot unify": "this is an array (or a record, or a tuple) on one way and something else on another; "
    "it needs one kind",
    "failed to unpack none": "a function never comes to its end",
}
_OF_PYTHON = (
    (r"tuple index out of range", "an index runs outside its tuple"),
    (r"'float' object cannot be interpreted as an integer", "a fraction where a whole number belongs; write int(...)"),
    (r"only .*arrays can be converted|The truth value of an array", "an array where a number belongs; write its index"),
    (r"'(?:int|float|bool)' object is not iterable", "a single number where an array or several numbers belong"),
    (r"cannot unpack non-iterable", "a single number is taken apart into several names"),
    (r"too many values to unpack|not enough values to unpack", "as many names as there are values are needed"),
    (r"'tuple' object has no attribute", "parts of a Tuple have numbers, not names: write [0], [1], ..."),
    (r"unsupported operand type\(s\) .*'tuple'", "a tuple where a number belongs; write its index"),
)
"""What Python says of kernels that run as Python, in words that suit them."""
BLOCK_BYTES = 32 * 1024  # of lanes and their observations in a block: about a first cache
SMALL_BLOCK_BYTES = 12 * 1024  # where lanes are small records, which are still nearer when they are observed
_DRIVER = "<driver of "
_FUNCTIONS = ("reset", "step", "observe", "mask", "inform", *SEAT_FUNCTIONS)


def load_uncompiled(kernel: Kernel, params: LaneParams, checked: bool) -> tuple[types.ModuleType, set[str]]:
    """The driver module around the author's functions as ordinary Python, and the files that these are from.

    Lanes are records.
    """
    functions = _rewrite(kernel, Build(compiled=False, checked=checked), _as_it_is)
    module = types.ModuleType(f"{kernel.name}_uncompiled")
    same = dict.fromkeys(("jit", "jit_apart", "jit_disjoint", "jit_cached", "unsigned"), _as_it_is)
    vars(module).update(_namespace(kernel, functions, _python_row), **same, flatten=np.ravel)
    vars(module).update(bits.AS_PYTHON)
    text = driver_source(_shape(kernel, params, in_columns=False))
    exec(compile(text, f"{_DRIVER}{kernel.name}>", "exec"), vars(module))
    return module, functions.files


def load_compiled(
    kernel: Kernel,
    params: LaneParams,
    signatures: dict[str, tuple],
    fixed: tuple,
    checked: bool,
    in_columns: bool,
    first: Callable[[], None],
) -> tuple[types.ModuleType, set[str]]:
    """The driver module with `begin`, `check` and `run_bound` compiled for the argument types in `signatures`, and the
    files that the author's functions are from. `fixed` are the types of what `run` takes from a table.

    `first()` is called before compiling, if there is no compiled code yet.
    """
    wrap = compile_at_once if in_columns else compile_wrap  # a loop that calls a function computes a lane at a time
    functions = _rewrite(kernel, Build(compiled=True, checked=checked), wrap)
    bound_text, readers = bound_source(fixed)
    namespace = {**_namespace(kernel, functions, row_maker), **readers, "jit": compile_wrap, "jit_apart": inner(**LEAN)}
    namespace["jit_disjoint"] = inner(pipeline_class=DisjointPart, **LEAN)
    namespace["lane"] = lane_maker(fields_of(kernel.state, kernel.state.names or ()))
    namespace["lane_params"] = lane_maker(fields_of(params.record.dtype, params.of_lanes))
    namespace |= {"unsigned": np.uint64, "flatten": flatten}
    namespace |= {**bits.COMPILED, "ended_among": compile_wrap(bits.ended_among_compiled)}
    text = driver_source(_shape(kernel, params, in_columns)) + bound_text
    cached = CachedModule(kernel.name, text, namespace, {**LEAN, "pipeline_class": Disjoint}, signatures)
    if not cached.is_known():
        first()
    try:
        cached.compile(signatures)
    except Exception as error:  # Numba's own, and whatever else it stumbles over
        raise explain(error, kernel, functions.files) from None
    return cached.module, functions.files


def _as_it_is(function: Callable) -> Callable:
    return function


def _python_row(shape: tuple[int, ...]) -> Callable:
    """What `row_maker` makes for compiled code, in Python."""
    size = math.prod(shape)
    return lambda array, i: array.reshape(-1)[i * size : (i + 1) * size].reshape(shape)


class _Rewritten(NamedTuple):
    """The author's functions by name, ready to be compiled or called, and the files that they are from."""

    by_name: dict[str, Callable]
    files: set[str]


_rewritten: weakref.WeakKeyDictionary[type[Kernel], dict[str, _Rewritten]] = weakref.WeakKeyDictionary()


def _rewrite(kernel: Kernel, build: Build, wrap: Callable[[Callable], Callable]) -> _Rewritten:
    """The kernel's functions, as they were for an earlier batch if nothing that decides their meaning has changed.

    Looking a large kernel through takes a second, and a run makes several batches of it.
    """
    spaces = repr((kernel.lane_observation_space, kernel.lane_action_space, kernel.state, kernel.info))
    shapes = {name: value.shape for name, value in kernel.values.items()}
    given = {name: kernel.function(name) for name in _FUNCTIONS}
    how = build.compiled, build.checked, wrap is compile_at_once
    try:
        key = digest_of(how, spaces, shapes, kernel.seats, given)
    except TypeError:  # something that no kernel can use: looking it through will tell which
        key = None
    kept = _rewritten.setdefault(type(kernel), {})
    if key is None or key not in kept:
        functions = SourceSet(build, wrap, kernel)
        made = _Rewritten(author_functions(kernel, functions), functions.files)
        if key is None:
            return made
        kept[key] = made
    return kept[key]


def author_functions(kernel: Kernel, functions: SourceSet) -> dict[str, Callable]:
    """The kernel's functions by name, rewritten through `functions`."""
    given = {name: kernel.function(name) for name in _FUNCTIONS}
    return {name: functions.add(function) for name, function in given.items() if function is not None}


def _namespace(
    kernel: Kernel, functions: _Rewritten, make_row: Callable[[tuple[int, ...]], Callable]
) -> dict[str, Any]:
    """What the driver's text refers to."""
    names: dict[str, Any] = {"Rng": Rng, "pair": make_row((2,)), **functions.by_name}
    spaces = {str(k): space for k, space in enumerate(leaf_spaces(kernel.lane_observation_space))}
    for name, space in {**spaces, "action": packed_space(kernel.lane_action_space)}.items():
        names |= {f"row_{name}": make_row(space.shape or (1,)), f"flat_{name}": make_row((size_of(space),))}
    return names | type_names(kernel.lane_observation_space)


def _shape(kernel: Kernel, params: LaneParams, in_columns: bool) -> Shape:
    columns = (kernel.state.names or ()) if in_columns else ()
    has_mask, has_info = kernel.function("mask") is not None, kernel.info is not None
    observed = sum(np.dtype(part.dtype).itemsize * size_of(part) for part in leaf_spaces(kernel.lane_observation_space))
    size = kernel.state.itemsize + book_of(kernel.seats).itemsize + observed
    is_small = not in_columns and 16 * size <= SMALL_BLOCK_BYTES
    block = min(max((SMALL_BLOCK_BYTES if is_small else BLOCK_BYTES) // size, 1), 1024)
    spaces = kernel.lane_observation_space, packed_space(kernel.lane_action_space)
    return Shape(*spaces, columns, block, has_mask, has_info, params.shape, seats_of(kernel))


def explain(error: BaseException, kernel: Kernel, files: set[str], moment: str = "") -> KernelError:
    """A `KernelError` that names the author's function and line for what the compiler or a run complained about.

    `moment` says when it happened ("lane 3, step 17").
    """
    if isinstance(error, KernelFault) and error.function:
        spot = _spot_of_fault(error, kernel)
    else:
        spot = _spot_in_traceback(error, files) or _spot_in_text(str(error), files)
    advice = ""
    if isinstance(error, KernelFault):
        reason = error.sentence
    elif isinstance(error, numba.core.errors.NumbaError):
        told = re.search(r"kernel: ([^\n]+)", _plain(str(error)))
        reason = told.group(1) if told else _short_reason(str(error))
        advice = "" if told else " Kernels are scalar Python: numbers, loops, arrays, math, plain functions."
    else:
        words = next((told for said, told in _OF_PYTHON if re.search(said, str(error))), None)
        reason = f"{words} ({error})" if words else f"{type(error).__name__}: {error}"
    place = _name_spot(kernel, *spot) if spot else kernel.name
    line = linecache.getline(*spot).strip() if spot else ""
    details = ", in " + " ".join(filter(None, [f"`{line}`" if line else "", f"({moment})" if moment else ""]))
    return KernelError(f"{place}: {reason.rstrip('.')}{details if line or moment else ''}.{advice}")


def moment_of(error: BaseException, lengths: np.ndarray) -> str:
    """ "lane 3, step 17", if the error came through a driver as Python; `lengths` are the steps of each lane before."""
    step, moment = error.__traceback__, ""
    while step is not None:
        if step.tb_frame.f_code.co_filename.startswith(_DRIVER) and "i" in step.tb_frame.f_locals:
            lane = int(step.tb_frame.f_locals["i"])
            moment = f"lane {lane}, step {int(lengths[lane]) + 1}"
        step = step.tb_next
    return moment


def _spot_of_fault(fault: KernelFault, kernel: Kernel) -> tuple[str, int] | None:
    """The line of a fault of compiled code, which knows its function and the line within."""
    for function in Reach(kernel).functions():
        if function.__qualname__ == fault.function:
            return function.__code__.co_filename, function.__code__.co_firstlineno + fault.line
    return None


def _spot_in_traceback(error: BaseException, files: set[str]) -> tuple[str, int] | None:
    spot, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename in files:
            spot = (step.tb_frame.f_code.co_filename, step.tb_lineno)
        step = step.tb_next
    return spot


def _spot_in_text(text: str, files: set[str]) -> tuple[str, int] | None:
    named = re.findall(r'File "([^"]+)", line (\d+)', text) or re.findall(r"at (\S+) \((\d+)\)", text)
    spots = [(path, int(line)) for path, line in named for known in files if known.endswith(path.lstrip("./"))]
    return spots[-1] if spots else None


def _name_spot(kernel: Kernel, path: str, line: int) -> str:
    for function in Reach(kernel).functions():
        code = function.__code__
        last = max((at for *_, at in code.co_lines() if at), default=0)
        if code.co_filename.endswith(path.lstrip("./")) and code.co_firstlineno <= line <= last:
            return where(function, line)
    return f"{kernel.name} ({path}:{line})"


def _plain(text: str) -> str:
    """A report of Numba's without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _short_reason(text: str) -> str:
    """The sentence in Numba's report that says what is wrong, without its stack of typing phases."""
    if "NRT required" in text:
        return "allocates memory (a list, a comprehension, a new array), which a kernel cannot do"
    plain = _plain(text)
    for words, sentence in _IN_OTHER_WORDS.items():
        if words in plain:
            return sentence
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    unknown = re.search(r"No implementation of function Function\(<[a-z-]+ (?:function )?'?([\w.]+)", plain)
    if unknown and unknown.group(1) in ("getitem", "setitem", "static_getitem", "static_setitem"):
        return "this cannot have an index, or not this one: arrays and tuples of numbers of one type can"
    if unknown:
        return f"{unknown.group(1)}() cannot be used in a kernel, or not with these arguments"
    numpy = re.search(r"unsupported NumPy function 'numpy\.([\w.]+)'", plain)
    if numpy:
        return (
            f"np.{numpy.group(1)} cannot be used in a kernel, or not so: write it with `if`, a loop or math's functions"
        )
    telling = (line for words in _TELLING for line in lines if words in line)
    others = (line for line in lines if not line.startswith("Failed in"))
    return next(telling, None) or next(others, None) or next(iter(lines), "cannot be compiled")
