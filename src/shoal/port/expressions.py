"""Expressions of the environment's source: constants are folded, the rest becomes kernel code."""

from __future__ import annotations

import ast
import builtins
import enum
import inspect
import operator
import types
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from shoal.port.layouts import ListL, NumL, join, layout_of, same, tidy
from shoal.port.refusal import Cannot, Restart
from shoal.port.statements import Frame, Statements, Walk, can_change, definition_of, same_value
from shoal.port.values import (
    BOOL,
    FLOAT,
    INT,
    NP_BOOL,
    PY_BOOL,
    TEXT,
    PY_INT,
    Bound,
    Cells,
    Const,
    DictV,
    Dyn,
    Either,
    F32,
    Fam,
    Generator,
    Kind,
    Local,
    Lst,
    Maybe,
    Mem,
    Num,
    Obj,
    Opaque,
    Seq,
    Value,
    as_float,
    as_whole,
    is_number,
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
COMPARISONS: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne), ast.Lt: ("<", operator.lt), ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt), ast.GtE: (">=", operator.ge),
}  # fmt: skip


class Expressions(Statements):
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
        return Opaque(TEXT)

    def see_Name(self, node: ast.Name) -> Value:
        frame: Frame | None = self.frame
        while frame is not None:
            if node.id in frame.names:
                return frame.names[node.id]
            frame = frame.outer
        scope = self.frame.scope
        if node.id in scope:
            return self.constant(scope[node.id])
        if hasattr(builtins, node.id):
            return Const(getattr(builtins, node.id))
        raise Cannot(f"uses {node.id!r}, which has no value here")

    def constant(self, x: Any) -> Value:
        """A constant of the module; the environment's own objects are known by their place."""
        return Const(x)

    def see_Attribute(self, node: ast.Attribute) -> Value:
        return self.attribute(self.value(node.value), node.attr)

    def attribute(self, owner: Value, name: str) -> Value:
        if isinstance(owner, Obj):
            return self.attribute_of_object(owner, name)
        if isinstance(owner, Const):
            return self.attribute_of_constant(owner.value, name)
        if isinstance(owner, Fam):
            if all(hasattr(x, name) and not callable(getattr(x, name)) for x in owner.options):
                return Fam([getattr(x, name) for x in owner.options], owner.index)
            return Bound(self.realise(owner), name)
        if isinstance(owner, Maybe):
            return self.attribute(owner.value, name)
        if isinstance(owner, Cells | Mem):
            if name in ("shape", "size", "ndim", "dtype", "T", "flat"):
                return self.array_attribute(owner, name)
        if isinstance(owner, Opaque):
            raise Cannot(f"uses what {owner.why}")
        return Bound(owner, name)

    def attribute_of_constant(self, x: Any, name: str) -> Value:
        if isinstance(x, types.ModuleType) and x.__name__ in ("random", "numpy.random") and name not in ("Generator",):
            raise Cannot(
                "draws from global random numbers, which a seed does not reach",
                "Use self.np_random, which reset(seed=...) seeds.",
            )
        if x is None:
            raise Cannot(f"asks None for {name!r}")
        try:
            return self.constant(getattr(x, name))
        except AttributeError:
            raise Cannot(f"asks {self.name_of(Const(x))} for {name!r}, which it does not have") from None

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
            return layout.read(base, owner.index)
        try:
            member = inspect.getattr_static(type(example), name)
        except AttributeError:
            if name == "__class__":
                return Const(type(example))
            raise Cannot(
                f"reads {name!r}, which no episode that was watched has set", "Set it in __init__ or in reset."
            ) from None
        if isinstance(member, property):
            return self.call_function(member.fget, [owner], {}, owner=_owner(type(example), name))
        if isinstance(member, staticmethod | classmethod):
            receiver = None if isinstance(member, staticmethod) else Const(type(example))
            return Bound(receiver, name, member.__func__) if receiver else Const(member.__func__)
        if isinstance(member, types.FunctionType):
            return Bound(owner, name, member)
        return self.constant(member)

    # ------------------------------------------------------------------ arithmetic

    def see_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.values([node.left, node.right])
        return self.binary(node.op, left, right)

    def binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        left, right = self.simple(left), self.simple(right)
        if isinstance(op, ast.MatMult):
            return self.numpy_call("matmul", [left, right], {})
        if isinstance(left, Const) and isinstance(right, Const):
            try:
                with np.errstate(all="ignore"):
                    return Const(OPERATORS[type(op)][1](left.value, right.value))
            except Exception as error:
                raise Cannot(f"raises {type(error).__name__}: {error}") from None
        if isinstance(left, Either) or isinstance(right, Either):
            return self.operate_either(op, left, right)
        if _is_array(left) or _is_array(right):
            return self.elementwise(lambda a, b: self.operate(op, a, b, True), [left, right])
        if isinstance(left, Const | Seq | Lst) and isinstance(right, Const | Seq | Lst | Num):
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
        if isinstance(left, Obj) or isinstance(right, Obj):
            return self.operator_method(op, left, right)
        return self.operate(op, self.number(left), self.number(right), False)

    def operate_either(self, op: ast.operator, left: Value, right: Value) -> Value:
        """The operation for both types that a number can have."""
        left, right = self.hold(left), self.hold(right)
        either = left if isinstance(left, Either) else right
        assert isinstance(either, Either)
        parts = [
            self.binary(op, part if either is left else left, part if either is right else right)
            for part in (either.first, either.second)
        ]
        if all(isinstance(p, Num) for p in parts):
            a, b = parts
            assert isinstance(a, Num) and isinstance(b, Num)
            if rounds_otherwise(a.kind, b.kind):
                return Either(either.test, a, b)
        return self.choose(either.test, ([], parts[1]), ([], parts[0]))

    def operator_method(self, op: ast.operator, left: Value, right: Value) -> Value:
        names = {ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__", ast.Div: "__truediv__"}
        name = names.get(type(op))
        if isinstance(left, Obj) and name and hasattr(type(left.layout.example), name):
            return self.call(self.attribute(left, name), [right], {})
        raise Cannot("computes with objects", "Compute with their numbers.")

    def sequence_operation(self, op: ast.operator, left: Value, right: Value) -> Value | None:
        is_left, is_right = (
            isinstance(v, Seq) or (isinstance(v, Const) and isinstance(v.value, tuple | list)) for v in (left, right)
        )
        if isinstance(op, ast.Add) and is_left and is_right:
            return Seq(self.items(left) + self.items(right), self.is_list(left), self.site, self.depth)
        if isinstance(op, ast.Mult) and is_left and isinstance(right, Const):
            return Seq(self.items(left) * int(right.value), self.is_list(left), self.site, self.depth)
        if isinstance(op, ast.Add) and (isinstance(left, Lst) or isinstance(right, Lst)):
            return self.joined_lists(left, right)
        return None

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
        if isinstance(op, ast.Pow):
            return self.power(a, b, left, right, kind)
        if isinstance(op, ast.Div) and not left.kind.is_float and not right.kind.is_float:
            a = f"float({a})"
        return Num(rounded(f"({a} {symbol} {b})", kind), kind)

    def power(self, a: str, b: str, left: Num, right: Num, kind: Kind) -> Num:
        if not kind.is_float:
            if b.startswith("-"):
                return Num(f"math.pow(float({a}), float({b}))", Kind(FLOAT, True))
            return Num(rounded(f"({a} ** {b})", kind), kind)
        if b in ("2", "2.0"):
            a = a if self.is_stable(a) or a.isidentifier() else self.temporary(a)
            return Num(rounded(f"({a} * {a})", kind), kind)
        self.inexact["pow"] = None
        return Num(rounded(f"math.pow({a}, {b if right.kind.is_float else f'float({b})'})", kind), kind)

    def see_UnaryOp(self, node: ast.UnaryOp) -> Value:
        value = self.simple(self.value(node.operand))
        if isinstance(node.op, ast.Not):
            test = self.truth(value)
            return Const(not test.value) if isinstance(test, Const) else Num(f"(not {test.expr})", PY_BOOL)
        if isinstance(value, Const):
            functions = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
            return Const(functions[type(node.op)](value.value))
        if _is_array(value):
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

    # ------------------------------------------------------------------ truth

    def truth(self, value: Value) -> Any:
        """A constant, or a bool of kernel code."""
        value = self.simple(value)
        if isinstance(value, Either):
            value = self.number(value)
        if isinstance(value, Const):
            try:
                return Const(bool(value.value))
            except ValueError as error:
                raise Cannot(f"asks whether an array is true: {error}", "Use .any() or .all().") from None
        if isinstance(value, Num):
            return value if value.kind.is_bool else Num(f"({value.expr} != 0)", PY_BOOL)
        if isinstance(value, Seq):
            return Const(bool(value.items))
        if isinstance(value, DictV):
            return Const(bool(value.items))
        if isinstance(value, Lst):
            return Num(f"({value.length} != 0)", PY_BOOL)
        if isinstance(value, Maybe):
            inner = self.truth(value.value)
            text = (
                ""
                if isinstance(inner, Const) and inner.value
                else f" and {inner.expr}"
                if isinstance(inner, Num)
                else " and False"
            )
            return Num(f"(not {value.none}{text})", PY_BOOL)
        if isinstance(value, Fam):
            return Num(f"{self.table(np.array([bool(x) for x in value.options]))}[{value.index}]", PY_BOOL)
        if isinstance(value, Obj | Generator | Bound | Local):
            return Const(True)
        if _is_array(value):
            if int(np.prod([n for n in value.shape if isinstance(n, int)])) == 1:  # type: ignore[attr-defined]
                return self.truth(self.number(value))
            raise Cannot("asks whether an array is true", "Use .any() or .all().")
        raise Cannot(f"asks whether {self.name_of(value)} is true")

    def simple(self, value: Value) -> Value:
        """Families of numbers, tuples and arrays as what they stand for; others as they are."""
        if isinstance(value, Fam):
            if len(value.options) == 1:
                return Const(value.options[0])
            if all(is_number(x) or isinstance(x, np.ndarray | tuple | list | dict) for x in value.options):
                return self.realise(value)
        return value

    def see_BoolOp(self, node: ast.BoolOp) -> Value:
        is_and = isinstance(node.op, ast.And)
        value = self.value(node.values[0])
        for k in range(1, len(node.values)):
            test = self.truth(value)
            if isinstance(test, Const):
                if bool(test.value) != is_and:
                    return value
                value = self.value(node.values[k])
                continue
            value = self.hold(value) if not (isinstance(value, Num) and value.kind.is_bool) else value
            test = self.truth(value)
            with self.block() as lines:
                other = self.value(node.values[k])
                other_test = self.truth(other)
            value = self.join_tests(is_and, (value, test), (other, other_test), lines)
        return value

    def join_tests(self, is_and: bool, first: tuple, second: tuple, lines: list[str]) -> Value:
        (value, test), (other, other_test) = first, second
        if isinstance(other_test, Const) and isinstance(other, Const) and isinstance(other.value, bool | np.bool_):
            if bool(other_test.value) == is_and:
                return Num(test.expr, PY_BOOL)
            return Const(not is_and) if not lines else Num("True" if not is_and else "False", PY_BOOL)
        both_bools = all(isinstance(v, Num) and v.kind.is_bool for v in (value, other))
        word = "and" if is_and else "or"
        if both_bools and not lines:
            kind = PY_BOOL if value.kind.weak and other.kind.weak else NP_BOOL
            return Num(f"({test.expr} {word} {other_test.expr})", kind)
        if both_bools or self.wants_truth:
            name = self.unique("both" if is_and else "either")
            self.emit(f"{name} = {test.expr}")
            self.emit_block(f"if {name}:" if is_and else f"if not {name}:", [*lines, f"{name} = {_text(other_test)}"])
            return Num(name, PY_BOOL)
        return self.choose(test.expr if is_and else f"(not {test.expr})", (lines, other), ([], value))

    def see_IfExp(self, node: ast.IfExp) -> Value:
        test = self.truth(self.value(node.test))
        if isinstance(test, Const):
            return self.value(node.body if test.value else node.orelse)
        test = self.hold(test)
        with self.block() as then:
            first = self.value(node.body)
        with self.block() as other:
            second = self.value(node.orelse)
        return self.choose(test.expr, (then, first), (other, second))  # type: ignore[attr-defined]

    def choose(self, test: str, first: tuple, second: tuple) -> Value:
        """One value or the other; each with the lines that compute it."""
        (then, a), (other, b) = first, second
        a, b = self.simple(a), self.simple(b)
        if can_change(a) and can_change(b) and not same_value(a, b):
            self.decisions.split.add(self.statement)
            raise Restart
        layout = join(layout_of(a), layout_of(b))
        numbers = isinstance(a, Num | Const) and isinstance(b, Num | Const) and type(layout).__name__ == "NumL"
        if numbers and not then and not other:
            x, y = self.number(a), self.number(b)
            kind = layout.kind
            texts = [as_float(n) if kind.is_float else as_whole(n) if kind.is_whole else n.expr for n in (x, y)]
            return Num(f"({texts[0]} if {test} else {texts[1]})", kind)
        base = self.unique("choice")
        for lines, value in ((then, a), (other, b)):
            with self.block() as tail:
                self.write(layout, base, value)
            lines += tail
        self.emit_block(f"if {test}:", then)
        self.emit_block("else:", other)
        return layout.read(base)

    # ------------------------------------------------------------------ comparisons

    def see_Compare(self, node: ast.Compare) -> Value:
        values = self.values([node.left, *node.comparators])
        if len(node.ops) > 1:
            values = [self.hold(v) for v in values]
        parts = [self.compare(op, a, b) for op, a, b in zip(node.ops, values, values[1:], strict=False)]
        result = parts[0]
        for part in parts[1:]:
            if isinstance(result, Const):
                result = part if result.value else result
            elif isinstance(part, Const):
                result = result if part.value else part
            else:
                result = Num(f"({result.expr} and {part.expr})", PY_BOOL)  # type: ignore[attr-defined]
        return result

    def compare(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        if isinstance(op, ast.In | ast.NotIn):
            found = self.contains(right, left)
            return _negated(found) if isinstance(op, ast.NotIn) else found
        if isinstance(op, ast.Is | ast.IsNot):
            found = self.identical(left, right)
            return _negated(found) if isinstance(op, ast.IsNot) else found
        left, right = self.simple(left), self.simple(right)
        if isinstance(left, Const) and isinstance(right, Const):
            return Const(COMPARISONS[type(op)][1](left.value, right.value))
        if isinstance(left, Either) or isinstance(right, Either):
            return self.compare_either(op, left, right)
        if isinstance(op, ast.Eq | ast.NotEq):
            found = self.equal(left, right)
            if found is not None:
                return _negated(found) if isinstance(op, ast.NotEq) else found
        if _is_array(left) or _is_array(right):
            return self.elementwise(lambda a, b: self.compare_numbers(op, a, b), [left, right])
        if isinstance(left, Seq | Lst) or isinstance(right, Seq | Lst):
            raise Cannot("compares lists or tuples by order", "Compare their numbers.")
        return self.compare_numbers(op, self.number(left), self.number(right))

    def compare_either(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        """The comparison for both types that a number can have."""
        left, right = self.hold(left), self.hold(right)
        either = left if isinstance(left, Either) else right
        assert isinstance(either, Either)
        parts = [
            self.compare(op, part if either is left else left, part if either is right else right)
            for part in (either.first, either.second)
        ]
        return self.choose(either.test, ([], parts[1]), ([], parts[0]))

    def compare_numbers(self, op: ast.cmpop, a: Num, b: Num) -> Num:
        kind = PY_BOOL if a.kind.weak and b.kind.weak else NP_BOOL
        x, y = a.expr, b.expr
        floats = {k.dtype for k in (a.kind, b.kind) if k.is_float}
        if (a.kind.weak != b.kind.weak) and np.dtype(np.float32) in floats:  # NumPy rounds the weak one first
            x = rounded(x, Kind(np.dtype(np.float32))) if a.kind.weak else x
            y = rounded(y, Kind(np.dtype(np.float32))) if b.kind.weak else y
        x, y = (as_whole(n) if n.kind.is_bool and not m.kind.is_bool else t for t, n, m in ((x, a, b), (y, b, a)))
        return Num(f"({x} {COMPARISONS[type(op)][0]} {y})", kind)

    def equal(self, a: Value, b: Value) -> Value | None:
        """`a == b` for what is not numbers or arrays; None for those."""
        if isinstance(b, Fam) and not isinstance(a, Fam):
            a, b = b, a
        if isinstance(a, Fam):
            return self.equal_family(a, b)
        if isinstance(a, Maybe) or isinstance(b, Maybe):
            maybe, other = (a, b) if isinstance(a, Maybe) else (b, a)
            if isinstance(other, Const) and other.value is None:
                return Num(maybe.none, PY_BOOL)  # type: ignore[attr-defined]
            inner = self.compare(ast.Eq(), maybe.value, other.value if isinstance(other, Maybe) else other)  # type: ignore[attr-defined]
            return Num(f"(not {maybe.none} and {_text(inner)})", PY_BOOL)  # type: ignore[attr-defined]
        sequences = [isinstance(v, Seq) or (isinstance(v, Const) and isinstance(v.value, tuple | list)) for v in (a, b)]
        if all(sequences):
            x, y = self.items(a), self.items(b)
            if len(x) != len(y):
                return Const(False)
            return self.all_of([self.compare(ast.Eq(), p, q) for p, q in zip(x, y, strict=True)])
        if (isinstance(a, Lst) and (sequences[1] or isinstance(b, Lst))) or (isinstance(b, Lst) and sequences[0]):
            return self.equal_lists(a, b)
        numbers = [isinstance(v, Num) or (isinstance(v, Const) and is_number(v.value)) for v in (a, b)]
        if all(numbers) or _is_array(a) or _is_array(b):
            return None
        if isinstance(a, Const) or isinstance(b, Const):  # a number and a string are never equal
            return Const(False)
        if isinstance(a, Obj) and hasattr(type(a.layout.example), "__eq__") and isinstance(b, Obj):
            return self.identical(a, b)
        return None

    def equal_family(self, a: Fam, b: Value) -> Value:
        if isinstance(b, Const):
            matches = [
                k
                for k, x in enumerate(a.options)
                if same(x, b.value) or (_plain(x) and _plain(b.value) and x == b.value)
            ]
            if not matches:
                return Const(False)
            if len(matches) == len(a.options):
                return Const(True)
            if len(matches) == 1:
                return Num(f"({a.index} == {matches[0]})", PY_BOOL)
            table = np.isin(np.arange(len(a.options)), matches)
            return Num(f"{self.table(table)}[{a.index}]", PY_BOOL)
        if isinstance(b, Fam):
            union: list[Any] = []
            for x in [*a.options, *b.options]:
                if not any(same(x, y) for y in union):
                    union.append(x)
            numbers = [
                np.array([next(k for k, y in enumerate(union) if same(x, y)) for x in f.options]) for f in (a, b)
            ]
            return Num(f"({self.table(numbers[0])}[{a.index}] == {self.table(numbers[1])}[{b.index}])", PY_BOOL)
        return Const(False)

    def all_of(self, parts: list[Value]) -> Value:
        texts = []
        for part in parts:
            test = self.truth(part)
            if isinstance(test, Const):
                if not test.value:
                    return Const(False)
                continue
            texts.append(test.expr)
        if not texts:
            return Const(True)
        return Num(f"({' and '.join(texts)})" if len(texts) > 1 else texts[0], PY_BOOL)

    def identical(self, a: Value, b: Value) -> Value:
        if isinstance(a, Const) and isinstance(b, Const):
            return Const(a.value is b.value or (isinstance(a.value, enum.Enum | bool) and a.value == b.value))
        for x, y in ((a, b), (b, a)):
            if isinstance(y, Const) and y.value is None:
                return (
                    Num(x.none, PY_BOOL)
                    if isinstance(x, Maybe)
                    else self.equal_family(x, y)
                    if isinstance(x, Fam)
                    else Const(False)
                )
            if isinstance(y, Const) and isinstance(y.value, bool) and isinstance(x, Num):
                return self.compare(ast.Eq(), x, y) if x.kind.is_bool and x.kind.weak else Const(False)
            if isinstance(x, Fam):
                return self.equal_family(x, y)
        if isinstance(a, Obj) and isinstance(b, Obj):
            if a.base == b.base and len(a.index) == len(b.index):
                tests = [f"{x} == {y}" for x, y in zip(a.index, b.index, strict=True) if x != y]
                return Num(f"({' and '.join(tests)})", PY_BOOL) if tests else Const(True)
            return Const(False)
        raise Cannot("asks whether two things are the same object", "Compare with ==.")

    # ------------------------------------------------------------------ displays and comprehensions

    def see_Tuple(self, node: ast.Tuple) -> Value:
        return self.display(node.elts, False)

    def see_List(self, node: ast.List) -> Value:
        made = self.display(node.elts, True)
        if isinstance(made, Const):
            made = Seq([Const(x) for x in made.value], True, self.site, self.depth)
        if self.site in self.decisions.lists:
            return self.bounded(made)
        return made

    def bounded(self, made: Value) -> Value:
        """A list that grows where that is not sure: with a length of its own."""
        cap, key = self.decisions.lists[self.site], ("items", self.site)
        layout = self.decisions.layouts.get(key)
        for item in self.items(made):
            layout = layout_of(self.simple(item)) if layout is None else join(layout, layout_of(self.simple(item)))
        whole = ListL(layout if layout is not None else NumL(PY_INT), max(cap, len(self.items(made))))
        value = self.write(whole, self.unique("items"), made)
        assert isinstance(value, Lst)
        value.site = self.site  # type: ignore[attr-defined]
        return value

    def display(self, nodes: list[ast.expr], is_list: bool) -> Value:
        values: list[Value] = []
        plain = [n.value if isinstance(n, ast.Starred) else n for n in nodes]
        for node, value in zip(nodes, self.values(plain), strict=True):
            values += self.items(value) if isinstance(node, ast.Starred) else [value]
        if all(isinstance(v, Const) for v in values) and not is_list:
            return Const(tuple(v.value for v in values))  # type: ignore[attr-defined]
        return Seq([self.hold(v) if is_list else v for v in values], is_list, self.site, self.depth)

    def see_Set(self, node: ast.Set) -> Value:
        values = self.values(node.elts)
        if all(isinstance(v, Const) for v in values):
            return Const({v.value for v in values})  # type: ignore[attr-defined]
        return Seq(values, False)

    def see_Dict(self, node: ast.Dict) -> Value:
        made: dict[Any, Value] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.hold(self.value(item)) if key is not None else self.value(item)
            if key is None:
                pairs = value.items if isinstance(value, DictV) else {k: Const(v) for k, v in value.value.items()}  # type: ignore[attr-defined]
                made |= pairs
                continue
            name = self.value(key)
            if not isinstance(name, Const):
                raise Cannot("makes a dict whose keys vary", "Use an array with one place per key.")
            made[name.value] = value
        return DictV(made, self.depth)

    def see_Lambda(self, node: ast.Lambda) -> Value:
        return Local(node, self.frame)

    def see_ListComp(self, node: ast.ListComp) -> Value:
        return self.comprehension(node, node.elt)

    def see_GeneratorExp(self, node: ast.GeneratorExp) -> Value:
        return self.comprehension(node, node.elt)

    def see_SetComp(self, node: ast.SetComp) -> Value:
        raise Cannot("makes a set", "Use an array of bools with one place per possible member.")

    def see_DictComp(self, node: ast.DictComp) -> Value:
        pair = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
        rows = self.comprehension(node, pair)
        made: dict[Any, Value] = {}
        for row in self.items(rows):
            key, value = self.items(row)
            if not isinstance(key, Const):
                raise Cannot("makes a dict whose keys vary", "Use an array with one place per key.")
            made[key.value] = value
        return DictV(made, self.depth)

    def comprehension(self, node: Any, element: ast.expr) -> Value:
        """A list by turns that are known; or, where lengths or conditions vary, one with a length of its own."""
        outer = dict(self.frame.names)
        site = self.site
        try:
            if site not in self.decisions.lists:
                rows: list[Value] = []
                if self.turns_of(node.generators, element, rows):
                    return Seq(rows, True, site, self.depth)
            return self.growing(node, element, site)
        finally:
            self.frame.names = {**self.frame.names, **outer}

    def turns_of(self, generators: list[ast.comprehension], element: ast.expr, rows: list[Value]) -> bool:
        """Whether every turn is known; the items are put into `rows`."""
        if not generators:
            rows.append(self.hold(self.value(element)))
            return True
        first, *others = generators
        iterable = self.simple(self.value(first.iter))
        varying = isinstance(iterable, Lst | Walk) or (isinstance(iterable, Mem) and isinstance(iterable.shape[0], Dyn))
        if varying or (items := self.items(iterable)) and len(items) > 256:
            return False
        for item in items:
            self.assign(first.target, item)
            tests = [self.truth(self.value(test)) for test in first.ifs]
            if any(isinstance(test, Num) for test in tests):
                return False
            if all(test.value for test in tests) and not self.turns_of(others, element, rows):
                return False
        return True

    def growing(self, node: Any, element: ast.expr, site: Any) -> Value:
        """The comprehension as loops around an append."""
        name = f"_items_{len(self.frame.names)}"
        append = ast.Expr(ast.Call(ast.Attribute(ast.Name(name, ast.Load()), "append", ast.Load()), [element], []))
        body: list[ast.stmt] = [append]
        for generator in reversed(node.generators):
            for test in reversed(generator.ifs):
                body = [ast.If(test, body, [])]
            body = [ast.For(generator.target, generator.iter, body, [])]
        start = ast.Assign([ast.Name(name, ast.Store())], ast.List([], ast.Load()))
        tree = [ast.fix_missing_locations(ast.copy_location(s, node)) for s in (start, *body)]
        self.execute(tree)
        return self.frame.names.pop(name)

    def see_Starred(self, node: ast.Starred) -> Value:
        raise Cannot("unpacks something here", "Name the parts.")

    def see_NamedExpr(self, node: ast.NamedExpr) -> Value:
        self.assign(node.target, self.value(node.value))
        return self.value(ast.copy_location(ast.Name(node.target.id, ast.Load()), node))

    # ------------------------------------------------------------------ calls of the environment's own functions

    def see_Call(self, node: ast.Call) -> Value:
        if self.is_super(node.func):
            return self.call_above(node)
        function = self.value(node.func)
        positional = [a.value if isinstance(a, ast.Starred) else a for a in node.args]
        values = self.values([*positional, *[k.value for k in node.keywords]])
        arguments: list[Value] = []
        for given, value in zip(node.args, values, strict=False):
            arguments += self.items(value) if isinstance(given, ast.Starred) else [value]
        named: dict[str, Value] = {}
        for keyword, value in zip(node.keywords, values[len(positional) :], strict=True):
            if keyword.arg is None:
                pairs = value.items if isinstance(value, DictV) else {k: Const(v) for k, v in value.value.items()}  # type: ignore[attr-defined]
                named |= {str(k): v for k, v in pairs.items()}
            else:
                named[keyword.arg] = value
        return self.call(function, arguments, named)

    def is_super(self, node: ast.expr) -> bool:
        return (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
            and node.value.func.id == "super"
        )

    def call_above(self, node: ast.Call) -> Value:
        assert isinstance(node.func, ast.Attribute)
        name, receiver = node.func.attr, next(iter(self.frame.names.values()))
        if not isinstance(receiver, Obj):
            raise Cannot("calls super() where the object is not known")
        order = type(receiver.layout.example).__mro__
        start = order.index(self.frame.owner) + 1 if self.frame.owner in order else 1
        for cls in order[start:]:
            if name in vars(cls):
                if cls is gym.Env:
                    return Const(None)
                arguments = self.values(node.args)
                named = {str(k.arg): self.value(k.value) for k in node.keywords}
                return self.call_function(vars(cls)[name], [receiver, *arguments], named, owner=cls)
        raise Cannot(f"calls super().{name}, which does not exist")

    def call_function(
        self, function: Any, arguments: list[Value], named: dict[str, Value], owner: type | None = None
    ) -> Value:
        """Write out a function of the environment's in place of its call."""
        function = inspect.unwrap(function)
        node, file = definition_of(function)
        name = function.__qualname__.replace("<locals>.", "")
        scope = dict(function.__globals__)
        if function.__closure__:
            cells = zip(function.__code__.co_freevars, function.__closure__, strict=True)
            scope |= {key: cell.cell_contents for key, cell in cells if key != "__class__"}
        defaults = inspect.signature(function)
        names = self.bind(defaults, arguments, named)
        self.reached[f"{name} ({file})"] = None
        return self.enter(node, file, name, scope, names, owner, None)

    def bind(self, signature: inspect.Signature, arguments: list[Value], named: dict[str, Value]) -> dict[str, Value]:
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError as error:
            raise Cannot(f"is called with the wrong arguments: {error}") from None
        names: dict[str, Value] = {}
        for key, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                names[key] = Seq(list(bound.arguments.get(key, ())))
            elif parameter.kind is parameter.VAR_KEYWORD:
                names[key] = DictV(dict(bound.arguments.get(key, {})), -1)
            elif key in bound.arguments:
                names[key] = bound.arguments[key]
            else:
                names[key] = Const(parameter.default)
        return names

    def enter(
        self,
        node: Any,
        file: str,
        name: str,
        scope: dict[str, Any],
        names: dict[str, Value],
        owner: type | None,
        outer: Frame | None,
    ) -> Value:
        key = (*self.frame.key, self.site[1:3], name) if getattr(self, "frame", None) else (name,)
        if len(key) > 60 or sum(part == name for part in key) > 2:
            raise Cannot(f"calls {name} from within itself", "Write it as a loop.")
        frame = Frame(node, file, name, scope, {}, key, owner, outer=outer)
        held = {key: self.hold(value) for key, value in names.items()}
        assigned = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        frame.names = held
        before = getattr(self, "frame", None)
        self.frame = frame
        for argument in sorted(assigned & held.keys()):
            self.assign_name(argument, held[argument])
        self.frame = before  # type: ignore[assignment]
        if isinstance(node, ast.Lambda):
            body = ast.copy_location(ast.Return(node.body), node)
            frame.node = ast.copy_location(ast.FunctionDef(name, node.args, [body], [], None), node)
        return self.run(frame)

    def call_local(self, local: Local, arguments: list[Value], named: dict[str, Value]) -> Value:
        parameters = local.node.args
        names = [a.arg for a in [*parameters.posonlyargs, *parameters.args]]
        values = dict(zip(names, arguments, strict=False)) | named
        late = names[len(names) - len(parameters.defaults) :]
        for key, default in zip(late, parameters.defaults, strict=True):
            if key not in values:
                values[key] = self.value(default)
        if set(values) != set(names):
            raise Cannot("is called with the wrong arguments")
        frame = local.frame
        name = getattr(local.node, "name", "lambda")
        return self.enter(local.node, frame.file, name, frame.scope, values, frame.owner, frame)


def _is_exact(text: str) -> bool:
    """Whether a literal is the same number in float32."""
    try:
        return float(np.float32(float(text))) == float(text)
    except ValueError:
        return False


def _owner(cls: type, name: str) -> type | None:
    return next((base for base in cls.__mro__ if name in vars(base)), None)


def _text(test: Any) -> str:
    return str(bool(test.value)) if isinstance(test, Const) else test.expr


def _negated(value: Value) -> Value:
    if isinstance(value, Const):
        return Const(not value.value)
    assert isinstance(value, Num)
    return Num(f"(not {value.expr})", PY_BOOL)


def _plain(x: Any) -> bool:
    return isinstance(x, str | bytes | int | float | bool | np.generic | enum.Enum)


def _is_array(value: Value) -> bool:
    if isinstance(value, Const):
        return isinstance(value.value, np.ndarray) and value.value.ndim > 0
    return isinstance(value, Cells | Mem)


__all__ = ["BOOL", "Expressions"]
