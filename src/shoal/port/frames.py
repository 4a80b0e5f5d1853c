"""What statements need: one call and its names, loops that are being written, and questions about syntax trees."""

from __future__ import annotations

import ast
import collections
import copy
import functools
import inspect
import textwrap
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shoal.port.code import Code
from shoal.port.layouts import ConstL, FamL, Layout, MaybeL, same
from shoal.port.refusal import Cannot
from shoal.port.values import (
    Cells,
    Const,
    DictV,
    Dyn,
    Fam,
    Kind,
    Lst,
    Mem,
    Num,
    Obj,
    Seq,
    Value,
)

FALLS, NEVER, MAYBE = "falls", "never", "maybe"


@dataclass
class Frame:
    """One call of one function."""

    node: Any
    file: str
    name: str
    scope: dict[str, Any]
    names: dict[str, Value]
    key: tuple
    owner: type | None = None
    variables: dict[str, str] = field(default_factory=dict)
    entry_depth: int = 0
    result: Value | None = None
    base: str = ""
    done: str = ""
    """The flag that says that the call has returned already, if it needs one."""
    early: dict[str, None] = field(default_factory=dict)
    """Lines that give variables a value before the function begins."""
    outer: Frame | None = None
    caller: Frame | None = None
    layout: Any = None
    loops: list[Loop] = field(default_factory=list)
    """The loops of kernel code that are being written, the outermost first."""


@dataclass
class Loop:
    """A loop of kernel code that is being written."""

    frame: Frame
    carried: dict[str, Any]
    """Layouts of names that keep their values from turn to turn."""
    site: Any
    stop: str = ""
    """For a turn of an unrolled loop: the flag that `break` sets."""
    depth: int = 0
    outside: set[str] = field(default_factory=set)
    """Names that had values before the loop."""
    first: list[str] = field(default_factory=list)
    """Names that have none before, but are read behind it."""
    begun: dict[str, Value] = field(default_factory=dict)
    """What names stood for when a turn began."""
    lost: set[str] = field(default_factory=set)
    """Names that stand for something else where the loop is left."""
    own: set[str] = field(default_factory=set)
    """Names that every turn sets first."""
    walked: Value = field(default_factory=lambda: Const(None))
    """What a `for` goes through."""

    @property
    def renewed(self) -> str:
        """A name that exists where what is gone through has been replaced."""
        return f"<{self.site}>"

    def key(self, name: str) -> tuple[object, ...]:
        """What was decided about a name of this loop."""
        return "loop", self.site, name


class Bind(ast.stmt):
    """A statement of our own: a name is given a value that is known."""

    _fields = ()

    def __init__(self, target: ast.expr, value: Value, at: ast.stmt) -> None:
        super().__init__()
        self.target, self.value = target, value
        ast.copy_location(self, at)


class Case(ast.stmt):
    """A statement of our own: a name is given one of some constants, and what follows is written for each."""

    _fields = ()

    def __init__(self, target: ast.expr, family: Fam, first: int, at: ast.stmt) -> None:
        super().__init__()
        self.target, self.family, self.first = target, family, first
        """`first` is the number of the first option that is left."""
        ast.copy_location(self, at)

    def parts(self) -> tuple[ast.stmt, ast.stmt]:
        """The first option, and what is left without it."""
        others = Fam(self.family.options[1:], self.family.index)
        return Bind(self.target, Const(self.family.options[0]), self), Case(self.target, others, self.first + 1, self)


@dataclass
class Walk(Value):
    """Something to loop over in kernel code: how many, and the item at an index."""

    count: str
    cap: int
    item: Any
    source: Value | None = None
    """The list that it goes through."""
    lengths: tuple[str, ...] = ()
    """Lengths of lists that must stay as they are meanwhile, or be `count` itself."""


class Turn(ast.stmt):
    """A statement of our own: one turn of a loop that may break off."""

    _fields = ()

    def __init__(self, loop: ast.For, item: Value, stop: str) -> None:
        super().__init__()
        self.loop, self.item, self.stop = loop, item, stop
        ast.copy_location(self, loop)


