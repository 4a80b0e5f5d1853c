"""Every format acts as the agent does, whatever its architecture."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from shoal.agents.config import PPOConfig
from shoal.agents.images import has_image
from shoal.agents.ppo import PPO
from shoal.errors import ConfigError
from shoal.policy.export import c, numpy, onnx
from shoal.policy.export import torch as torch_format
from shoal.policy.load import load
from shoal.vector.spaces import flat_rows
from tests.policy.agents import (
    ACTIONS,
    BOARD,
    LARGE,
    MIXED,
    NESTED,
    PLAIN,
    STACK,
    exportable,
    observations,
    random_agent,
)
from tests.policy.carried import a_mask, assert_same, best_actions, compiled, reader_of


@st.composite
def architectures(draw):
    """Agents of every kind, over numbers and images."""
    space = draw(st.sampled_from([PLAIN, NESTED, BOARD, STACK, MIXED, LARGE]))
    algo = draw(st.sampled_from(["ppo", "sac", "dddqn"]))
    actions = {"ppo": list(ACTIONS), "sac": list(ACTIONS), "dddqn": ["choice"]}
    chosen = {"algo": algo, "space": space, "action": draw(st.sampled_from(actions[algo]))}
    if has_image(space):
        chosen["network"] = draw(st.sampled_from(["nature" if space is LARGE else "small", "impala", "mlp"]))
    if algo != "ppo":
        return {**chosen, "hidden": (8, 6)}
    memory = draw(st.sampled_from(["none", "gru", "lstm"]))
    fewest = 1 if memory == "none" else 0
    return {
        **chosen,
        "memory": memory,
        "memory_size": draw(st.integers(1, 7)),
        "hidden": tuple(draw(st.lists(st.integers(1, 9), min_size=fewest, max_size=3))),
        "activation": draw(st.sampled_from(["tanh", "relu"])),
        "normalise_obs": draw(st.booleans()),
        "squash": draw(st.booleans()),
    }


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(architectures(), st.integers(0, 1000))
def test_plain_arrays_and_c_act_as_the_agent(tmp_path_factory, architecture, seed):
    folder = tmp_path_factory.mktemp("export")
    agent = random_agent(**architecture, seed=seed)
    space, action = architecture["space"], architecture["action"]
    count = 40 if has_image(space) else 500
    opened = exportable(agent, space, action)
    obs, mask = observations(space, count, seed), a_mask(space, action, count)
    expected = best_actions(agent, obs, mask, 3)

    path, reader = numpy.write(opened, folder / "carried.safetensors")
    policy, plain = load(path), reader_of(reader)
    assert (policy.observation_space, policy.action_space) == (space, ACTIONS[action])
    assert_same(expected, [policy(obs, action_mask=mask) for _ in range(3)])
    rows = flat_rows(space, obs)
    assert_same(expected, [plain.act(rows, mask).reshape(expected[0].shape) for _ in range(3)])

    (header,) = c.write(opened, folder / "carried.h")
    act = compiled(header, expected[0])
    state = np.zeros((count, max(1, opened.state_size)), np.float32)
    assert_same(expected, [act(rows, mask, state) for _ in range(3)])


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
        assert_same(expected, [policy(obs, action_mask=mask) for _ in range(2)])
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
    assert_same(best_actions(agent, obs, None, 1), [policy(obs)])
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
