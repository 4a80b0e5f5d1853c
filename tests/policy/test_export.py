"""Every format acts as the agent does, whatever its architecture."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from shoal.agents.config import PPOConfig
from shoal.agents.ppo import PPO
from shoal.errors import ConfigError
from shoal.policy.export import c, numpy, onnx
from shoal.policy.export import torch as torch_format
from shoal.policy.load import load
from shoal.policy.rows import flat_rows
from tests.policy.agents import ACTIONS, NESTED, PLAIN, exportable, observations, random_agent

ARCHITECTURES = st.one_of(
    st.fixed_dictionaries(
        {
            "algo": st.just("ppo"),
            "space": st.sampled_from([PLAIN, NESTED]),
            "action": st.sampled_from(list(ACTIONS)),
            "hidden": st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple),
            "activation": st.sampled_from(["tanh", "relu"]),
            "memory": st.sampled_from(["none", "gru", "lstm"]),
            "memory_size": st.integers(1, 7),
            "normalise_obs": st.booleans(),
        }
    ),
    st.fixed_dictionaries(
        {
            "algo": st.just("sac"),
            "space": st.sampled_from([PLAIN, NESTED]),
            "action": st.sampled_from(list(ACTIONS)),
            "hidden": st.just((8, 6)),
        }
    ),
    st.fixed_dictionaries(
        {"algo": st.just("dddqn"), "space": st.sampled_from([PLAIN, NESTED]), "action": st.just("choice")}
    ),
)


def best_actions(agent, obs, mask, steps):
    """What the agent does in `steps` steps on the same observations: [steps] of [N, *action]."""
    state, actions = None, []
    for _ in range(steps):
        act = agent.act_batch(obs, True, mask, state)
        state = act.state
        actions.append(act.action.numpy())
    return actions


def assert_same(agent, actions, others):
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


def compiled(header, discrete):
    """The function of a C header, for rows [N, D]."""
    kind = "int" if discrete else "float"
    name = header.stem
    program = header.with_suffix(".c")
    program.write_text(
        f'#include "{header.name}"\n'
        f"void rows(int n, const float *obs, const unsigned char *mask, float *state, {kind} *action) {{\n"
        f"    for (int i = 0; i < n; i++) {name}_act(obs + i * {name.upper()}_OBS,\n"
        f"        mask ? mask + i * {name.upper()}_CHOICES : 0, state + i * {name.upper()}_STATE,\n"
        f"        action + i * {name.upper()}_ACTION);\n}}\n"
    )
    library = header.with_suffix(".so")
    subprocess.run(
        ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o", library, program, "-lm"],
        check=True,
    )
    loaded = ctypes.CDLL(str(library))

    def act(rows, mask, state, width):
        action = np.zeros((len(rows), width), np.int32 if discrete else np.float32)
        pointers = [None if array is None else array.ctypes.data_as(ctypes.c_void_p) for array in (rows, mask, state)]
        loaded.rows(len(rows), *pointers, action.ctypes.data_as(ctypes.c_void_p))
        return action

    return act


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(ARCHITECTURES, st.integers(0, 1000))
def test_plain_arrays_and_c_act_as_the_agent(tmp_path_factory, architecture, seed):
    folder = tmp_path_factory.mktemp("export")
    agent = random_agent(**architecture, seed=seed)
    space, action = architecture["space"], architecture["action"]
    opened = exportable(agent, space, action)
    obs, mask = observations(space, 500, seed), a_mask(space, action, 500)
    expected = best_actions(agent, obs, mask, 3)

    path, reader = numpy.write(opened, folder / "carried.safetensors")
    policy, plain = load(path), reader_of(reader)
    assert (policy.observation_space, policy.action_space) == (space, ACTIONS[action])
    assert_same(agent, expected, [policy(obs, action_mask=mask) for _ in range(3)])
    rows = flat_rows(space, obs)
    assert_same(agent, expected, [plain.act(rows, mask) for _ in range(3)])

    (header,) = c.write(opened, folder / "carried.h")
    act = compiled(header, action != "box")
    state = np.zeros((500, max(1, opened.state_size)), np.float32)
    flags = None if mask is None else mask.astype(np.uint8)
    shape = expected[0].shape
    assert_same(agent, expected, [act(rows, flags, state, expected[0][0].size).reshape(shape) for _ in range(3)])


@pytest.mark.parametrize(
    "architecture",
    [
        {"algo": "ppo", "space": NESTED, "action": "choices", "normalise_obs": True, "memory": "lstm", "hidden": (8,)},
        {"algo": "sac", "space": PLAIN, "action": "box", "hidden": (16, 16)},
        {"algo": "dddqn", "space": PLAIN, "action": "choice", "hidden": (16,)},
    ],
    ids=lambda architecture: architecture["algo"],
)
def test_onnx_and_torch_act_as_the_agent_on_any_number_of_rows(tmp_path, architecture):
    pytest.importorskip("onnxruntime")
    agent = random_agent(**architecture)
    space, action = architecture["space"], architecture["action"]
    opened = exportable(agent, space, action)
    obs, mask = observations(space, 10_000), a_mask(space, action, 10_000)
    expected = best_actions(agent, obs, mask, 2)
    for write, name in ((onnx.write, "a.onnx"), (torch_format.write, "a.pt2")):
        (path,) = write(opened, tmp_path / name)
        policy = load(path)
        assert (policy.observation_space, policy.action_space) == (space, ACTIONS[action])
        assert_same(agent, expected, [policy(obs, action_mask=mask) for _ in range(2)])
        policy.reset()
        one = observations(space, 1)
        np.testing.assert_allclose(policy(one), best_actions(agent, one, None, 1)[0], atol=1e-5)
        with pytest.raises(ConfigError, match="best actions only"):
            policy(one, deterministic=False)


class Square(torch.nn.Module):
    """A network of a user's own."""

    state_size = 0

    def __init__(self, branches):
        super().__init__()
        self.linear, self.branches = torch.nn.Linear(5, 4), branches

    def forward(self, obs, state):
        out = self.linear(obs) ** 2
        if self.branches and bool(out.sum() > 1):
            out = out + 1
        return out, out[:, 0], state


def test_a_network_of_ones_own_is_exported_by_torch_alone(tmp_path):
    agent = PPO(PLAIN, ACTIONS["choice"], PPOConfig(), network=Square(branches=False))
    opened = exportable(agent)
    for format_ in (c, numpy):
        with pytest.raises(ConfigError, match=r"network of its own.*--to onnx or --to torch"):
            format_.write(opened, tmp_path / "a")
    policy = load(torch_format.write(opened, tmp_path / "a.pt2")[0])
    obs = observations(PLAIN, 50)
    assert_same(agent, best_actions(agent, obs, None, 1), [policy(obs)])
    branching = exportable(PPO(PLAIN, ACTIONS["choice"], PPOConfig(), network=Square(branches=True)))
    with pytest.raises(ConfigError, match="The network of a random agent cannot be exported: "):
        torch_format.write(branching, tmp_path / "b.pt2")


def test_files_that_are_something_else_are_told(tmp_path):
    pytest.importorskip("onnxruntime")
    for name, sentence in (
        ("a.onnx", "is not an ONNX graph"),
        ("a.pt2", "is not a torch.export program"),
        ("a.safetensors", "is not a stored policy"),
        ("a.txt", r"does not end in .safetensors, .onnx, .pt2"),
    ):
        (tmp_path / name).write_text("nothing")
        with pytest.raises(ConfigError, match=sentence):
            load(tmp_path / name)
