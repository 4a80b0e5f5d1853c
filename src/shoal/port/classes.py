"""Objects and named tuples of somebody's classes: members, properties, operators."""

from __future__ import annotations

import ast
import functools
import inspect
import types

from shoal.port.plain import PlainStatements
from shoal.port.refusal import Cannot
from shoal.port.values import Bound, Const, Obj, Seq, Value

METHODS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip


class Classes(PlainStatements):
    """How members of classes are found."""

    def class_of(self, value: Value) -> type | None:
        """The class that somebody wrote for an object or a named tuple."""
        return type(value.layout.example) if isinstance(value, Obj) else value.named if isinstance(value, Seq) else None

    def attribute_of_named_tuple(self, owner: Seq, name: str) -> Value:
        fields = list(getattr(owner.named, "_fields", ()))
        return owner.items[fields.index(name)] if name in fields else self.member(owner, name)

    def member(self, owner: Value, name: str) -> Value:
        """What the class of an object says about a name: a property's value, a method, a constant."""
        cls = self.class_of(owner)
        assert cls is not None
        member = inspect.getattr_static(cls, name)
        if isinstance(member, property | functools.cached_property):
            function = member.fget if isinstance(member, property) else member.func
            return self.call_function(function, [owner], {}, owner=_owner(cls, name))
        if isinstance(member, staticmethod | classmethod):
            receiver = None if isinstance(member, staticmethod) else Const(cls)
            return Bound(receiver, name, member.__func__) if receiver else Const(member.__func__)
        if isinstance(member, types.FunctionType) and name != "_replace":
            return Bound(owner, name, member)
        if isinstance(owner, Seq):
            return Bound(owner, name)
        self.folded(f"{cls.__module__}:{cls.__qualname__}.{name}", member)
        return self.constant(member)

    def operator_method(self, op: ast.operator, left: Value, right: Value) -> Value | None:
        """The operation as somebody's class defines it; None where it does not."""
        name = METHODS.get(type(op), "")
        for owner, other, prefix in ((left, right, "__"), (right, left, "__r")):
            cls = self.class_of(owner) or (type(owner.value) if isinstance(owner, Const) else None)
            method = inspect.getattr_static(cls, f"{prefix}{name}__", None) if cls is not None else None
            if isinstance(method, types.FunctionType):
                return self.call_function(method, [owner, other], {}, owner=cls)
        if isinstance(left, Obj) or isinstance(right, Obj):
            raise Cannot("computes with objects", "Compute with their numbers.")
        return None


def _owner(cls: type, name: str) -> type | None:
    return next((base for base in cls.__mro__ if name in vars(base)), None)