def can_change(value: Value) -> bool:
    """Whether this is the state's own list, array, dict or object, which others would see change."""
    if isinstance(value, DictV):
        return value.place is not None and value.place[1].startswith("s.")
    if isinstance(value, Mem):
        return value.base.startswith("s.") and value.writable
    if isinstance(value, Cells):
        return value.owned and value.exprs[0].startswith("s.")
    if isinstance(value, Seq):
        return value.is_list and value.site is not None and value.site[0] == "column"
    return isinstance(value, Lst | Obj) and str(value.base).startswith("s.")


def not_one_list(a: Value, b: Value) -> bool:
    """Whether two things that can be changed are not items of one list, which variables know by their places."""
    return a.place is None or b.place is None or a.place[1] != b.place[1]


def as_column(layout: Layout) -> Layout:
    """The layout of something that was constant and is now to change."""
    if isinstance(layout, ConstL):
        from shoal.port.joining import layout_of_const

        return layout_of_const(layout.value)
    return layout


def takes_fam(layout: Layout) -> bool:
    return isinstance(layout.inner if isinstance(layout, MaybeL) else layout, FamL | ConstL)


def same_value(a: Value, b: Value) -> bool:
    """Whether two values are the same one."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, Const):
        return same(a.value, b.value)  # type: ignore[attr-defined]
    if isinstance(a, Num):
        return a == b
    if isinstance(a, Cells):
        return a.exprs == b.exprs and a.shape == b.shape  # type: ignore[attr-defined]
    if isinstance(a, Mem):
        return a.base == b.base and a.axes == b.axes  # type: ignore[attr-defined]
    if isinstance(a, Lst):
        return a.base == b.base and a.prefix == b.prefix and a.length == b.length  # type: ignore[attr-defined]
    if isinstance(a, Obj):
        return a.base == b.base and a.index == b.index  # type: ignore[attr-defined]
    if isinstance(a, Seq):
        return len(a.items) == len(b.items) and all(map(same_value, a.items, b.items))  # type: ignore[attr-defined]
    if isinstance(a, DictV):
        return a.items.keys() == b.items.keys() and all(same_value(a.items[k], b.items[k]) for k in a.items)  # type: ignore[attr-defined]
    return False


def as_walk(code: Code, value: Value) -> Walk | None:
    """How kernel code loops over a value, if it can."""
    if isinstance(value, Walk):
        return value
    if isinstance(value, Lst):
        lengths = () if value.fixed else (value.length,)
        if value.is_map:  # a dict is gone through by its keys
            return Walk(value.length, value.cap, lambda at: code.items(code.item(value, at))[0], value, lengths)
        return Walk(value.length, value.cap, lambda at: code.item(value, at), value, lengths)
    if isinstance(value, Mem):
        n = value.shape[0]
        return Walk(n.expr if isinstance(n, Dyn) else str(n), n.cap if isinstance(n, Dyn) else n,
                    lambda at: code.element(value, [at]))  # fmt: skip
    if isinstance(value, Const) and isinstance(value.value, range):
        span = value.value
        first, step = span.start, span.step

        def number(at: str) -> Num:
            scaled = at if step == 1 else f"{step} * {at}"
            return Num(scaled if first == 0 else f"{first} + {scaled}", Kind(np.dtype(np.int64), True))

        return Walk(str(len(span)), len(span), number)
    if isinstance(value, Const) and isinstance(value.value, np.ndarray | list | tuple) and len(value.value):
        items = list(value.value)
        return Walk(str(len(items)), len(items), lambda at: Fam(items, at))
    return None


def match_as_if(node: ast.Match) -> ast.stmt:
    """`match` with plain values as a chain of `if`."""
    chain: list[ast.stmt] = []
    for case in reversed(node.cases):
        test = _pattern(node.subject, case.pattern)
        if case.guard is not None:
            test = case.guard if test is None else ast.BoolOp(ast.And(), [test, case.guard])
        chain = case.body if test is None else [ast.If(test, case.body, chain)]
    first = chain[0] if len(chain) == 1 else ast.If(ast.Constant(True), chain, [])
    return ast.fix_missing_locations(ast.copy_location(first, node))


def _pattern(subject: ast.expr, pattern: ast.pattern) -> ast.expr | None:
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None:
        return None
    if isinstance(pattern, ast.MatchValue):
        return ast.copy_location(ast.Compare(subject, [ast.Eq()], [pattern.value]), pattern)
    if isinstance(pattern, ast.MatchSingleton):
        return ast.copy_location(ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)]), pattern)
    if isinstance(pattern, ast.MatchSequence) and isinstance(subject, ast.Tuple):
        plain = not any(isinstance(p, ast.MatchStar) for p in pattern.patterns)
        if plain and len(subject.elts) == len(pattern.patterns):
            tests = [_pattern(part, each) for part, each in zip(subject.elts, pattern.patterns, strict=True)]
            known = [test for test in tests if test is not None]
            return ast.BoolOp(ast.And(), known) if len(known) > 1 else known[0] if known else None
    if isinstance(pattern, ast.MatchOr):
        parts = [_pattern(subject, each) for each in pattern.patterns]
        return ast.copy_location(ast.BoolOp(ast.Or(), [part for part in parts if part is not None]), pattern)
    raise Cannot("matches a pattern with parts", "Use `if` and `elif`.")


def own_nodes(loop: ast.For) -> list[ast.AST]:
    """Nodes of a loop's body without those of loops inside."""
    found: list[ast.AST] = []

    def visit(node: ast.AST) -> None:
        found.append(node)
        if not isinstance(node, ast.For | ast.While | ast.FunctionDef | ast.Lambda):
            for child in ast.iter_child_nodes(node):
                visit(child)

    for statement in loop.body:
        visit(statement)
    return found


