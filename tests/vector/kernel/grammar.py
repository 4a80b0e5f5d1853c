"""A grammar of small kernels, for hypothesis: expressions, branches, loops, array fields of every storage type.

The variable `w` is of another sort on other ways. Every program has a twin whose lanes are columns: its arrays are
scratch of the step.
"""

import re

from hypothesis import strategies as st

PROGRAM = """
import math

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import *


class Toy(Kernel):
    observation_space = gym.spaces.Box(-np.inf, np.inf, (6,), np.float64)
    action_space = gym.spaces.Discrete(4)
    state = record(
        a=f32, b=f64, v=f32[3], i=i8, j=i32, u=u8, w=u32, z=u64, n=i16[4], m=i8[2, 2], flag=b1, marks=b1[3], t=i32
    )
    params = {"rate": 0.3, "step": 3, "table": np.array([0.5, -1.5, 2.25, 7.0])}
    LIMIT = 3

    def reset(s, p, rng):
        s.a, s.b, s.t = rng.uniform(-2.0, 2.0), rng.normal(), 0
        s.v[:] = 0.5
        s.i, s.j, s.u, s.w, s.z = rng.integers(100), -7, rng.integers(200), 5, 0x9E3779B97F4A7C15
        s.n[:] = 1
        s.m[:] = -2
        s.flag = rng.uniform() < 0.5
        s.marks[:] = False

    def step(s, action, p, rng):
        x, y, k, q, w, ok = 0.5, -1.0, 1, 2, 0, True
BODY
        s.t += 1
        return tame(x + s.a), ok and s.t > 7, s.t >= 9

    def observe(s, p, out):
        out[0], out[1], out[2] = tame(s.a), tame(s.b), s.j
        if s.flag:
            out[3] = s.n.sum() + s.m[1, 0]
        out[4 + s.t % 2] = tame(s.v.mean())


def tame(x):
    return x if -1e300 < x < 1e300 else 0.0


def twist(x, k):
    return x * 0.75 - k if k > 2 else x + k


def pair(x, k=Toy.LIMIT, flip=False):
    if flip:
        return k, x
    return x, k
"""
ARRAYS = {"v": "f32[3]", "n": "i16[4]", "m": "i8[2, 2]", "marks": "b1[3]"}


def in_columns(text):
    """The program with its arrays in scratch memory, so that the state is numbers alone."""
    for name, kind in ARRAYS.items():
        text = re.sub(rf"\bs\.{name}\b", f"box.{name}", text.replace(f" {name}={kind},", ""))
    fill = "box = scratch(BOX, 1)[0]\nbox.v[:], box.n[:], box.m[:], box.marks[:] = s.a, 1, -2, False"
    begin = _indent(_indent(fill))
    text = text.replace("    def step(s, action, p, rng):\n", f"    def step(s, action, p, rng):\n{begin}\n")
    fields = ", ".join(f"{name}={kind}" for name, kind in ARRAYS.items())
    text = text.replace("\n\n\nclass Toy", f"\n\nBOX = record({fields})\n\n\nclass Toy", 1)
    lines = text.splitlines()
    inside = lines.index("    def step(s, action, p, rng):"), lines.index("    def observe(s, p, out):")
    for k, line in enumerate(lines):
        if "box." in line and not inside[0] < k < inside[1]:
            lines[k] = " " * (len(line) - len(line.lstrip())) + "pass"
    return "\n".join(lines)


def _node(*forms):
    """Text of one of these forms; in each, `{}` stands for a part from the strategy beside it."""
    return st.one_of([st.builds(form.format, *parts) for form, *parts in forms])


