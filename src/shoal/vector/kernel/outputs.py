"""What the loop over lanes writes to: the buffers of a step and of its infos, bound to compiled code once.

A caller who is given copies gets the buffers themselves, written anew: a batch keeps a few sets of them and writes into
one that nobody holds any more, which the counts of references tell. That costs neither a copy nor new memory.

Numba takes each array out of its Python object at every call: twenty arrays are a microsecond, more than stepping eight
lanes. They stay where they are, so where they are is written down once, as a table of integers, and `run_bound` reads
them from there: one array to take out instead of twenty. Nothing else calls `run`, so it is compiled as a part of that,
once; other buffers are a copy of the table with their addresses in it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from shoal.trees import Tree, leaves
from shoal.vector.batch import Info, Step
from shoal.vector.kernel import driver

MOST_SETS = 4  # a caller who keeps more than the last few steps is given copies


def arrays_of(tree: Tree) -> tuple[np.ndarray, ...]:
    """The arrays of an observation or a `Step`, flat; masks that are not there are left out."""
    return tuple(leaf for leaf in leaves(tree) if leaf is not None)


class Outputs:
    """Buffers of one step, [B, ...] each, and what there is to say about them."""

    def __init__(self, step: Step, info: np.dtype | None, mode: int, seats: int = 0) -> None:
        count = len(step.reward)
        self.step, self.arrays, self.mode = step, arrays_of(step), mode
        self.done = np.zeros(count, np.bool_)
        self.episode = np.zeros(count, driver.episode_of(seats))
        self.infos = () if info is None else tuple(np.zeros(count, info) for _ in range(2))
        names = () if info is None else info.names or ()
        self._standing: Info = {name: self.infos[0][name] for name in names}
        final: Info = {name: self.infos[1][name] for name in names}
        self._ended: Info = {"episode": {name: self.episode[name] for name in ("r", "l", "t")}, "_episode": self.done}
        if mode == driver.SAME_STEP:
            self._ended |= {"_final_obs": self.done, "final_info": final, "_final_info": self.done}
        self.tables: list[tuple] = []
        """For each thread, what `run` takes besides actions and lanes."""
        self._given: list[np.ndarray] = []
        self._counts: list[int] = []

    def count_references(self) -> None:
        """Remember how many references to its arrays a set has that nobody holds: `is_free` compares with them."""
        own = (*self.arrays, *self.infos, self.done, self.episode)
        views = (*own, *leaves(self._standing), *leaves(self._ended))
        bases = {
            id(view.base): view.base for view in views if view.base is not None
        }  # a view of a view refers to these
        self._given = list(({id(view): view for view in views} | bases).values())
        del own, views, bases
        self._counts = list(map(sys.getrefcount, self._given))

    def is_free(self) -> bool:
        """Whether nobody but this batch holds any of the arrays."""
        return list(map(sys.getrefcount, self._given)) == self._counts

    def info(self, step: Step, ended: bool) -> Info:
        """The infos of a step whose observations were written to `step`."""
        info = dict(self._standing)
        if step.action_mask is not None:
            info["action_mask"] = step.action_mask
        if ended:
            for name, value in self._ended.items():
                info[name] = dict(value) if isinstance(value, dict) else value
            if self.mode == driver.SAME_STEP:
                info["final_obs"] = step.final_obs
        return info


def free_set(sets: list[Outputs], make: Callable[[], Outputs]) -> Outputs | None:
    """A set that nobody holds; a new one while there are few; None if all are held."""
    for outputs in sets:
        if outputs.is_free():
            return outputs
    if len(sets) < MOST_SETS:
        sets.append(make())
        sets[-1].count_references()
        return sets[-1]
    return None


def as_given(tree: Tree) -> Tree:
    """The same arrays in dicts of the caller's own."""
    return dict(tree) if isinstance(tree, dict) else tree


# ---------------------------------------------------------------------- all arrays of a batch, as a table


def table_of(arguments: Sequence[np.ndarray | int]) -> np.ndarray:
    """Where the arrays among `arguments` lie, and the integers among them, one after the other."""
    words: list[int] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            words += [argument.ctypes.data, *argument.shape, *argument.strides]
        else:
            words.append(argument)
    return np.array(words, np.int64)


def moved(table: np.ndarray, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """A copy of a table with `arrays` in place of its last ones, whose shapes they have; they must be writable."""
    table, at = table.copy(), len(table)
    for array in reversed(arrays):
        at -= 1 + 2 * array.ndim
        if array.size:  # an empty array has no memory to lend; this way is seven times faster than `array.ctypes.data`
            table[at] = ctypes.addressof(ctypes.c_char.from_buffer(array))
    return table


def bound_source(fixed: Sequence[types.Type]) -> tuple[str, dict[str, Callable]]:
    """Text of `run_bound(action, now, checked, lo, hi, table)`, which calls `run`, and the globals it needs.

    Args:
        fixed: Numba's types of what `run` takes after `hi`, which the table is made of.
    """
    reads, readers, at = [], {}, 0
    for k, kind in enumerate(fixed):
        if isinstance(kind, types.Array):
            readers[f"array_{k}"] = _array_reader(kind)
            reads.append(f"array_{k}(table, {at})")
            at += 1 + 2 * kind.ndim
        else:
            reads.append(f"table[{at}]")
            at += 1
    text = f"""
@jit_cached
def run_bound(action, now, checked, lo, hi, table):
    return run(action, now, checked, lo, hi, {", ".join(reads)})
"""
    return text, readers


def _array_reader(kind: types.Array) -> Callable:
    """A function of compiled code: the array of type `kind` that stands in `table` from `at` on."""

    @intrinsic
    def read(typing_context, table, at):
        def codegen(context, builder, signature, arguments):
            words = make_array(signature.args[0])(context, builder, arguments[0]).data

            def word(offset: int) -> ir.Value:
                place = builder.add(arguments[1], ir.Constant(arguments[1].type, offset))
                return builder.load(builder.gep(words, [place]))

            array = make_array(kind)(context, builder)
            data = builder.inttoptr(word(0), context.get_data_type(kind.dtype).as_pointer())
            shape = [word(1 + axis) for axis in range(kind.ndim)]
            strides = [word(1 + kind.ndim + axis) for axis in range(kind.ndim)]
            itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
            populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
            return array._getvalue()

        return kind(table, at), codegen

    return read
