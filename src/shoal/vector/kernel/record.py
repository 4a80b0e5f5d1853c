"""The state of one lane: a NumPy record with named fields, declared as `record(pos=f32[2], t=i32)`.

Field types say how a number is *stored*. Inside a kernel every number is read as float64, int64 or bool and rounded
when it is stored (see `source.py` for why).
"""

from __future__ import annotations

import keyword
import sys

import numpy as np

from shoal.errors import ConfigError


def _here() -> str:
    """`toy.py:12`: the author's line."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Field:
    """A storage type; `f32[2, 3]` is an array of it."""

    def __init__(self, dtype: type[np.generic], shape: tuple[int, ...] = ()) -> None:
        self.dtype = np.dtype(dtype)
        self.shape = shape

    def __getitem__(self, shape: int | tuple[int, ...]) -> Field:
        sizes = shape if isinstance(shape, tuple) else (shape,)
        if self.shape or not all(isinstance(n, int) and n > 0 for n in sizes):
            raise ConfigError(
                f"{_here()}: {self}[{shape!r}] is not a field. Give the sizes once, as whole numbers: f32[2, 3]."
            )
        return Field(self.dtype.type, sizes)

    def __call__(self, *given: object) -> Field:
        """Not a function, though it looks like one of NumPy's types."""
        call = f"{self}({', '.join(map(str, given))})"
        raise ConfigError(f"{_here()}: {call} is not a field. Give sizes in brackets: {self}[4].")

    def __repr__(self) -> str:
        bits = 1 if self.dtype == np.bool_ else 8 * self.dtype.itemsize
        return f"{self.dtype.kind}{bits}{list(self.shape) if self.shape else ''}"


f32, f64 = Field(np.float32), Field(np.float64)
i8, i16, i32, i64 = Field(np.int8), Field(np.int16), Field(np.int32), Field(np.int64)
u8, u16, u32, u64 = Field(np.uint8), Field(np.uint16), Field(np.uint32), Field(np.uint64)
b1 = Field(np.bool_)


def record(*unnamed: object, **fields: Field) -> np.dtype:
    """The dtype of one lane's record, C layout with natural alignment."""
    if unnamed:
        raise ConfigError(
            f"{_here()}: record() got {unnamed[0]!r} without a name. Name every field: record(x=f32, t=i32)."
        )
    if not fields:
        raise ConfigError(f"{_here()}: record() needs at least one field, e.g. record(x=f32, t=i32).")
    for name, field in fields.items():
        if not isinstance(field, Field):
            types = "f32, f64, i8 to i64, u8 to u64, b1, or f32[n]"
            raise ConfigError(f"{_here()}: field {name!r} is {field!r}. Use {types}.")
        if not name.isidentifier():
            raise ConfigError(f"{_here()}: field {name!r} is not a name that `s.{name}` could use. Rename it.")
        if keyword.iskeyword(name) or hasattr(np.record, name):
            raise ConfigError(f"{_here()}: field {name!r} would hide a name of NumPy's records. Choose another name.")
    return np.dtype([(name, field.dtype, field.shape) for name, field in fields.items()], align=True)