_small_float = st.sampled_from(["0.1", "1.5", "-2.0", "3.7e5", "1e-9", "0.0"])
_float_leaf = (
    st.sampled_from(
        [
            "x",
            "y",
            "w",
            "s.a",
            "s.b",
            "s.v[0]",
            "s.v[2]",
            "p.rate",
            "p.table[action]",
            "s.v.mean()",
            "s.v.sum()",
            "s.v.max()",
        ]
    )
    | _small_float
)
_int_leaf = st.sampled_from(
    [
        "k",
        "q",
        "action",
        "s.i",
        "s.j",
        "s.u",
        "s.w",
        "s.z",
        "s.n[1]",
        "s.m[1, 1]",
        "s.t",
        "p.step",
        "Toy.LIMIT",
        "len(s.n)",
        "3",
        "-7",
        "255",
        "0xFFFFFFFFFFFFFFFF",
        "123456789123",
        "s.n.sum()",
        "s.n.argmax()",
        "s.m.min()",
        "s.marks.sum()",
    ]
)
_bool_leaf = st.sampled_from(["ok", "s.flag", "s.marks[1]", "True", "s.marks.any()", "s.n.all()"])
_any_float, _any_int, _any_bool = st.deferred(lambda: floats), st.deferred(lambda: ints), st.deferred(lambda: bools)
floats = st.recursive(
    _float_leaf,
    lambda f: _node(
        ("({} + {})", f, f),
        ("({} - {})", f, f),
        ("({} * {})", f, f),
        ("({} / {})", f, f),
        ("({} // {})", f, _small_float),
        ("({} % {})", f, _small_float),
        ("(-{})", f),
        ("({} ** 2)", f),
        ("({} ** 3)", f),
        ("({} ** (({} % 7) - 3))", f, _int_leaf),
        ("({} ** 0.5)", f),
        ("(abs({}) ** {})", f, _small_float),
        ("({} if {} else {})", f, _bool_leaf, f),
        ("min({}, {})", f, f),
        ("max({}, {})", f, f),
        ("abs({})", f),
        ("math.sqrt({})", f),
        ("math.sin({})", f),
        ("math.log({})", f),
        ("np.cos({})", f),
        ("np.float32({})", f),
        ("({} * {})", _int_leaf, f),
        ("({} / {})", _int_leaf, _int_leaf),
        ("s.v[{} % 3]", _int_leaf),
        ("p.table[{} & 3]", _int_leaf),
        ("twist({}, {})", f, _int_leaf),
        ("float({})", _int_leaf),
        ("min({}, {}, {})", f, f, _int_leaf),
        ("np.sign({})", f),
        ("pair({})[0]", f),
    ),
    max_leaves=6,
)
ints = st.recursive(
    _int_leaf,
    lambda i: _node(
        ("({} + {})", i, i),
        ("({} - {})", i, i),
        ("({} * {})", i, i),
        ("({} // ({} % 5))", i, i),
        ("({} % ({} % 5))", i, i),
        ("({} // -3)", i),
        ("({} % -3)", i),
        ("(-{})", i),
        ("(~{})", i),
        ("({} & {})", i, i),
        ("({} | {})", i, i),
        ("({} ^ {})", i, i),
        ("({} << {})", i, i),
        ("({} >> {})", i, i),
        ("({} ** (({} % 6) - 2))", i, i),
        ("({} ** 2)", i),
        ("({} if {} else {})", i, _bool_leaf, i),
        ("min({}, {})", i, i),
        ("max({}, {})", i, i),
        ("abs({})", i),
        ("int(min(max({}, -1e6), 1e6))", _float_leaf),
        ("s.n[{} % 4]", i),
        ("s.m[{} % 2, {} & 1]", i, i),
        ("({} + {})", i, _bool_leaf),
        ("divmod({}, {} % 5)[0]", i, i),
        ("round(min(max({}, -1e6), 1e6))", _float_leaf),
        ("math.floor(min(max({}, -1e6), 1e6))", _float_leaf),
    ),
    max_leaves=6,
)
bools = st.recursive(
    _bool_leaf,
    lambda b: _node(
        ("({} < {})", _any_float, _any_float),
        ("({} <= {})", _any_int, _any_int),
        ("({} == {})", _any_int, _any_int),
        ("(not {})", b),
        ("(~{})", b),
        ("({} and {})", b, b),
        ("({} or {})", b, b),
        ("({} & {})", b, b),
        ("({} ^ {})", b, b),
        ("({} in (1, 2, 5))", _int_leaf),
        ("({} < {} <= {})", _int_leaf, _float_leaf, _int_leaf),
    ),
    max_leaves=4,
)

