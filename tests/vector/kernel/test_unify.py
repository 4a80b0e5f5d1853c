"""A variable that holds different sorts of numbers on different ways means the same compiled and as Python."""

import numpy as np
import pytest

from shoal.vector.kernel import KernelBatch, batch
from shoal.vector.kernel.sorts import Sort, convert
from tests.vector.kernel.test_mistakes import load

# bodies of functions of (s, p, c, t): c is true in every other step, t counts the steps
WAYS = {
    "a branch": "x = 1\nif c:\n    x = 0.5\nreturn x // 0",
    "a branch, negated": "x = 0\nif c:\n    x = 0.5\nreturn 1 / -x",
    "a branch, to a power": "x = 2\nif c:\n    x = 0.5\nreturn x ** -t",
    "a branch, beyond 53 bits": "x = s.big\nif c:\n    x = 0.5\nreturn float(x == 2**53)",
    "a flag and a number": "x = True\nif c:\n    x = 2\nreturn ~x",
    "three sorts": "x = 0\nif c:\n    pass\nelif t > 2:\n    x = 0.5\nelse:\n    x = True\nreturn 1 / -x",
    "fields": "x = s.n[0] if c else s.v[0]\nreturn x // 0",
    "parameters": "x = p.whole\nif c:\n    x = p.rate\nreturn x // 0",
    "a match": "x = 0\nmatch t:\n    case 2:\n        x = 0.5\nreturn 1 / -x",
    "an else of a loop": "for k in range(t):\n    if k == 2:\n        x = 0.5\n        break\n"
    "else:\n    x = 1\nreturn x // 0",
    "an else that returns": "for k in range(t):\n    if k == 2:\n        return 0.5\nelse:\n    return -0.0 * t",
    "a loop that runs later": "x = 0\nfor k in range(t - 2):\n    x += 0.5\nreturn 1 / -x",
    "a while loop": "x = 0\nwhile x < 3 and c:\n    x += 0.75\nreturn (x - 1) // 0",
    "a loop with break": "x = 3\nfor k in range(3):\n    if k == t:\n        x = 0.5\n        break\n"
    "else:\n    x = 7\nreturn x // 0",
    "a loop with continue": "x = 0\nfor k in range(t):\n    if k == 1:\n        x = 0.5\n        continue\n"
    "    x = -x\nreturn 1 / x",
    "the variable of a loop": "x = 0.5\nfor x in range(t - 2):\n    pass\nreturn x // 0",
    "a loop over pairs": "x = 0\nfor a, b in zip(s.n, s.v):\n    x = b if c else a\nreturn x // 0",
    "a swap": "x, y = 1, 0.5\nif c:\n    x, y = y, x\nreturn x // 0 + y // 0",
    "pairs": "a, b = (0, 2.0) if c else (1.0, 0)\nreturn 1 / -a + 1 / -b",
    "or": "x = t % 2 and 0.5\nreturn 1 / -x",
    "the smaller": "return 1 / -min(0, s.v[0], 5)",
    "a helper's result": "return 1 / -pick(c)",
    "a helper's pair": "a, b = pair(c)\nreturn 1 / -a + 1 / -b",
    "a helper for both": "return 1 / -clip(t - 9, 0, 3) + 1 / -clip(s.v[0] - 2, 0, 3)",
    "a helper's argument": "return inner(c, 0) + inner(c, z=0.5) + inner(c)",
    "a helper with a record": "r = scratch(PAIR, 1)[0]\nr.left = 0.5 if c else -1\nreturn 1 / -best(r)",
    "a helper with arrays": "return total(s.v) // 0 if c else total(s.n) // 0",
    "a way that is never taken": "x = 1\nif OFF and c:\n    x = 0.5\nreturn x // 0",
    "a constant behind a dot": "x = 1\nif K.OFF:\n    x = 0.5\nreturn x // 0",
    "a comparison": "return float(1 < s.big <= 2.0**53)",
    "one of these": "return float(s.big in (1.0, 2.0**53))",
    "digits beyond 64 bits": "k = 3\nfor j in range(100):\n    k *= 3\nreturn k % 7",
    "whole numbers in math.pow": "return math.pow(0, -t) + math.pow(2, t)",
    "functions of NumPy": "x = np.sign(-2) if c else np.floor(2.5)\nreturn x // 0",
}
PROGRAM = """
import math

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import *
from shoal.vector.kernel.scratch import scratch

OFF = False
PAIR = record(left=f64, right=i32)


class K:
    OFF = False


def pick(c):
    if c:
        return 0.5
    return 0


def pair(c):
    if c:
        return 1, 0.5
    return 0.5, 0


def clip(x, low, high):
    return low if x < low else high if x > high else x


def inner(c, z=True):
    y = z
    if c:
        y = pick(not c)
    return 1 / -y


def best(r):
    x = 0
    if r.left > 0:
        x = r.left
    return x


def total(a):
    x = 0
    for v in a:
        x = x + v
    return x
FUNCTIONS


class Toy(Kernel):
    observation_space = gym.spaces.Box(-np.inf, np.inf, (COUNT,), np.float64)
    action_space = gym.spaces.Discrete(2)
    state = record(seen=f64[COUNT], t=i32, v=f32[3], n=i16[3], big=i64)
    params = {"rate": 0.3, "whole": 3}

    def reset(s, p, rng):
        s.t, s.big = 0, 2**53 + 1
        s.v[:] = 0.5
        s.n[:] = 2
        s.seen[:] = 0.0

    def step(s, action, p, rng):
        s.t += 1
        CALLS
        return 0.0, False, False

    def observe(s, p, out):
        for k in range(COUNT):
            out[k] = s.seen[k] if s.seen[k] == s.seen[k] else 1e9
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    functions = "".join(
        f"\n\ndef way{k}(s, p, c, t):\n    " + body.replace("\n", "\n    ") for k, body in enumerate(WAYS.values())
    )
    calls = "\n        ".join(f"s.seen[{k}] = way{k}(s, p, action == 1, s.t)" for k in range(len(WAYS)))
    text = PROGRAM.replace("FUNCTIONS", functions).replace("CALLS", calls).replace("COUNT", str(len(WAYS)))
    return load(tmp_path_factory.mktemp("ways"), text)


def rows(toy, **options):
    """[T, B, ways] what each function returned."""
    lanes = KernelBatch(toy, 2, **options)
    lanes.reset(seed=0)
    return np.array([lanes.step(np.array([k % 2, (k + 1) % 2]))[0].copy() for k in range(6)])


def test_the_same_compiled_and_as_python(toy, monkeypatch):
    monkeypatch.setattr(batch, "dry_run", lambda kernel, lanes: [])  # these divide by zero on purpose
    one, other = rows(toy), rows(toy, compiled=False)
    differing = [name for k, name in enumerate(WAYS) if one[..., k].tobytes() != other[..., k].tobytes()]
    assert not differing


def test_a_fraction_on_one_way_is_a_fraction_on_all(toy):
    lanes = rows(toy, compiled=False)
    assert lanes[0, :, list(WAYS).index("a branch")].tolist() == [np.inf, np.inf]  # 1 // 0 would be 0


def test_a_flag_beside_a_part_that_is_not_known_stays_one():
    assert convert((0, True), (None, Sort.FLAG))[1] is True
