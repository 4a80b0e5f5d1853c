"""Kernels with one mistake each, and words that the sentence about it must contain."""

PROGRAM = """
import math
import random

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import *
from shoal.vector.kernel.scratch import scratch

HIDDEN = {"speed": 1.0}
TABLE = np.zeros(100_000)
CALLS = 0
PAIR = record(left=f64, right=i32)
SIZE = 5
HEADER


class Toy(Kernel):
    observation_space = gym.spaces.Box(-1e9, 1e9, (3,), np.float32)
    action_space = gym.spaces.Discrete(4)
    state = record(x=f32, t=i32, n=i8, count=u8, board=i8[5, 5], speed=f32[3], alive=b1)
    params = {"table": np.zeros(3), "limit": 20, "rate": 0.5}
    DECLARE

    def reset(s, p, rng):
        s.x = 0.0
        s.t, s.n, s.count = 0, 0, 0
        s.board[:] = 0
        s.speed[:] = 0.0
        s.alive = True
        RESET

    def step(s, action, p, rng):
        s.t += 1
        STEP
        return 0.0, False, s.t >= p.limit

    def observe(s, p, out):
        out[0], out[1], out[2] = s.x, s.t, s.n
        OBSERVE
    MORE
"""
PLACES = ("HEADER", "DECLARE", "RESET", "STEP", "OBSERVE", "MORE")
INDENT = {"HEADER": 0, "DECLARE": 4, "MORE": 4}


def program(**parts: str) -> str:
    """The text of a module with a kernel `Toy`, with these lines put in."""
    text = PROGRAM
    for place in PLACES:
        space = " " * INDENT.get(place, 8)
        lines = ("\n" + space).join(parts.get(place.lower(), "").splitlines())
        text = text.replace(place, lines)
    return text


MASK = "def mask(s, p, out):\n    {}"
INFORM = "info = record(score=f32)\ndef inform(s, p, out):\n    {}"

