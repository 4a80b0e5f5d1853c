"""Exported policies as other programs use them: the reader alone, and a compiled header."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import subprocess

import numpy as np


def best_actions(agent, obs, mask, steps):
    """What the agent does in `steps` steps on the same observations: [steps] of [N, *action]."""
    state, actions = None, []
    for _ in range(steps):
        act = agent.act_batch(obs, True, mask, state)
        state = act.state
        actions.append(act.action.numpy())
    return actions


def assert_same(actions, others):
    for action, other in zip(actions, others, strict=True):
        if action.dtype == np.int64:
            # rounding may decide between two that are as good as equal
            assert np.mean(np.any((action != other).reshape(len(action), -1), 1)) < 0.002
        else:
            np.testing.assert_allclose(action, other, atol=1e-5)


def a_mask(space, action, count):
    if action == "box":
        return None
    width = {"choice": 4, "choices": 9}[action]
    mask = np.random.default_rng(3).random((count, width)) < 0.7
    mask[:, [0, 2, 5] if action == "choices" else 0] = True
    return mask


def reader_of(path):
    spec = importlib.util.spec_from_file_location("carried", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Policy(path.with_suffix(".safetensors"))


def compiled(header, like):
    """The function of a C header, for rows [N, D]; its actions have the shape and kind of those in `like`."""
    name, text = header.stem, header.read_text()
    kind = "int" if like.dtype == np.int64 else "float"
    byte = "unsigned char" if "const unsigned char *obs" in text else "float"
    upper, looks = name.upper(), "_WORK" in text
    program = header.with_suffix(".c")
    program.write_text(
        f'#include "{header.name}"\n'
        f"void rows(int n, const {byte} *obs, const unsigned char *mask, float *state, {kind} *action,\n"
        f"    float *work) {{\n"
        f"    (void)work;\n"
        f"    for (int i = 0; i < n; i++) {name}_act(obs + i * {upper}_OBS, mask ? mask + i * {upper}_CHOICES : 0,\n"
        f"        state + i * {upper}_STATE, action + i * {upper}_ACTION{', work' if looks else ''});\n}}\n"
    )
    library = header.with_suffix(".so")
    subprocess.run(
        ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o", library, program, "-lm"],
        check=True,
    )
    loaded = ctypes.CDLL(str(library))
    room = int(re.search(r"_WORK (\d+)", text)[1]) if looks else 0
    guard = np.full(room + 8, 7.0, np.float32)  # whoever writes beyond its room is seen

    def act(rows, mask, state):
        rows = np.ascontiguousarray(rows, np.uint8 if byte == "unsigned char" else np.float32)
        action = np.zeros(like.shape, np.int32 if kind == "int" else np.float32)
        flags = None if mask is None else mask.astype(np.uint8)
        given = (rows, flags, state, action, guard)
        pointers = [None if array is None else array.ctypes.data_as(ctypes.c_void_p) for array in given]
        loaded.rows(len(rows), *pointers)
        assert (guard[room:] == 7.0).all()
        return action

    return act
