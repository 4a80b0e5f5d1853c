"""The state of all lanes as one array per field, used like the array of records that it stands for.

Fields that lie side by side for neighbouring lanes are what lets LLVM compute several lanes at once. Records stay where
a lane has fields that are arrays: its code then walks through one lane's numbers, which are better kept together.
"""

from __future__ import annotations

import numpy as np

_ALIGNMENT = 64  # bytes of a cache line, and of the widest vectors


class Columns:
    """[B] records of one dtype, stored by field.

    `columns["x"]` is the memory of a field, [B, ...], to read and to write. An index other than a name gives records as
    they are now, which cannot be written to.
    """

    def __init__(self, num_lanes: int, record: np.dtype) -> None:
        self.dtype, self.shape = record, (num_lanes,)
        names = record.names or ()
        room = [-(-record[name].itemsize * num_lanes // _ALIGNMENT) * _ALIGNMENT for name in names]
        memory = np.zeros(sum(room) + _ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % _ALIGNMENT
        self.arrays: dict[str, np.ndarray] = {}
        for name, size in zip(names, room, strict=True):
            column = memory[start : start + record[name].itemsize * num_lanes]
            self.arrays[name] = column.view(record[name].base).reshape(num_lanes, *record[name].shape)
            start += size

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: str | int | slice | np.ndarray) -> np.ndarray:
        if isinstance(key, str):
            return self.arrays[key]
        records = self.copy()
        records.flags.writeable = False  # a value that is set on a copy would be lost without a word
        return records[key]

    def __setitem__(self, key: str | int | slice | np.ndarray, value: object) -> None:
        if isinstance(key, str):
            self.arrays[key][...] = value
            return
        records = np.asarray(value, self.dtype)
        for name, column in self.arrays.items():
            column[key] = records[name]

    @property
    def nbytes(self) -> int:
        """Bytes of the records, padding included."""
        return len(self) * self.dtype.itemsize

    def copy(self) -> np.ndarray:
        """The lanes as an array of records of its own, [B], with zeros between the fields."""
        records = np.zeros(self.shape, self.dtype)
        for name, column in self.arrays.items():
            records[name] = column
        return records


def bytes_of(lanes: np.ndarray | Columns) -> np.ndarray:
    """All records as bytes of the caller's own, padding included."""
    return lanes.copy().view(np.uint8) if isinstance(lanes, Columns) else lanes.view(np.uint8).copy()


def suits_columns(record: np.dtype) -> bool:
    """Whether the lanes of a kernel are faster as columns: those without arrays."""
    return all(record[name].shape == () for name in record.names or ())
