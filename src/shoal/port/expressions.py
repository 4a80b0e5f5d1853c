"""Expressions of the environment's source: constants are folded, the rest becomes kernel code."""

from __future__ import annotations

import ast
import builtins
import enum
import operator
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from shoal.port.classes import Classes
from shoal.port.constants import fingerprint
from shoal.port.frames import Frame, Walk
from shoal.port.joining import join, layout_of
from shoal.port.layouts import ListL, read_at, tidy
from shoal.port.refusal import Cannot, Raises
from shoal.port.values import (
    F32,
    FLOAT,
    FOREIGN,
    INT,
    NP_BOOL,
    PY_BOOL,
    PY_INT,
    TEXT,
    Bound,
    Cells,
    Const,
    Dyn,
    Either,
    Fam,
    Generator,
    Kind,
    Lst,
    Maybe,
    Mem,
    Num,
    Obj,
    Opaque,
    Seq,
    Value,
    as_whole,
    promote,
    rounded,
    rounds_otherwise,
)

OPERATORS: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv), ast.FloorDiv: ("//", operator.floordiv), ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow), ast.BitAnd: ("&", operator.and_), ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor), ast.LShift: ("<<", operator.lshift), ast.RShift: (">>", operator.rshift),
}  # fmt: skip
GENERATORS = ("Generator", "default_rng", "RandomState", "PCG64", "SeedSequence")
COMPARISONS: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne), ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt), ast.GtE: (">=", operator.ge),
}  # fmt: skip


LARGEST = 2.0**62
"""Whole numbers of Python's that are kept in 64 bits stay below this."""
SMALL_FACTOR = 1_000_000