# a constant that a narrow field cannot hold is refused where it stands
_computed = ints.filter(lambda text: not re.fullmatch(r"[-~(]*(0x[0-9A-F]+|[0-9]+)[)]*", text))
_simple = _node(
    ("x = {}", floats),
    ("y = {}", floats),
    ("k = {}", ints),
    ("q = {}", ints),
    ("w = {}", ints),
    ("w = {}", floats),
    ("w = {}", bools),
    ("w -= {}", ints),
    ("w = {} if {} else {}", ints, bools, floats),
    ("ok = {}", bools),
    ("s.a = {}", floats),
    ("s.b += {}", floats),
    ("s.v[{} % 3] = {}", ints, floats),
    ("s.v[1] *= {}", floats),
    ("s.i = {}", _computed),
    ("s.j -= {}", _computed),
    ("s.u = {}", _computed),
    ("s.w ^= {}", ints),
    ("s.z = {}", ints),
    ("s.n[{} & 3] += {}", ints, _computed),
    ("s.m[{} % 2, {} % 2] = {}", ints, ints, _computed),
    ("s.flag = {}", bools),
    ("s.marks[{} % 3] = {}", ints, bools),
    ("x, k = {}, {}", floats, ints),
    ("s.a, s.i = {}, {}", floats, _computed),
    ("s.n[rng.integers(4)] = {}", _computed),
    ("x = rng.uniform(-1.0, {})", _small_float),
    ("y += rng.normal()",),
    ("s.v[:] = {}", floats),
    ("k = rng.integers(1 + ({} & 7))", ints),
    ("x, y = pair({}, {})", floats, ints),
    ("w, x = pair({}, k={}, flip={})", floats, _int_leaf, _any_bool),
    ("k, q = divmod({}, {})", ints, _int_leaf),
    ("q = s.j = {}", _computed),
)


def _indent(text):
    return "\n".join("    " + line for line in text.splitlines())


def _block(statement):
    return st.lists(statement, min_size=1, max_size=3).map("\n".join).map(_indent)


def _case(statement):
    return _block(statement).map(_indent)


statements = st.recursive(
    _simple,
    lambda s: _node(
        ("if {}:\n{}\nelse:\n{}", bools, _block(s), _block(s)),
        ("if {}:\n{}", bools, _block(s)),
        ("for k in range(3):\n{}", _block(s)),
        ("for x in s.v:\n{}", _block(s)),
        (
            "q = 0\nwhile q < 3 and {}:\n    q += 1\n{}",
            bools,
            _block(_simple.filter(lambda text: not text.startswith(("q", "k, q")))),
        ),
        ("for k in range(({} & 3) - 1):\n{}", ints, _block(s)),
        ("for q in range(({} & 7), -2, -3):\n{}\n    if {}:\n        break", ints, _block(s), bools),
        ("match {} & 3:\n    case 0:\n{}\n    case 1 | 2:\n{}", ints, _case(s), _case(s)),
        ("match {} % 3:\n    case k if {}:\n{}\n    case _:\n{}", ints, bools, _case(s), _case(s)),
    ),
    max_leaves=8,
)
programs = (
    st.lists(statements, min_size=8, max_size=16)
    .map("\n".join)
    .map(lambda body: PROGRAM.replace("BODY", _indent(_indent(body))))
    .flatmap(lambda text: st.sampled_from([text, in_columns(text)]))
)
