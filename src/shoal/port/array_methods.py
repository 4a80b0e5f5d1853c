"""Methods of arrays."""

from __future__ import annotations

import numpy as np

from shoal.port.numpy_reductions import NumpyReductions
from shoal.port.refusal import Cannot
from shoal.port.values import BOOL, FLOAT, INT, Cells, Const, Dyn, Kind, Mem, Num, Seq, Value


class ArrayMethods(NumpyReductions):
    """How methods of arrays are followed."""

    def array_method(self, owner: Value, name: str, arguments: list[Value], named: dict[str, Value]) -> Value:
        if name == "astype":
            dtype = self.dtype(named.get("dtype", arguments[0] if arguments else None)) or FLOAT
            if isinstance(owner, Const):
                return self.filled(owner.value.astype(dtype))
            return (
                self.elementwise(lambda a: self.cast(a, dtype), [owner])
                if self.shape(owner)
                else self.cast(self.number(owner), dtype)
            )
        if name == "copy":
            return self.np_array([owner], {})
        if name == "item" and not arguments:
            number = self.number(owner)
            return Num(number.expr, Kind(np.dtype({"b": BOOL, "f": FLOAT}.get(number.kind.dtype.kind, INT)), True))
        if name == "tolist":
            return self.as_list(owner)
        if name in ("fill", "sort"):
            self.changed(owner)
        if name == "fill":
            self.store_array(owner, arguments[0])
            return Const(None)
        if name in ("flatten", "ravel"):
            return self.reshaped(self.copy(owner) if name == "flatten" else owner, (-1,))
        if name == "reshape":
            return self.reshaped(
                owner,
                self.sizes(arguments[0]) if len(arguments) == 1 else tuple(n for a in arguments for n in self.sizes(a)),
            )
        if name == "sort" and isinstance(owner, Mem):
            self.sort_memory(owner)
            return Const(None)
        if name == "sort" and isinstance(owner, Cells):
            self.as_memory(owner)
        if name in ("sum", "mean", "min", "max", "any", "all", "argmax", "argmin", "prod", "cumsum", "clip", "dot",
                    "round", "std", "var", "nonzero", "transpose", "repeat", "searchsorted", "squeeze"):  # fmt: skip
            return self.numpy_call(name, [owner, *arguments], named)
        raise Cannot(f"calls .{name}() of an array, which has no translation", "Write it as a loop over the elements.")

    def as_list(self, owner: Value) -> Value:
        if not self.shape(owner):
            return self.array_method(owner, "item", [], {})
        if isinstance(owner, Mem) and isinstance(owner.shape[0], Dyn):
            return self.make_list([owner], {})
        items = [
            self.as_list(item) if self.shape(item) else self.weakened(self.number(item)) for item in self.items(owner)
        ]
        return Seq(items, True, self.site, self.depth)

    def weakened(self, number: Num) -> Num:
        dtype = {"b": BOOL, "f": FLOAT}.get(number.kind.dtype.kind, INT)
        return Num(number.expr, Kind(np.dtype(dtype), True))