BEFORE_COMPILING = {
    # what Python and the checked build see in a trial
    "index of the observation": (
        {"observe": "out[s.t // 3] = 1.0"},
        ["Toy.observe", "index 3 is out of bounds", "size 3"],
    ),
    "index of the state": (
        {"step": "s.board[s.t, 0] = 1"},
        ["Toy.step", "index 5 is out of bounds", "lane 0, step 5"],
    ),
    "index read": ({"step": "s.x = s.speed[s.t]"}, ["Toy.step", "index 3 is out of bounds", "`s.x = s.speed[s.t]`"]),
    "index of a table": ({"step": "s.x = p.table[action]"}, ["Toy.step", "index 3 is out of bounds"]),
    "index of scratch": (
        {"step": "pair = scratch(PAIR, 2)\npair[s.t].left = 1.0"},
        ["Toy.step", "index 2 is out of bounds"],
    ),
    "index that is a float": ({"step": "s.x = s.speed[s.t / 2]"}, ["Toy.step", "index"]),
    "late": ({"step": "if s.t == 19:\n    s.speed[s.t] = 1.0"}, ["Toy.step", "step 19"]),
    "deep": (
        {"header": "def put(a, i):\n    a[i] = 1.0", "step": "put(s.speed, s.t)"},
        ["put", "index 3 is out of bounds", "a[i] = 1.0"],
    ),
    "whole division by zero": ({"step": "s.n = 5 // (s.t - 3)"}, ["Toy.step", "division by zero", "5 // 0"]),
    "division by zero": ({"step": "s.x = 1.0 / (s.t - 3)"}, ["Toy.step", "division by zero"]),
    "modulo zero": ({"step": "s.n = 5 % (s.t - 3)"}, ["Toy.step", "division by zero", "5 % 0"]),
    "shift": ({"step": "s.x = 1 << (s.t - 3)"}, ["Toy.step", "a shift by -2"]),
    "shift too far": ({"step": "s.x = 1 << (60 + s.t)"}, ["Toy.step", "a shift by 64"]),
    "negative power": ({"step": "s.x = 2 ** (3 - s.t)"}, ["Toy.step", "2 ** -1", "negative power"]),
    "overflow": ({"step": "s.n += 50"}, ["Toy.step", "150 is stored in an i8", "-128 to 127"]),
    "overflow of an unsigned": ({"step": "s.count -= 1"}, ["Toy.step", "-1 is stored in an u8", "0 to 255"]),
    "overflow of an array": ({"step": "s.board[0, 0] += 50"}, ["Toy.step", "150 is stored in an i8"]),
    "float into a whole number": ({"step": "s.n = 0.5 * s.t"}, ["Toy.step", "0.5 is stored in an i8", "int(...)"]),
    "NaN into a whole number": ({"step": "s.n = math.nan"}, ["Toy.step", "nan is stored in an i8"]),
    "int of NaN": ({"step": "s.n = int(math.nan)"}, ["Toy.step", "int(nan)"]),
    "rng.integers(0)": ({"step": "s.n = rng.integers(s.t - 1)"}, ["Toy.step", "rng.integers(0)", "from 1"]),
    "rng.integers(-1)": ({"reset": "s.n = rng.integers(-1)"}, ["Toy.reset", "rng.integers(-1)"]),
    "NaN reward": ({"step": "return math.sqrt(2 - s.t), False, False"}, ["Toy.step", "NaN", "lane 0, step 3"]),
    "infinite reward": ({"step": "return math.inf, False, False"}, ["Toy.step", "infinite"]),
    "NaN observation": ({"observe": "out[1] = math.log(-1.0)"}, ["Toy.observe", "NaN", "out[1]"]),
    "NaN at the end only": (
        {"observe": "if s.t >= p.limit:\n    out[1] = math.nan"},
        ["Toy.observe", "NaN", "step 20"],
    ),
    "order of the results": ({"step": "return False, 1.0, s.t > 5"}, ["Toy.step", "reward, terminated, truncated"]),
    "a flag that is a count": ({"step": "return 1.0, s.t, False"}, ["Toy.step", "reward, terminated, truncated"]),
    "results of a helper": (
        {"header": "def end(s):\n    return s.alive, 0.0, False", "step": "return end(s)"},
        ["Toy.step", "reward, terminated, truncated"],
    ),
    "an array as reward": ({"step": "return s.speed, False, False"}, ["Toy.step"]),
    "no action allowed": ({"more": MASK.format("out[0] = s.t < 3")}, ["Toy.mask", "allows no action", "step 3"]),
    "index of the mask": ({"more": MASK.format("out[0] = True\n    out[s.t] = True")}, ["Toy.mask", "index 4"]),
    "an assertion": ({"step": "assert s.t < 7"}, ["Toy.step", "assertion failed", "`assert s.t < 7`", "step 7"]),
    "unbound in a branch": ({"step": "if s.t < 3:\n    y = 1.0\ns.x = y"}, ["Toy.step", "'y'"]),
    # what can be seen in the source, in branches that are never reached too
    "a field": ({"step": "s.spede[0] = 1.0"}, ["Toy.step", "s has no 'spede'", "Did you mean 'speed'?"]),
    "a field in a late branch": ({"step": "if s.t > 10_000:\n    s.y = 1.0"}, ["Toy.step", "s has no 'y'"]),
    "a field in a helper": (
        {"header": "def move(lane):\n    if lane.t > 9999:\n        lane.xx = 1.0", "step": "move(s)"},
        ["move", "lane has no 'xx'", "Did you mean 'x'?"],
    ),
    "a parameter": ({"step": "s.x = p.limits"}, ["Toy.step", "p has no 'limits'", "Did you mean 'limit'?"]),
    "a name in a late branch": ({"step": "if s.t > 10_000:\n    s.x = spede"}, ["Toy.step", "'spede' is not defined"]),
    "a function in a late branch": ({"step": "if s.t > 10_000:\n    s.x = clipp(s.x)"}, ["Toy.step", "'clipp'"]),
    "a method of rng": ({"step": "s.n = rng.randint(3)"}, ["Toy.step", "rng has no 'randint'", "integers"]),
    "a constant index": ({"step": "if s.t > 10_000:\n    s.speed[3] = 1.0"}, ["index 3 is out of bounds", "size 3"]),
    "a constant index of out": ({"observe": "if s.t > 10_000:\n    out[3] = 1"}, ["Toy.observe", "index 3"]),
    "a loop that is too long": ({"observe": "for k in range(3, 5):\n    out[k] = s.x"}, ["Toy.observe", "index 3"]),
    "too many indices": ({"observe": "out[0, 1] = 1.0"}, ["Toy.observe", "2 indices", "shape (3,)"]),
    "an index of a number": ({"step": "s.x[0] = 1.0"}, ["Toy.step", "s.x is a single number"]),
    "an array as a number": ({"step": "s.speed = 1.0"}, ["Toy.step", "s.speed is an array", "s.speed[:] = 0"]),
    "arithmetic of arrays": ({"step": "s.x = (s.speed * 2.0)[0]"}, ["Toy.step", "s.speed is an array", "loop"]),
    "comparison of arrays": ({"step": "if s.speed == 0.0:\n    s.x = 1.0"}, ["s.speed is an array", "loop"]),
    "in an array": ({"step": "if 1 in s.board:\n    s.x = 1.0"}, ["`in s.board`", "loop"]),
    "writing to p": ({"step": "p.limit = 3"}, ["Toy.step", "writes to p.limit", "constants"]),
    "writing to a table": ({"step": "p.table[0] = 3.0"}, ["Toy.step", "writes to p.table", "not the kernel's"]),
    "adding to p": ({"step": "p.limit += 1"}, ["Toy.step", "writes to p.limit"]),
    "writing to p in a helper": ({"header": "def grow(q):\n    q.rate = 1.0", "step": "grow(p)"}, ["grow", "q.rate"]),
    "out is assigned": ({"observe": "out = s.x"}, ["Toy.observe", "`out = ...` changes nothing"]),
    "s is assigned": ({"step": "s = 1.0"}, ["Toy.step", "`s = ...` changes nothing"]),
    "return in observe": ({"observe": "return out"}, ["Toy.observe", "observe returns something"]),
    "return in reset": ({"reset": "return s"}, ["Toy.reset", "reset returns something"]),
    "return in mask": ({"more": MASK.format("return out")}, ["Toy.mask", "mask returns something"]),
    "two results": ({"step": "return 0.0, False"}, ["Toy.step", "step returns 2 values", "three numbers"]),
    "four results": ({"step": "if s.t > 9999:\n    return 0.0, False, False, 1"}, ["step returns 4 values"]),
    "one result": ({"step": "if s.t > 9999:\n    return 0.0"}, ["Toy.step", "step returns one value"]),
    "an empty return": ({"step": "if s.t > 9999:\n    return"}, ["Toy.step", "step returns nothing here"]),
    "a missing return": (
        {"more": "def step(s, action, p, rng):\n    if s.x < 9e9:\n        return 0.0, False, False"},
        ["Toy.step", "without `return`"],
    ),
    "no return": ({"more": "def step(s, action, p, rng):\n    s.t += 1"}, ["Toy.step", "step returns nothing"]),
    "a missing return in a helper": (
        {"header": "def sign(x):\n    if x > 0:\n        return 1.0", "step": "s.x = sign(s.x)"},
        ["sign", "without `return`"],
    ),
    "global": ({"step": "global CALLS\nCALLS += 1"}, ["Toy.step", "`global`", "state"]),
    "np.random": ({"step": "s.x = np.random.rand()"}, ["Toy.step", "np.random", "rng.uniform"]),
    "random": ({"step": "s.x = random.random()"}, ["Toy.step", "random", "rng.uniform"]),
    "a dict of the module": ({"step": "s.x = HIDDEN['speed']"}, ["Toy.step", "'HIDDEN', a dict"]),
    "a large table of the module": ({"step": "s.x = TABLE[s.t]"}, ["Toy.step", "'TABLE'", "0.8 MB", "params"]),
    "a list": ({"step": "s.x = [1.0, 2.0][action % 2]"}, ["Toy.step", "a list allocates"]),
    "a comprehension": ({"step": "s.x = sum([k for k in range(3)])"}, ["Toy.step", "allocates"]),
    "a generator": ({"step": "s.x = sum(k for k in range(3))"}, ["Toy.step", "a generator"]),
    "a dict": ({"step": "s.x = {0: 1.0}[0]"}, ["Toy.step", "a dict allocates"]),
    "an f-string": ({"step": "print(f'{s.t}')"}, ["Toy.step", "f-string"]),
    "try": ({"step": "try:\n    s.x = 1.0\nexcept ValueError:\n    s.x = 2.0"}, ["Toy.step", "`try`"]),
    "raise": ({"step": "if s.t > 999:\n    raise ValueError('late')"}, ["Toy.step", "`raise`", "assert"]),
    "lambda": ({"step": "f = lambda x: x\ns.x = f(1.0)"}, ["Toy.step", "`lambda`"]),
    "a function inside": ({"step": "def f(x):\n    return x\ns.x = f(1.0)"}, ["Toy.step", "function inside"]),
    "import": ({"step": "import time\ns.x = 1.0"}, ["Toy.step", "`import`"]),
    "self": (
        {"more": "def step(self, s, action, p, rng):\n    return 0.0, False, False"},
        ["Toy.step", "Leave out `self`"],
    ),
    "order of arguments": ({"more": "def step(s, action, p):\n    return 0.0, False, False"}, ["(s, action, p, rng)"]),
    "another order of arguments": (
        {"more": "def step(s, p, action, rng):\n    return 0.0, False, False"},
        ["takes (s, p, action, rng)", "(s, action, p, rng)"],
    ),
    "digits of round": ({"step": "s.x = round(s.x, 2)"}, ["Toy.step", "round(s.x, 2)", "round(x * 100) / 100"]),
    "a partial function": (
        {"header": "import functools\ndouble = functools.partial(pow, 2)", "step": "s.x = double(3)"},
        ["Toy.step", "'double', a partial"],
    ),
    "an array as flag": ({"step": "return 0.0, False, s.board"}, ["an array of shape (5, 5)", "where a bool belongs"]),
    "super": ({"step": "return super().step(s, action, p, rng)"}, ["Toy.step", "super().step does not exist"]),
    "no such constant": ({"step": "s.x = math.tau2"}, ["Toy.step", "tau2"]),
    "info without inform": ({"declare": "info = record(score=f32)"}, ["Toy", "inform"]),
    "a field of info": ({"more": INFORM.format("out.skore = 1.0")}, ["Toy.inform", "out has no 'skore'", "'score'"]),
    "a number beyond 64 bits": ({"step": "s.x = 0x1_0000_0000_0000_0000 & s.t"}, ["Toy.step", "64 bits"]),
    "a string": ({"step": "if s.t > 9999:\n    s.x = 'abc'"}, ["Toy.step", "the string 'abc'"]),
    "None": ({"step": "y = None\nif s.t > 3:\n    y = 1.0\ns.x = y"}, ["Toy.step", "None cannot be used"]),
    "a walrus": ({"step": "if (y := s.t) > 3:\n    s.x = y"}, ["Toy.step", "`:=`"]),
    "a builtin": ({"step": "if s.t > 9999:\n    open(3)"}, ["Toy.step", "open() cannot be used"]),
    "a function of NumPy": ({"step": "if s.t > 9999:\n    s.x = np.sinh2(s.x)"}, ["Toy.step", "np.sinh2", "not exist"]),
    "a missing argument": (
        {"header": "def add(a, b):\n    return a + b", "step": "if s.t > 9999:\n    s.x = add(1.0)"},
        ["Toy.step", "add(a, b)", "missing a required argument: 'b'"],
    ),
    "an argument after *": (
        {"header": "def double(a, *, b=2.0):\n    return a * b", "step": "s.x = double(1.0, b=3.0)"},
        ["double", "`*`"],
    ),
    "the time": (
        {"header": "import time", "step": "s.x = time.time()"},
        ["Toy.step", "'time.time'", "cannot be compiled"],
    ),
    "a matrix product": ({"step": "s.x = s.speed @ s.speed"}, ["Toy.step", "`@`"]),
    "a string parameter": ({"declare": 'params = {"mode": "hard", "limit": 3}'}, ["mode", "string", "number"]),
    "a parameter that NumPy has": ({"declare": 'params = {"size": 3, "limit": 3}'}, ["'size'", "NumPy"]),
    "a parameter that is None": ({"declare": 'params = {"goal": None, "limit": 3}'}, ["goal", "None"]),
    "a field that is a type": ({"declare": "state = record(x=float)"}, ["'x'", "f32"]),
    "a field that NumPy has": ({"declare": "state = record(size=i32)"}, ["'size'"]),
    "state that is a dict": ({"declare": "state = {'x': f32}"}, ["Toy.state", "record(name=type"]),
    "spaces that are none": ({"declare": "observation_space = (3,)"}, ["observation_space", "gymnasium"]),
    "an action space without arrays": ({"declare": "action_space = gym.spaces.Text(3)"}, ["action", "Text"]),
    # whole arrays, and what would make new ones
    "np.zeros": ({"step": "a = np.zeros(3)\ns.x = a[0]"}, ["Toy.step", "np.zeros", "scratch"]),
    "np.zeros in a late branch": ({"step": "if s.t > 9999:\n    s.x = np.zeros(3)[0]"}, ["Toy.step", "np.zeros"]),
    "np.clip of less": ({"step": "s.x = np.clip(s.x, 0.0)"}, ["Toy.step", "min(max(x, low), high)"]),
    "np.clip of an array": (
        {"step": "s.x = np.clip(s.speed, 0.0, 1.0)"},
        ["Toy.step", "an array where a number belongs"],
    ),
    "np.heaviside": (
        {"step": "if s.t > 9999:\n    s.x = np.heaviside(s.x, 0.5)"},
        ["Toy.step", "np.heaviside", "0.0 if x < 0.0 else (1.0 if x > 0.0 else h)"],
    ),
    "np.linalg": ({"step": "if s.t > 9999:\n    s.x = np.linalg.norm(s.speed)"}, ["Toy.step", "np.linalg"]),
    "np.roll": ({"step": "s.speed[:] = np.roll(s.speed, 1)"}, ["Toy.step", "np.roll"]),
    "np.abs of an array": ({"step": "s.x = np.abs(s.speed)[0]"}, ["np.abs(s.speed)", "shape (3,)", "loop"]),
    "abs of an array": ({"step": "s.x = abs(s.speed)"}, ["abs(s.speed)", "loop"]),
    "minus an array": ({"step": "s.speed[:] = -s.speed"}, ["s.speed is an array", "loop"]),
    "adding to an array": ({"step": "s.speed[:] += 1.0"}, ["is an array of shape (3,)", "loop"]),
    "a part of an array": ({"step": "if s.t > 9999:\n    s.x = (s.speed[:2] + 1.0)[0]"}, ["shape (2,)", "loop"]),
    "a copy": ({"step": "b = s.board.copy()\ns.x = b[0, 0]"}, ["s.board.copy", "new arrays"]),
    "append": ({"step": "s.speed.append(1.0)"}, ["s.speed.append", "fixed size"]),
    "fill": ({"step": "s.speed.fill(0.0)"}, ["s.speed.fill", "a[:] = value"]),
    "a sum over an axis": ({"step": "s.x = s.board.sum(axis=0)[0]"}, ["s.board.sum(...)", "all elements"]),
    "sorted": ({"step": "s.x = sorted(s.speed)[0]"}, ["sorted() cannot be used"]),
    "a key of min": ({"step": "s.x = min(s.speed, key=abs)"}, ["min(..., key=...)"]),
    "the length of a number": ({"step": "s.x = len(s.t)"}, ["s.t is a single number"]),
    "an ellipsis": ({"observe": "out[...] = s.x"}, ["Toy.observe", "out[:]"]),
    "onto itself, reversed": ({"step": "s.speed[:] = s.speed[::-1]"}, ["onto itself", "loop"]),
    "an array into a number": ({"step": "if s.t > 9999:\n    s.x = s.speed"}, ["s.x is a single number", "shape (3,)"]),
    "two numbers into one": ({"step": "if s.t > 9999:\n    s.x = (1, 2)"}, ["s.x is a single number", "(1, 2)"]),
    "a row outside": ({"step": "s.board[s.t] = 1"}, ["Toy.step", "index 5 is out of bounds", "axis 0"]),
    "a column outside": ({"step": "s.board[:, s.t] = 1"}, ["Toy.step", "index 5 is out of bounds", "axis 1"]),
    "a truth value as index": ({"step": "s.speed[s.alive] = 2.0"}, ["Toy.step", "truth value", "int(...)"]),
    "an array of the module": (
        {"header": "MOVES = np.array([1, 2, 3])", "step": "MOVES[0] = 3"},
        ["Toy.step", "writes to MOVES", "constant"],
    ),
    # variables, loops, and functions of math
    "no value yet": ({"step": "if s.t > 9999:\n    s.x = y\n    y = 1.0"}, ["Toy.step", "'y' may have no value"]),
    "no value on some ways": (
        {"step": "if s.t > 9999:\n    y = 1.0\nif s.t > 9998:\n    s.x = y"},
        ["Toy.step", "'y' may have no value", "beforehand"],
    ),
    "a loop without an end": ({"step": "while True:\n    s.x += 1.0"}, ["Toy.step", "never ends"]),
    "is": ({"step": "if s.t is 3:\n    s.x = 1.0"}, ["Toy.step", "`is`", "=="]),
    "math.dist": ({"step": "if s.t > 9999:\n    s.x = math.dist((0, 0), (1, 1))"}, ["math.dist cannot be used"]),
    "range()": ({"step": "for k in range():\n    s.x = k"}, ["Toy.step", "range"]),
    # random numbers and scratch
    "bounds in the wrong order": (
        {"step": "if s.t > 9999:\n    s.n = rng.integers(5, 1)"},
        ["Toy.step", "rng.integers(5, 1)", "above"],
    ),
    "bounds that a step computes": (
        {"step": "s.n = rng.integers(s.t, 3)"},
        ["Toy.step", "rng.integers(3, 3): high must be above low", "trial"],
    ),
    "three bounds": (
        {"step": "if s.t > 9999:\n    s.n = rng.integers(0, 5, 1)"},
        ["rng.integers(low, high)", "too many"],
    ),
    "rng.random": ({"step": "if s.t > 9999:\n    s.x = rng.random()"}, ["no 'random'", "'uniform'"]),
    "a misspelt total": (
        {"step": "speed_sum = 0.0\nif s.t > 9999:\n    sped_sum += 1.0"},
        ["Toy.step", "'sped_sum' has no value to begin with", "'speed_sum'"],
    ),
    "s for p": ({"step": "if s.t > 9999:\n    s.x = s.limit"}, ["s has no 'limit'", "p.limit"]),
    "a helper as a method": (
        {"step": "if s.t > 9999:\n    s.lift()", "more": "def lift(s):\n    s.x += 1.0"},
        ["s has no 'lift'", "Toy.lift"],
    ),
    "an index outside a tuple": ({"step": "s.x = (1.0, 2.0)[s.t]"}, ["Toy.step", "outside its tuple", "trial"]),
    "min of one number": ({"step": "s.x = min(s.t)"}, ["Toy.step", "min(s.t)", "single number"]),
    "a NaN that is seen later": (
        {"step": "s.speed[1] = math.sqrt(-1.0 * s.t)\ns.x += s.speed[1]"},
        ["Toy.observe", "NaN", "first NaN was stored by `s.speed[1] = math.sqrt(-1.0 * s.t)`"],
    ),
    "arguments of rng.normal": ({"step": "s.x = rng.normal(0.0, 1.0)"}, ["rng.normal()", "mean + deviation"]),
    "one bound of rng.uniform": ({"step": "s.x = rng.uniform(5)"}, ["rng.uniform(low, high)"]),
    "weights of zero": ({"step": "s.n = rng.choice(p.table)"}, ["Toy.step", "rng.choice(0, 0, 0)", "sum"]),
    "scratch of a length": ({"step": "a = scratch(PAIR, s.t)\na[0].left = 1.0"}, ["scratch(..., s.t)", "constant"]),
    "scratch of numbers": ({"step": "a = scratch(f32, 4)\na[0] = 1.0"}, ["scratch(f32, ...)", "record"]),
    # who may change what
    "observe changes the state": (
        {"observe": "s.t += 1"},
        ["Toy.observe", "observe changes s.t", "only reset and step"],
    ),
    "mask changes the state": (
        {"more": MASK.format("s.board[0, 0] = 1\n    out[0] = True")},
        ["Toy.mask", "mask changes s.board"],
    ),
    "observe changes the state in a helper": (
        {"header": "def tick(s):\n    s.t += 1\n    return 1.0", "observe": "out[0] = tick(s)"},
        ["changes s.t in observe", "Only reset and step"],
    ),
    "a decorator": (
        {
            "header": "import functools\ndef deco(f):\n    return functools.wraps(f)(g)\ndef g(*a):\n    return a",
            "more": "@deco\ndef step(s, action, p, rng):\n    return 0.0, False, False",
        },
        ["Toy.step", "decorator"],
    ),
    # declarations
    "a field in parentheses": ({"declare": "state = record(x=b1(4))"}, ["b1(4)", "b1[4]"]),
    "a field without a name": ({"declare": "state = record(f32)"}, ["without a name", "record(x=f32"]),
    "params that are a list": ({"declare": "params = ['limit']"}, ["Toy.params", "dict"]),
    "a parameter that is no name": ({"declare": "params = {'max steps': 3, 'limit': 3}"}, ["'max steps'", "Rename"]),
    "a parameter that is a number": (
        {"declare": "params = {1: 3.0, 'limit': 3}"},
        ["1 is not a name", "Rename"],
    ),
    "rows of different lengths": (
        {"declare": "params = {'limit': 20, 'moves': [[1], [2, 3]]}"},
        ["moves", "differ in length"],
    ),
    "info that is a dict": (
        {"declare": "info = {'a': 1}", "more": "def inform(s, p, out):\n    out.a = 1"},
        ["Toy.info", "record(name=type"],
    ),
    "survives that is a string": ({"declare": "survives = 'x'"}, ["Toy.survives", "('x',)"]),
    "survives what does not exist": ({"declare": "survives = ('best',)"}, ["Toy.survives", "fields of the state"]),
    # what does nothing, what does not fit, what never ends
    "a comparison as a line": ({"step": "s.alive == False"}, ["Toy.step", "`s.alive == False`", "write ="]),
    "a function that is not called": ({"step": "rng.uniform"}, ["Toy.step", "does nothing", "to call, ()"]),
    "plus plus": ({"step": "++s.t"}, ["Toy.step", "does nothing"]),
    "too large, in a late branch": ({"step": "if s.t > 9999:\n    s.n = 300"}, ["s.n cannot hold 300", "-128 to 127"]),
    "a fraction, in a late branch": ({"step": "if s.t > 9999:\n    s.x, s.t = 1.0, 1.5"}, ["s.t cannot hold 1.5"]),
    "an index that is None": ({"observe": "out[None] = 1"}, ["Toy.observe", "whole number, not None"]),
    "an index that is a string": ({"observe": "out['x'] = 1"}, ["Toy.observe", "whole number, not 'x'"]),
    "an index of an array of the module": (
        {"header": "MOVES = np.array([1, 2, 3])", "step": "if s.t > 9999:\n    s.x = MOVES[3]"},
        ["Toy.step", "MOVES[3]", "size 3"],
    ),
    "a function that calls itself": (
        {"header": "def fact(n):\n    return 1 if n < 2 else n * fact(n - 1)", "step": "s.x = fact(5)"},
        ["fact", "leads back to itself", "loop"],
    ),
    "functions that call each other": (
        {"header": "def a(n):\n    return b(n)\ndef b(n):\n    return a(n)", "step": "if s.t > 9999:\n    s.x = a(5)"},
        ["leads back to itself", "loop"],
    ),
    "isinstance": ({"step": "if isinstance(s.x, float):\n    s.x = 1.0"}, ["isinstance() cannot be used"]),
    "a row for a board": ({"step": "s.board[:] = (1, 2, 3, 4, 5)"}, ["Toy.step", "1 dimensions", "written to 2"]),
    "a name that is no attribute": ({"declare": "state = record(**{'my field': f32})"}, ["'my field'", "Rename"]),
    "a type of NumPy": ({"declare": "state = record(x=np.float32)"}, ["'x'", "Use f32"]),
    "a size of zero": ({"declare": "state = record(x=f32[0])"}, ["f32[0]", "whole numbers"]),
    "survives that is None": ({"declare": "survives = None"}, ["Toy.survives", "tuple of fields"]),
    "metadata that is a number": ({"declare": "metadata = 3"}, ["Toy.metadata", "dict"]),
    "a key that is a number": (
        {"declare": "observation_space = gym.spaces.Dict({3: gym.spaces.Discrete(3)})"},
        ["Toy.observation_space", "key 3", "Rename"],
    ),
    "a space without parts": ({"declare": "observation_space = gym.spaces.Tuple(())"}, ["no parts"]),
    "a tuple of two types": (
        {"step": "s.x = (0, 0.5, 1)[action % 3]"},
        ["Toy.step", "`(0, 0.5, 1)` has parts of several types", "(0.0, 0.5, 1.0)"],
    ),
    "a loop over two types": (
        {"header": "ROWS = ((1, 2), (3, 4.5))", "step": "for a, b in ROWS:\n    s.x += a * b"},
        ["Toy.step", "`ROWS` has parts of several types", "write them alike"],
    ),
    "in a tuple of two types": ({"step": "if s.x in (1, 2.5):\n    s.t += 1"}, ["`(1, 2.5)`", "(1.0, 2.5)"]),
    "the base of a logarithm": ({"step": "if s.t > 9999:\n    s.x = math.log(8.0, 2)"}, ["math.log", "math.log(base)"]),
    # what is stored, loops, patterns, and results: most of it in branches that no trial reaches
    "too large for an element": (
        {"step": "if s.t > 9999:\n    s.board[0, 0] = 130"},
        ["Toy.step", "s.board[0, 0] cannot hold 130"],
    ),
    "too large for all elements": ({"step": "if s.t > 9999:\n    s.board[:] = 130"}, ["s.board[:] cannot hold 130"]),
    "too much to add": ({"step": "if s.t > 9999:\n    s.n += 300"}, ["300 is more than fits into s.n", "-128 to 127"]),
    "too large for an f32": ({"step": "if s.t > 9999:\n    s.x = 1e300"}, ["s.x cannot hold 1e+300", "f64"]),
    "computed beyond an f32": ({"step": "s.x = 10.0 ** (30 + s.t)"}, ["stored in an f32", "3.4e38", "f64"]),
    "a number in a b1": ({"step": "s.alive = s.t"}, ["2 is stored in a b1", "True and False"]),
    "other sizes": (
        {"step": "if s.t > 9999:\n    s.speed[:2] = s.speed"},
        ["s.speed[:2] has shape (2,)", "s.speed of shape (3,)"],
    ),
    "three names for two numbers": (
        {"header": "WAYS = (1, 2)", "step": "if s.t > 9999:\n    a, b, c = WAYS\n    s.x = a + b + c"},
        ["Toy.step", "3 names for 2 numbers"],
    ),
    "rows that are swapped": (
        {"step": "if s.t > 9999:\n    s.board[0], s.board[1] = s.board[1], s.board[0]"},
        ["Toy.step", "writes to s.board before", "Swap their elements"],
    ),
    "a row that is kept": (
        {"step": "if s.t > 9999:\n    row = s.board[0]\n    s.board[0] = s.board[1]\n    s.board[1] = row"},
        ["row is s.board[0] itself and not a copy", "loop"],
    ),
    "a constant of a class": (
        {"header": "class Most:\n    SPEED = 2.0", "step": "Most.SPEED = 3.0"},
        ["Toy.step", "writes to Most.SPEED", "constant"],
    ),
    "a loop that nothing ends": (
        {"step": "k = 0\nwhile k < 5:\n    s.n = 1"},
        ["Toy.step", "never ends once it begins", "`k < 5`"],
    ),
    "a range without an end in sight": (
        {"step": "if s.t > 9999:\n    for k in range(1_000_000_000_000):\n        s.x += 1.0"},
        ["Toy.step", "goes round 1,000,000,000,000 times"],
    ),
    "a range that is computed": (
        {"step": "for k in range(s.t * 10_000_000):\n    if k > 2:\n        break"},
        ["Toy.step", "would go round more than 16,777,216 times", "step 2"],
    ),
    "a pattern of parts": (
        {"step": "match (s.t, s.n):\n    case (0, 0):\n        s.x = 1.0"},
        ["Toy.step", "this pattern cannot be used", "`case 1 | 2:`"],
    ),
    "the truth of an array": ({"step": "if s.t > 9999 and s.speed:\n    s.x = 1.0"}, ["s.speed is an array", "loop"]),
    "a helper without a result": (
        {"header": "def nothing(s):\n    s.n = 1", "step": "if s.t > 9999:\n    s.x = nothing(s)"},
        ["Toy.step", "nothing() returns nothing", "is used"],
    ),
    "many arguments": ({"header": "def first(*xs):\n    return xs[0]", "step": "s.x = first(1.0)"}, ["first", "`*xs`"]),
    "bytes": ({"step": "s.x = b'a'[0]"}, ["Toy.step", "bytes"]),
    "divmod by zero": ({"step": "a, b = divmod(5, s.t - 3)\ns.x = a + b"}, ["Toy.step", "division by zero", "5 // 0"]),
    "rng.choice of a number": ({"step": "if s.t > 9999:\n    s.n = rng.choice(3)"}, ["Toy.step", "rng.integers(n)"]),
    "rng.integers of a fraction": ({"step": "s.n = rng.integers(s.t + 0.5)"}, ["rng.integers(1.5)", "whole number"]),
    "rng as a function": ({"step": "if s.t > 9999:\n    s.x = rng()"}, ["Toy.step", "rng is not a function"]),
    "a parameter without p": ({"step": "s.x = limit"}, ["'limit' is not defined", "Did you mean p.limit?"]),
    "a constant of the kernel": (
        {"declare": "MOST = 3", "step": "s.x = MOST"},
        ["'MOST' is not defined", "written with its name: Toy.MOST"],
    ),
    "self in a function": ({"step": "self.x = 1.0"}, ["'self' is not defined", "There is no object"]),
    "params that are a set": ({"declare": "params = {'limit'}"}, ["Toy.params", "dict"]),
    "a property": ({"more": "@property\ndef step(s):\n    return 0.0, False, False"}, ["a property", "`def`"]),
}
"""Name: (lines to put in, words of the sentence); each is told before anything is compiled."""

NOTES = {
    "print": ({"step": "if s.t > 9999:\n    print(s.t)"}, ["Toy.step", "prints", "compiled=False"]),
    "a function of lanes with seats": (
        {"more": "def turn(s, p):\n    return 0"},
        ["Toy.turn", "never called", "seats = 2"],
    ),
    "reset forgets": (
        {
            "declare": "state = record(x=f32, t=i32, n=i8, count=u8, board=i8[5, 5], speed=f32[3], alive=b1, best=f32)",
            "step": "s.best += 1.0",
        },
        ["Toy.reset", "leaves s.best", "survives = ('best',)"],
    ),
    "never written": (
        {"more": "def observe(s, p, out):\n    out[0] = s.x\n    out[2] = 1.0"},
        ["Toy.observe", "never writes 1 of the 3", "[1]"],
    ),
    "a function that nothing calls": (
        {"more": "def maks(s, p, out):\n    out[0] = True"},
        ["Toy.maks", "never called", "Did you mean 'mask'?"],
    ),
    "outside the space": (
        {"declare": "observation_space = gym.spaces.Box(0, 1, (3,), np.float32)"},
        ["Toy.observe", "outside", "[1] is 2.0"],
    ),
}
"""Likewise, for what is only warned about."""
