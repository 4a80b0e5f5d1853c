"""Where lanes lie in memory, and how compiled code finds them there.

*All lanes*: `Columns` has one array per field and is used like the array of records that it stands for. Fields that lie
side by side for neighbouring lanes are what lets LLVM compute several lanes at once. Records stay where a lane has
fields that are arrays: its code then walks through one lane's numbers, which are better kept together.

*One lane*: a kernel's `s` is a record of NumPy's where lanes are records, and a `LaneType` where they are columns: an
index and one address per field. Reading `s.x` is then a load from a column at that index; after inlining nothing else
is left of it. Rows of arrays have sizes that are known when compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types, typing
from numba.core.base import BaseContext
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.datamodel import DataModelManager
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
)
from numba.np import numpy_support
from numba.np.arrayobj import make_array, populate_array

from shoal.jit.entries import Part, WholeLibrary

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


# ---------------------------------------------------------------------- one lane, as compiled code sees it


Fields = tuple[tuple[str, np.dtype, tuple[int, ...], bool], ...]
"""Name, type of an element, and sizes of each field of a record, and whether each lane has its own."""


def fields_of(record: np.dtype, of_lane: Collection[str]) -> Fields:
    """The fields of a record's dtype in order; those that are not `of_lane` are shared by all lanes."""
    kinds = [(name, record[name]) for name in record.names or ()]
    return tuple((name, kind.base, kind.shape, name in of_lane) for name, kind in kinds)


class LaneType(types.Type):
    """Numba's type of one lane of columns."""

    def __init__(self, fields: Fields) -> None:
        self.fields = {name: (numpy_support.from_dtype(dtype), shape) for name, dtype, shape, _ in fields}
        self.shared = {name for name, _, _, of_lane in fields if not of_lane}
        super().__init__(name=f"Lane({', '.join(map(str, fields))})")


@register_model(LaneType)
class _LaneModel(models.StructModel):
    def __init__(self, dmm: DataModelManager, fe_type: LaneType) -> None:
        addresses = [(f"at_{name}", types.CPointer(kind)) for name, (kind, _) in fe_type.fields.items()]
        super().__init__(dmm, fe_type, [("index", types.intp), *addresses])


@infer_getattr
class _LaneAttributes(AttributeTemplate):
    key = LaneType

    def generic_resolve(self, lane: LaneType, name: str) -> types.Type | None:  # type: ignore[override]
        if name not in lane.fields:
            return None
        kind, shape = lane.fields[name]
        return types.Array(kind, len(shape), "C") if shape else kind


@lower_getattr_generic(LaneType)
def _read_field(context: BaseContext, builder: ir.IRBuilder, lane: LaneType, value: ir.Value, name: str) -> ir.Value:
    kind, shape = lane.fields[name]
    place = _place(context, builder, lane, value, name)
    return _view(context, builder, kind, shape, place) if shape else context.unpack_value(builder, kind, place)


@lower_setattr_generic(LaneType)
def _write_field(
    context: BaseContext, builder: ir.IRBuilder, signature: typing.Signature, arguments: Sequence[ir.Value], name: str
) -> None:
    lane, value = arguments
    kind = signature.args[0].fields[name][0]
    context.pack_value(builder, kind, value, _place(context, builder, signature.args[0], lane, name))


def _place(context: BaseContext, builder: ir.IRBuilder, lane: LaneType, value: ir.Value, name: str) -> ir.Value:
    """The address of the lane's field."""
    parts = cgutils.create_struct_proxy(lane)(context, builder, value)
    if name in lane.shared:
        return getattr(parts, f"at_{name}")
    size = int(np.prod(lane.fields[name][1]))
    index = parts.index if size == 1 else builder.mul(parts.index, context.get_constant(types.intp, size))
    return builder.gep(getattr(parts, f"at_{name}"), [index])


def _view(
    context: BaseContext, builder: ir.IRBuilder, kind: types.Type, shape: tuple[int, ...], place: ir.Value
) -> ir.Value:
    """An array of constant sizes at `place`: LLVM then knows every stride."""
    itemsize = context.get_abi_sizeof(context.get_data_type(kind))
    strides = [itemsize * int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    array = make_array(types.Array(kind, len(shape), "C"))(context, builder)
    sizes, steps = ([context.get_constant(types.intp, n) for n in numbers] for numbers in (shape, strides))
    populate_array(array, place, sizes, steps, context.get_constant(types.intp, itemsize), meminfo=None)
    return array._getvalue()


def lane_maker(fields: Fields) -> Callable:
    """A function of compiled code: `lane(i, column, column, ...)` is lane `i` of these columns."""

    @intrinsic
    def lane(typing_context, i, *columns):
        kind = LaneType(fields)

        def codegen(context, builder, signature, arguments):
            parts = cgutils.create_struct_proxy(kind)(context, builder)
            parts.index = arguments[0]
            arrays = cgutils.unpack_tuple(builder, arguments[1])
            for name, array_type, array in zip(kind.fields, signature.args[1], arrays, strict=True):
                setattr(parts, f"at_{name}", make_array(array_type)(context, builder, array).data)
            return parts._getvalue()

        return kind(i, types.StarArgTuple.from_types(columns)), codegen

    return lane


def row_maker(shape: tuple[int, ...]) -> Callable:
    """A function of compiled code: `row(array, i)` is `array[i]`, an array of this shape."""
    size = int(np.prod(shape))

    @intrinsic
    def row(typing_context, array, i):
        def codegen(context, builder, signature, arguments):
            data = make_array(signature.args[0])(context, builder, arguments[0]).data
            start = builder.mul(arguments[1], context.get_constant(types.intp, size))
            return _view(context, builder, array.dtype, shape, builder.gep(data, [start]))

        return types.Array(array.dtype, len(shape), "C")(array, types.intp), codegen

    return row


@intrinsic
def flatten(typing_context, array):
    """The numbers of a C-contiguous array in a row. (`reshape` would look for a way, at every call.)"""

    def codegen(context, builder, signature, arguments):
        given = make_array(signature.args[0])(context, builder, arguments[0])
        flat = make_array(signature.return_type)(context, builder)
        populate_array(flat, given.data, [given.nitems], [given.itemsize], given.itemsize, meminfo=None)
        return flat._getvalue()

    return types.Array(array.dtype, 1, "C")(array), codegen


class Disjoint(CompilerBase):
    """Numba's usual passes for functions whose array arguments never overlap, which LLVM is told."""

    def define_pipelines(self) -> list:
        self.state.flags.noalias = True
        self.state.library = WholeLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class DisjointPart(Part):
    """The same for a function that only compiled code calls."""

    def define_pipelines(self) -> list:
        self.state.flags.noalias = True
        return super().define_pipelines()
