"""Loops that copy whole boards are one copy when compiled: the same numbers, whatever they are stored as."""

import ast

import gymnasium as gym
import numpy as np
import pytest

from shoal.vector.kernel import Kernel, KernelBatch, b1, batch, f32, f64, i8, i32, record, u8
from shoal.vector.kernel.copies import whole_copy
from shoal.vector.kernel.kinds import Cells, Scope

R, C = 3, 5
box = gym.spaces.Box


class Boards(Kernel):
    observation_space = gym.spaces.Dict(
        {
            "planes": box(-np.inf, np.inf, (5, R, C), np.float32),
            "bytes": box(0, 255, (4, R, C), np.uint8),
            "flags": gym.spaces.MultiBinary((R, C)),
        }
    )
    action_space = gym.spaces.Discrete(2)
    state = record(a=i8[R, C], b=b1[R, C], c=f32[2, R, C], d=f64[R, C], e=u8[R, C], last=i32, t=i32)

    def reset(s, p, rng):
        s.t, s.last = 0, 0
        for r in range(R):
            for c in range(C):
                s.a[r, c], s.b[r, c], s.d[r, c] = rng.integers(-3, 4), rng.uniform() < 0.5, 9.0 * rng.normal()
                s.c[0, r, c], s.c[1, r, c], s.e[r, c] = rng.normal(), -7.25, rng.integers(256)

    def step(s, action, p, rng):
        s.t += 1
        for r in range(R):
            for c in range(C):
                s.c[action, r, c] = s.d[r, c]
        s.last = 10 * r + c
        for r in range(R):
            for c in range(C):
                s.a[r, c] = s.d[r, c]
        for r in range(R):
            for c in range(C):
                s.b[r, c] = s.a[r, c]
        for c in range(C):
            s.d[s.t % R, c] = s.c[1 - action, s.t % R, c]
        return 0.0, False, s.t >= 9

    def observe(s, p, out):
        for r in range(R):
            for c in range(C):
                out.planes[0, r, c] = s.a[r, c]
        for r in range(R):
            for c in range(C):
                out.planes[3, r, c] = s.c[1, r, c]
        out.planes[2, s.t % R, s.last % C] = 1
        for r in range(R):
            for c in range(C):
                out.bytes[1, r, c] = s.e[r, c]
        out.bytes[2] = s.b
        for r in range(R):
            for c in range(C):
                out.flags[r, c] = s.a[r, c]


def test_copies_mean_the_same_in_every_build(monkeypatch):
    monkeypatch.setattr(batch, "dry_run", lambda kernel, lanes: [])  # fractions are cut off on purpose
    one, other = KernelBatch(Boards, 4), KernelBatch(Boards, 4, compiled=False)
    one.reset(seed=2), other.reset(seed=2)
    for action in np.random.default_rng(0).integers(0, 2, (20, 4)):
        shown, expected = one.step(action)[0], other.step(action)[0]
        for name in expected:
            assert np.array_equal(shown[name], expected[name])
        for name in Boards.state.names:
            assert np.array_equal(one.lane_state[name], other.lane_state[name])


WALKED = "for r in range(3):\n    for c in range(5):\n        "


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (WALKED + "out[2, r, c] = s[r, c]", "out[2] = s"),
        (WALKED + "whole[r, c] = s[r, c]", "whole[:] = s"),
        (WALKED + "out[k, r, c] = out[0, r, c]", "out[k] = out[0]"),
        ("for c in range(5):\n    out[1, 2, c] = s[k, c]", "out[1, 2] = s[k]"),
        (WALKED + "out[2, r, c] = s[c, r]", None),
        (WALKED + "out[r, r, c] = s[r, c]", None),
        (WALKED + "out[2, r, c] = s[r, c] + 1", None),
        ("for r in range(2):\n    for c in range(5):\n        out[2, r, c] = s[r, c]", None),
        ("for c in range(n):\n    out[1, 2, c] = s[k, c]", None),
    ],
)
def test_which_loops_are_copies(text, made):
    module = ast.parse("def f(out, whole, s, k, n):\n" + "\n".join("    " + line for line in text.splitlines()))
    definition = module.body[0]
    kinds = {"out": Cells((4, 3, 5), dtype=np.dtype(np.uint8)), "s": Cells((3, 5), dtype=np.dtype(np.int8))}
    scope = Scope(definition, {**kinds, "whole": kinds["s"]}, lambda name: None)
    found = whole_copy(definition.body[0], scope)
    assert (found and ast.unparse(found[0])) == made