def yields(function: ast.AST) -> bool:
    """Whether this is a generator function, apart from functions inside."""
    inner = [n for n in ast.iter_child_nodes(function) if not isinstance(n, ast.FunctionDef | ast.Lambda)]
    return any(isinstance(n, ast.Yield | ast.YieldFrom) or yields(n) for n in inner)


def always_leaves(body: list[ast.stmt]) -> bool:
    """Whether every way through these statements ends in `return` or `raise`."""
    for statement in body:
        if isinstance(statement, ast.Return | ast.Raise):
            return True
        if isinstance(statement, ast.If) and always_leaves(statement.body) and always_leaves(statement.orelse):
            return True
    return False


def returns_in_loop(node: ast.AST) -> bool:
    loops = [n for n in ast.walk(node) if isinstance(n, ast.For | ast.While)]
    return any(isinstance(n, ast.Return) for loop in loops for n in ast.walk(loop))


def assigns(body: list[ast.stmt], target: ast.expr) -> bool:
    if not isinstance(target, ast.Name):
        return True
    return any(
        isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Store)
        for s in body
        for n in ast.walk(s)
    )


def loaded_names(node: ast.AST) -> collections.Counter[str]:
    """How often each name is read."""
    return collections.Counter(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def read_outside(function: ast.AST, name: str) -> bool:
    """Whether a function reads a name outside the loops and comprehensions whose own name it is."""
    if isinstance(function, ast.Name):
        return function.id == name and isinstance(function.ctx, ast.Load)
    generators = getattr(function, "generators", [function] if isinstance(function, ast.For) else [])
    if any(isinstance(n, ast.Name) and n.id == name for g in generators for n in ast.walk(g.target)):
        return False
    return any(read_outside(child, name) for child in ast.iter_child_nodes(function))


@functools.lru_cache(maxsize=512)
def set_once(function: ast.AST) -> frozenset[str]:
    """Names that a function sets in one place, outside loops and branches: they mean the same from there on."""
    counts: collections.Counter[str] = collections.Counter()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] += 1
        elif isinstance(node, ast.arg):
            counts[node.arg] += 1
    body = function.body if isinstance(function, ast.FunctionDef) else []
    targets = [target for s in body if isinstance(s, ast.Assign) for target in s.targets]
    at_top = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    return frozenset(name for name in at_top if counts[name] == 1)


def is_exchange(node: ast.Assign) -> bool:
    """`a.x, a.y = a.y, a.x`: the same places on both sides, in another order."""
    target = node.targets[0]
    if len(node.targets) > 1 or not (isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)):
        return False
    places = sorted(ast.unparse(part) for part in target.elts)
    return places == sorted(ast.unparse(part) for part in node.value.elts) and not any(
        isinstance(part, ast.Name) for part in target.elts
    )


def is_lazy(node: ast.expr) -> bool:
    """A generator, which computes its items when they are asked for."""
    lazy = ("reversed", "zip", "enumerate", "map", "filter")
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in lazy
    return called or isinstance(node, ast.GeneratorExp)