class Expressions(Classes):
    """How expressions are followed."""

    def value(self, node: ast.expr) -> Value:
        outer = self.site
        self.site = (self.frame.key, getattr(node, "lineno", 0), getattr(node, "col_offset", 0), type(node).__name__)
        try:
            return getattr(self, f"see_{type(node).__name__}", self.see_unknown)(node)
        except Cannot as cannot:
            if not hasattr(cannot, "node"):
                cannot.node = node  # type: ignore[attr-defined]
            raise
        finally:
            self.site = outer

    def values(self, nodes: list[ast.expr]) -> list[Value]:
        """Several values in order: what is computed first is kept where a later one writes lines."""
        found: list[tuple[int, Value]] = []
        for node in nodes:
            start = len(self.lines)
            value = self.value(node)
            if len(self.lines) > start and found:
                found = self.keep_before(found, start)
            found.append((len(self.lines), value))
        return [value for _, value in found]

    def keep_before(self, found: list[tuple[int, Value]], start: int) -> list[tuple[int, Value]]:
        """Put what these values are now into variables, before the lines that were written since."""
        later = self.lines[start:]
        del self.lines[start:]
        kept = [(at, self.hold(value)) for at, value in found]
        self.lines.extend(later)
        return kept

    def see_unknown(self, node: ast.expr) -> Value:
        raise Cannot(f"is a {type(node).__name__}, which is not translated")

    # ------------------------------------------------------------------ names and attributes

    def see_Constant(self, node: ast.Constant) -> Value:
        return Const(node.value)

    def see_JoinedStr(self, node: ast.JoinedStr) -> Value:
        """Text of pieces that are known or one of some; of others it is for people to read."""
        made: Value = Const("")
        parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
        plain = [isinstance(p, ast.Name | ast.Attribute | ast.Constant) for p in parts]
        shaped = any(isinstance(p, ast.FormattedValue) and (p.format_spec or p.conversion >= 0) for p in node.values)
        if shaped or not all(plain):
            return Opaque(TEXT)
        with self.block(dynamic=False) as lines:
            for part in parts:
                try:
                    piece = self.value(part)
                    options = piece.options if isinstance(piece, Fam) else [getattr(piece, "value", None)]
                    if not all(isinstance(x, str | int) and not isinstance(x, enum.Enum) for x in options):
                        return Opaque(TEXT)
                    made = self.binary(ast.Add(), made, self.make_str([piece], {}))
                except Cannot:
                    return Opaque(TEXT)
        self.lines += lines
        return made

    def see_Name(self, node: ast.Name) -> Value:
        frame: Frame | None = self.frame
        while frame is not None:
            if node.id in frame.names:
                return frame.names[node.id]
            frame = frame.outer
        scope = self.frame.scope
        if node.id in scope:
            self.folded(f"{scope.get('__name__')}:{node.id}", scope[node.id])
            return self.constant(scope[node.id])
        if hasattr(builtins, node.id):
            return Const(getattr(builtins, node.id))
        raise Cannot(f"uses {node.id!r}, which has no value here")

    def must_be_ours(self, module: str) -> None:
        """Refuse packages that a kernel cannot use."""
        package = module.split(".")[0]
        if package in FOREIGN:
            raise Cannot(f"calls {package}, which cannot be compiled", "Compute it once in __init__, or write it out.")

    def folded(self, place: str, x: object) -> None:
        """Note a constant of a module or class: with another value, the translation would be another."""
        digest = fingerprint(x)
        if digest is not None:
            self.constants[place] = digest

    def constant(self, x: object) -> Value:
        """A constant of the module or of the environment, which others may know too."""
        if isinstance(x, list | dict | set | np.ndarray):
            self.kept[id(x)] = x
        return Const(x)

    def see_Attribute(self, node: ast.Attribute) -> Value:
        return self.attribute(self.value(node.value), self.mangled(node.attr))

    def mangled(self, name: str) -> str:
        """`__name` inside a class is `_Class__name`."""
        owner = self.frame.owner
        if owner is None or not name.startswith("__") or name.endswith("__"):
            return name
        return f"_{owner.__name__.lstrip('_')}{name}"

    def attribute(self, owner: Value, name: str) -> Value:
        if isinstance(owner, Obj):
            return self.attribute_of_object(owner, name)
        if isinstance(owner, Const):
            return self.attribute_of_constant(owner.value, name)
        if isinstance(owner, Fam):
            if all(hasattr(x, name) and not callable(getattr(x, name)) for x in owner.options):
                return Fam([getattr(x, name) for x in owner.options], owner.index)
            if all(isinstance(x, str | dict) for x in owner.options):
                return Bound(owner, name)
            if all(isinstance(getattr(x, name, None), types.MethodType) for x in owner.options):
                return Fam([getattr(x, name) for x in owner.options], owner.index)
            return Bound(self.realise(owner), name)
        if isinstance(owner, Maybe):
            return self.attribute(owner.value, name)
        if isinstance(owner, Cells | Mem) and name in ("shape", "size", "ndim", "dtype", "T", "flat"):
            return self.array_attribute(owner, name)
        if isinstance(owner, Opaque) and owner.why != TEXT:
            raise Cannot(f"uses what {owner.why}")
        if isinstance(owner, Seq) and owner.named is not None:
            return self.attribute_of_named_tuple(owner, name)
        return Bound(owner, name)

    def attribute_of_constant(self, x: object, name: str) -> Value:
        if isinstance(x, types.ModuleType) and x.__name__ in ("random", "numpy.random") and name not in GENERATORS:
            raise Cannot(
                "draws from global random numbers, which a seed does not reach",
                "Use self.np_random, which reset(seed=...) seeds.",
            )
        if isinstance(x, types.ModuleType):
            self.must_be_ours(x.__name__)
        try:
            if isinstance(x, types.ModuleType):
                self.folded(f"{x.__name__}:{name}", getattr(x, name))
            elif isinstance(x, type):
                self.folded(f"{x.__module__}:{x.__qualname__}.{name}", getattr(x, name))
            return self.constant(getattr(x, name))
        except AttributeError as error:
            raise Raises(error) from None

    def attribute_of_object(self, owner: Obj, name: str) -> Value:
        example = owner.layout.example
        if name in ("unwrapped",) and owner.base == "s.":
            return owner
        if name in ("np_random", "_np_random") and isinstance(example, gym.Env):
            return Generator()
        if name in owner.layout.attributes:
            base = owner.base + tidy(name) if owner.base.endswith(".") else f"{owner.base}_{tidy(name)}"
            layout = owner.layout.attributes[name]
            if type(layout).__name__ == "VarL":
                return layout.load(self, base)
            value = read_at(layout, base, owner.index)
            if owner.base == "s." and self.place_of(layout) is not None:
                return self.there(value)
            return self.constant(value.value) if isinstance(value, Const) else value
        if name == "__class__":
            return Const(type(example))
        try:
            return self.member(owner, name)
        except AttributeError:
            raise Cannot(
                f"reads {name!r}, which no episode that was watched has set", "Set it in __init__ or in reset."
            ) from None

    # ------------------------------------------------------------------ arithmetic

    def see_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.values([node.left, node.right])
        return self.binary(node.op, left, right)

    def binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        left, right = (self.list_of_walk(v) if isinstance(v, Walk) else self.simple(v) for v in (left, right))
        if isinstance(op, ast.MatMult):
            return self.numpy_call("matmul", [left, right], {})
        if isinstance(left, Const) and isinstance(right, Const):
            try:
                with np.errstate(all="ignore"):
                    return Const(OPERATORS[type(op)][1](left.value, right.value))
            except Exception as error:
                raise Raises(error) from None
        if isinstance(left, Either) or isinstance(right, Either):
            return self.operate_either(op, left, right)
        if is_array(left) or is_array(right):
            return self.elementwise(lambda a, b: self.operate(op, a, b, True), [left, right])
        if isinstance(op, ast.Add):
            text = self.joined_text(left, right)
            if text is not None:
                return text
        method = self.operator_method(op, left, right)
        if method is not None:
            return method
        if isinstance(left, Const | Seq | Lst | Num) and isinstance(right, Const | Seq | Lst | Num):
            sequence = self.sequence_operation(op, left, right)
            if sequence is not None:
                return sequence
        for side in (left, right):
            if isinstance(side, Opaque):
                if side.why == TEXT:
                    return Opaque(TEXT)
                raise Cannot(
                    f"uses something that {side.why}", "Keep one type and one shape in each variable and attribute."
                )
        return self.operate(op, self.number(left), self.number(right), False)

    def joined_text(self, left: Value, right: Value) -> Fam | None:
        """`a + b` of strings of which each is one of some."""
        sides = [v.options if isinstance(v, Fam) else [v.value] if isinstance(v, Const) else [] for v in (left, right)]
        if not all(side and all(isinstance(x, str) for x in side) for side in sides):
            return None
        if len(sides[0]) * len(sides[1]) > 1000:
            raise Cannot("puts together text of which there is too much", "Keep numbers in place of text.")
        first, second = (v.index if isinstance(v, Fam) else "0" for v in (left, right))
        index = self.temporary(f"({first}) * {len(sides[1])} + {second}")
        return Fam([a + b for a in sides[0] for b in sides[1]], index, made=True)

    def operate_either(self, op: ast.operator, left: Value, right: Value) -> Value:
        """The operation for both types that a number can have."""
        test, a, b = self.for_both_types(partial(self.binary, op), left, right)
        if isinstance(a, Num) and isinstance(b, Num) and rounds_otherwise(a.kind, b.kind):
            return Either(test, a, b)
        return self.choose(test, ([], b), ([], a))

    def for_both_types(
        self, compute: Callable[[Value, Value], Value], left: Value, right: Value
    ) -> tuple[str, Value, Value]:
        """What decides which type `left` or `right` has, and what is computed for the first and for the second."""
        left, right = self.hold(left), self.hold(right)
        either = left if isinstance(left, Either) else right
        assert isinstance(either, Either)
        first, second = (
            compute(part if either is left else left, part if either is right else right)
            for part in (either.first, either.second)
        )
        return either.test, first, second

    def sequence_operation(self, op: ast.operator, left: Value, right: Value) -> Value | None:
        is_left, is_right = (
            isinstance(v, Seq) or (isinstance(v, Const) and isinstance(v.value, tuple | list)) for v in (left, right)
        )
        if isinstance(op, ast.Add) and is_left and is_right:
            return self.sequence(self.items(left) + self.items(right), self.is_list(left))
        if isinstance(op, ast.Mult) and is_right and not is_left:
            return self.sequence_operation(op, right, left)
        if isinstance(op, ast.Mult) and is_left and isinstance(right, Const):
            return self.sequence(self.items(left) * int(right.value), self.is_list(left))
        if isinstance(op, ast.Mult) and is_left and isinstance(right, Num) and len(self.items(left)) == 1:
            return self.repeated(self.items(left)[0], right)
        if isinstance(op, ast.Add) and (isinstance(left, Lst) or isinstance(right, Lst)):
            return self.joined_lists(left, right)
        if isinstance(op, ast.BitAnd | ast.BitOr | ast.Sub) and any(isinstance(v, Lst) for v in (left, right)):
            return self.set_operation(op, left, right)
        return None

    def repeated(self, item: Value, count: Num) -> Value:
        """`[item] * count`: a list whose length varies."""
        layout, item = layout_of(self.simple(item)), self.hold(item)
        cap = self.decisions.list_cap()
        made = self.write(ListL(layout, cap), self.unique("items"), Seq([]))
        assert isinstance(made, Lst)
        length = self.temporary(f"max({as_whole(count)}, 0)", "new_len")
        self.emit(f"assert {length} <= {cap}")
        self.loop((Dyn(length, cap),), lambda at: self.write(layout, made.base, item, (at[0],)))
        self.emit(f"{made.length} = {length}")
        return made

    def joined_lists(self, left: Value, right: Value) -> Value:
        """A new list of two, at least one of which varies in length."""
        layouts = [self.item_layout(v) if isinstance(v, Lst) else None for v in (left, right)]
        layout = next(each for each in layouts if each is not None)
        cap = sum(v.cap if isinstance(v, Lst) else len(self.items(v)) for v in (left, right))
        for value, known in zip((left, right), layouts, strict=True):
            for other in [known] if known is not None else [layout_of(self.simple(i)) for i in self.items(value)]:
                layout = join(layout, other)
        made = self.write(ListL(layout, cap), self.unique("items"), Seq([]))
        self.extend_list(made, left)
        self.extend_list(made, right)
        return made

    def is_list(self, value: Value) -> bool:
        return value.is_list if isinstance(value, Seq) else isinstance(getattr(value, "value", None), list)

    def operate(self, op: ast.operator, left: Num, right: Num, in_array: bool) -> Num:
        """One operation on two numbers, as NumPy or Python would compute it."""
        symbol = OPERATORS[type(op)][0]
        if isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and left.kind.is_bool and right.kind.is_bool:
            kind = PY_BOOL if left.kind.weak and right.kind.weak else NP_BOOL
            return Num(f"({left.expr} {symbol} {right.expr})", kind)
        kind = promote(left.kind, right.kind)
        if isinstance(op, ast.Div) and not kind.is_float:
            kind = Kind(FLOAT, kind.weak, kind.mixed)
        if kind.is_bool:
            if isinstance(op, ast.Add | ast.Mult):
                return Num(f"({left.expr} {'or' if isinstance(op, ast.Add) else 'and'} {right.expr})", kind)
            kind = Kind(INT)
        a, b = as_whole(left), as_whole(right)
        if kind.dtype == F32:  # NumPy rounds Python's numbers before it computes
            a, b = (
                t if n.kind.dtype == F32 or _is_exact(t) else f"np.float32({t})" for t, n in ((a, left), (b, right))
            )
        if kind.weak and not kind.is_float and isinstance(op, ast.Mult | ast.LShift | ast.Pow):
            a, b = self.kept_in_word(op, a, b)
        if isinstance(op, ast.Pow):
            return self.power(a, b, left, right, kind)
        if kind.weak and isinstance(op, ast.Div | ast.FloorDiv | ast.Mod):
            b = self.not_zero(b)
        if isinstance(op, ast.Div) and not left.kind.is_float and not right.kind.is_float:
            a = f"float({a})"
        return Num(rounded(f"({a} {symbol} {b})", kind), kind)

    def not_zero(self, divisor: str) -> str:
        """A number of Python's own that something is divided by."""
        if _is_number(divisor):
            return divisor
        held = divisor if self.is_stable(divisor) else self.temporary(divisor)
        self.emit(f"assert {held} != 0")
        return held

    def kept_in_word(self, op: ast.operator, a: str, b: str) -> tuple[str, str]:
        """Operands of whole numbers of Python's own, which have no end: what 64 bits do not hold stops the batch."""
        varying = [x for x in (a, b) if not _is_whole(x)]
        small = [x for x in (a, b) if _is_whole(x) and abs(int(x)) <= SMALL_FACTOR]
        if not varying or set(varying) <= self.natural:
            return a, b
        if isinstance(op, ast.Mult) and small:  # what grows by such factors is seen where it is kept
            return a, b
        a, b = (x if _is_whole(x) or self.is_stable(x) else self.temporary(x) for x in (a, b))
        if isinstance(op, ast.Mult):
            self.emit(f"assert abs(float({a}) * float({b})) < {LARGEST!r}")
        elif isinstance(op, ast.LShift):
            self.emit(f"assert {b} < 63 and abs(float({a})) * math.pow(2.0, float({b})) < {2 * LARGEST!r}")
        else:
            self.emit(f"assert math.pow(abs(float({a})), float({b})) < {LARGEST!r}")
        return a, b

    def power(self, a: str, b: str, left: Num, right: Num, kind: Kind) -> Num:
        if not kind.is_float:
            if b.startswith("-"):
                return Num(f"math.pow(float({a}), float({b}))", Kind(FLOAT, True))
            if kind.weak and not _is_whole(b) and b not in self.natural:
                b = b if self.is_stable(b) else self.temporary(b)
                self.emit(f"assert {b} >= 0")  # fractions otherwise
            a = f"({a})" if a.startswith("-") else a
            return Num(rounded(f"({a} ** {b})", kind), kind)
        if b in ("2", "2.0"):
            a = a if self.is_stable(a) or a.isidentifier() else self.temporary(a)
            return Num(rounded(f"({a} * {a})", kind), kind)
        self.inexact["pow"] = None
        return Num(rounded(f"math.pow({a}, {b if right.kind.is_float else f'float({b})'})", kind), kind)

    def see_UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return self.test(node)
        value = self.simple(self.value(node.operand))
        if isinstance(value, Const):
            functions: dict[type, Callable[[Any], Any]] = {
                ast.USub: operator.neg,
                ast.UAdd: operator.pos,
                ast.Invert: operator.invert,
            }
            return Const(functions[type(node.op)](value.value))
        if is_array(value):
            return self.elementwise(lambda a: self.unary(node.op, a), [value])
        return self.unary(node.op, self.number(value))

    def unary(self, op: ast.unaryop, number: Num) -> Num:
        if isinstance(op, ast.UAdd):
            return number
        if isinstance(op, ast.Invert):
            if number.kind.is_bool and not number.kind.weak:
                return Num(f"(not {number.expr})", number.kind)
            return Num(f"(-1 - {number.expr})", number.kind if not number.kind.is_bool else PY_INT)
        kind = PY_INT if number.kind.is_bool else number.kind
        return Num(rounded(f"(-{number.expr})", kind) if kind.is_whole else f"(-{number.expr})", kind)


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdigit()


def _is_number(text: str) -> bool:
    """Whether this is a literal that is not zero."""
    try:
        return float(text) != 0.0
    except ValueError:
        return False


def _is_exact(text: str) -> bool:
    """Whether a literal is the same number in float32."""
    try:
        return float(np.float32(float(text))) == float(text)
    except ValueError:
        return False


def text_of(test: Value) -> str:
    """What is known to be true or false, or is computed, as an expression."""
    if isinstance(test, Const):
        return str(bool(test.value))
    assert isinstance(test, Num)
    return test.expr


def negated(value: Value) -> Value:
    if isinstance(value, Const):
        return Const(not value.value)
    assert isinstance(value, Num)
    return Num(f"(not {value.expr})", PY_BOOL)


def plain(x: object) -> bool:
    return isinstance(x, str | bytes | int | float | bool | np.generic | enum.Enum)


def is_array(value: Value) -> bool:
    if isinstance(value, Const):
        return isinstance(value.value, np.ndarray) and value.value.ndim > 0
    return isinstance(value, Cells | Mem)
