"""`random` and `np.random` for each lane apart: what a lane draws there depends on its seed and on nothing else.

Environments should draw from `self.np_random`, but many draw from these two, which belong to the whole process. A lane
that was given a seed has a generator of each for itself, put in place for its turn: as if `random.seed(seed)` and
`np.random.seed(seed % 2**32)` had been called before its reset. NumPy forgets the spare normal number of the
generator that is taken out, so a lane that draws single ones with `np.random.normal` draws a new pair in each step.
"""

from __future__ import annotations

import _random
import ctypes
import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.random.mtrand import get_bit_generator, set_bit_generator

_process: Any = random.random.__self__  # type: ignore[attr-defined]
"""The `random.Random` behind the functions of the module."""

_WORDS = 624
_BYTES = 4 + 4 * _WORDS  # of a Mersenne twister: how many words are used up, and the words
_READABLE = _random.Random.__basicsize__ - object.__basicsize__ in range(_BYTES, _BYTES + 8)
"""Whether the object is nothing but its head and these bytes, as in CPython."""
_LAYOUT = f"<{_WORDS + 1}I?dI"  # of Python's: words, how many are used up, the spare normal number; NumPy's used up
_MARK = b"\0shoal:random"


class OwnRandom:
    """The two generators of one lane."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.python: Any = random.Random(seed)  # typed as `_process`: stubs do not know `gauss_next`
        self.bits = np.random.MT19937()
        np.random.RandomState(self.bits).seed(seed % 2**32)
        self.memory: Any = _memory(self.python)

    def twin(self) -> OwnRandom:
        """Another pair that will draw the same."""
        return self.from_content(self._content())

    def saved(self) -> bytes:
        """To be put behind other bytes; `split` takes them apart again."""
        content = self._content()
        return content + struct.pack("<I", len(content)) + _MARK

    def _content(self) -> bytes:
        """The seed, and the states if something was drawn since."""
        seed, drawn, fresh = struct.pack("<Q", self.seed), self._states(), OwnRandom(self.seed)._states()
        return seed if drawn == fresh else seed + drawn

    def _states(self) -> bytes:
        _, words, spare = self.python.getstate()
        state = self.bits.state["state"]
        numbers = struct.pack(_LAYOUT, *words, spare is not None, spare or 0.0, state["pos"])
        return numbers + np.asarray(state["key"], "<u4").tobytes()

    @classmethod
    def from_content(cls, content: bytes) -> OwnRandom:
        """The pair as it was."""
        own = cls(*struct.unpack_from("<Q", content))
        if drawn := content[8:]:
            *words, has_spare, spare, position = struct.unpack_from(_LAYOUT, drawn)
            own.python.setstate((random.Random.VERSION, tuple(words), spare if has_spare else None))
            key = np.frombuffer(drawn, "<u4", _WORDS, struct.calcsize(_LAYOUT))
            own.bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
        return own


def split(data: bytes) -> tuple[bytes, OwnRandom | None]:
    """What stood before `saved`, and the generators; states of older versions have none."""
    if not data.endswith(_MARK):
        return data, None
    stop = len(data) - len(_MARK) - 4
    start = stop - struct.unpack_from("<I", data, stop)[0]
    return data[:start], OwnRandom.from_content(data[start:stop])


class Turns:
    """Whose generators are in place: the process's, or those of a lane of the list `own`."""

    def __init__(self, own: list[OwnRandom | None]) -> None:
        self.own = own
        self._placed: OwnRandom | None = None
        self._aside: Any = random.Random()  # holds the process's own during a turn
        self._aside_memory, self._live = _memory(self._aside), _memory(_process)
        self._aside_bits: Any = None

    def give(self, row: int) -> None:
        """It is the turn of lane `row`, until another's or `end`. Costs about a microsecond."""
        own, placed, live = self.own[row], self._placed, self._live
        if own is placed:
            return
        if own is None:
            self.end()
        elif placed is None or live is None:
            self._replace(own)
        else:  # as `_replace` does it, without the calls
            placed.memory[:] = live
            placed.python.gauss_next = _process.gauss_next
            set_bit_generator(own.bits)
            live[:] = own.memory
            _process.gauss_next = own.python.gauss_next
            self._placed = own

    def _replace(self, own: OwnRandom) -> None:
        placed = self._placed
        if placed is None:
            self._aside_bits = get_bit_generator()
            self._take_out(self._aside, self._aside_memory)
        else:
            self._take_out(placed.python, placed.memory)
        set_bit_generator(own.bits)
        self._put_in(own.python, own.memory)
        self._placed = own

    def end(self) -> None:
        """The process has its own generators back."""
        if self._placed is not None:
            self._take_out(self._placed.python, self._placed.memory)
            self._put_in(self._aside, self._aside_memory)
            set_bit_generator(self._aside_bits)
            self._placed = None

    def _take_out(self, kept: Any, memory: memoryview | None) -> None:
        if memory is None or self._live is None:
            kept.setstate(_process.getstate())
        else:
            memory[:] = self._live
            kept.gauss_next = _process.gauss_next

    def _put_in(self, kept: Any, memory: memoryview | None) -> None:
        if memory is None or self._live is None:
            _process.setstate(kept.getstate())
        else:
            self._live[:] = memory
            _process.gauss_next = kept.gauss_next


@contextmanager
def turn_of(own: OwnRandom) -> Iterator[None]:
    """A single turn."""
    turns = Turns([own])
    turns.give(0)
    try:
        yield
    finally:
        turns.end()


def _memory(generator: random.Random) -> memoryview | None:
    """Where CPython keeps the state: copying it takes a hundredth of the time of `getstate` and `setstate`, which are
    used where it lies elsewhere."""
    if not _READABLE:
        return None
    array = (ctypes.c_char * _BYTES).from_address(id(generator) + object.__basicsize__)
    return memoryview(array).cast("B")