def as_load(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    if isinstance(node, ast.Attribute):
        return ast.Attribute(node.value, node.attr, ast.Load())
    assert isinstance(node, ast.Subscript)
    return ast.Subscript(node.value, node.slice, ast.Load())


def is_about_arguments(test: ast.expr) -> bool:
    """`assert self.action_space.contains(action)` and the like."""
    return any(isinstance(n, ast.Attribute) and n.attr in ("contains", "action_space") for n in ast.walk(test)) or (
        isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance"
    )


class _Note(ast.NodeTransformer):
    """`break` of one loop, with a flag set before."""

    def __init__(self, flag: str) -> None:
        self._flag = flag

    def visit_Break(self, node: ast.Break) -> Any:
        return [ast.Assign([ast.Name(self._flag, ast.Store())], ast.Constant(True)), node]

    def visit_For(self, node: ast.For) -> ast.AST:
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        return node


def without_else(loop: ast.For | ast.While, flag: str) -> list[ast.stmt]:
    """A loop with `else` as one that notes whether it was left, and a branch behind it."""
    made = copy.deepcopy(loop)
    made.body, made.orelse = _Note(flag).visit(ast.Module(made.body, [])).body, []
    begin = ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(False))
    end = ast.If(ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load())), loop.orelse, [])
    return [ast.fix_missing_locations(ast.copy_location(s, loop)) for s in (begin, made, end)]


class _Collect(ast.NodeTransformer):
    """`yield x` as an append to a list."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if not isinstance(node.value, ast.Yield | ast.YieldFrom):
            return node
        method = "append" if isinstance(node.value, ast.Yield) else "extend"
        item = node.value.value or ast.Constant(None)
        return ast.Expr(ast.Call(ast.Attribute(ast.Name("yielded", ast.Load()), method, ast.Load()), [item], []))

    def visit_Return(self, node: ast.Return) -> ast.AST:
        return ast.Return(ast.Name("yielded", ast.Load()))


def as_list_maker(node: ast.FunctionDef) -> ast.FunctionDef:
    """A generator function as one that returns all that it yields in a list."""
    made = copy.deepcopy(node)
    body = [_Collect().visit(statement) for statement in made.body]
    empty = ast.Assign([ast.Name("yielded", ast.Store())], ast.List([], ast.Load()))
    made.body = [empty, *body, ast.Return(ast.Name("yielded", ast.Load()))]
    for statement in made.body:
        ast.fix_missing_locations(ast.copy_location(statement, node.body[0]))
    return made


def definition_of(function: types.FunctionType) -> tuple[Any, str]:
    """A function's syntax tree with the line numbers of its file, and the file."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise Cannot(
            f"calls {getattr(function, '__qualname__', function)!s}, whose source cannot be read",
            "Write it as Python in a file.",
        ) from None
    if function.__name__ == "<lambda>":
        return lambda_of(function), inspect.getsourcefile(function) or "?"
    try:
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except SyntaxError:
        raise Cannot(f"calls {function.__qualname__}, which is not a function written with `def`") from None
    ast.increment_lineno(tree, first - 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            return node, inspect.getsourcefile(function) or "?"
    raise Cannot(f"calls {function.__qualname__}, which is not a plain function")


def lambda_of(function: types.FunctionType) -> ast.Lambda:
    """The syntax tree of a lambda, wherever in a statement it stands."""
    code, file = function.__code__, inspect.getsourcefile(function)
    spots = [(line, column) for line, _, column, end in code.co_positions() if line is not None and end]
    for node in reversed(_file_tree(file or "", Path(file).stat().st_mtime_ns if file else 0)):  # inner ones first
        begin, end = (node.body.lineno, node.body.col_offset), (node.body.end_lineno, node.body.end_col_offset)
        if node.lineno == code.co_firstlineno and all(begin <= spot < end for spot in spots):
            return copy.deepcopy(node)
    raise Cannot("calls a lambda whose source cannot be found", "Write it with `def`.")


@functools.lru_cache(maxsize=64)
def _file_tree(file: str, _changed: int) -> list[ast.Lambda]:
    """All lambdas of a file."""
    with open(file, encoding="utf-8") as source:
        return [node for node in ast.walk(ast.parse(source.read())) if isinstance(node, ast.Lambda)]
