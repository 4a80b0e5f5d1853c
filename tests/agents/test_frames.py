"""A memory of images: every frame once, and what is read is what was seen."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.agents.config import DDDQNConfig, SACConfig
from shoal.agents.dddqn import DDDQN
from shoal.agents.frames import Frames
from shoal.agents.rollout import Ended
from shoal.agents.sac import SAC
from shoal.errors import ConfigError
from shoal.trees import index_tree, leaves, map_tree

STACK, SIDE = 4, 6
SPACE = Box(0, 255, (STACK, SIDE, SIDE), np.uint8)
MIXED = Dict({"camera": SPACE, "speed": Box(-1, 1, (2,), np.float32), "gear": Discrete(3)})


class Film:
    """Lanes that show stacks of random frames; an episode begins with copies of its first."""

    def __init__(self, lanes: int, seed: int, mean_length: float) -> None:
        self.rng, self.lanes, self.mean_length = np.random.default_rng(seed), lanes, mean_length
        self.obs = np.repeat(self.frames(lanes)[:, None], STACK, 1)

    def frames(self, count: int) -> np.ndarray:
        return self.rng.integers(0, 3, (count, SIDE, SIDE), np.uint8)  # few values: some frames are equal by chance

    def rollout(self, steps: int, tree=lambda obs: obs) -> SimpleNamespace:
        lanes, rows, ended = self.lanes, [self.obs], []
        done = self.rng.random((steps, lanes)) < 1 / self.mean_length
        for t in range(steps):
            after = np.concatenate([self.obs[:, 1:], self.frames(lanes)[:, None]], 1)
            over = np.flatnonzero(done[t])
            if len(over):
                ended.append(Ended(t, over, tree(after[over]), None))
                after[over] = np.repeat(self.frames(len(over))[:, None], STACK, 1)
            self.obs = after
            rows.append(after)
        reward = self.rng.normal(size=(steps, lanes)).astype(np.float32)
        action = self.rng.integers(0, 2, (steps, lanes))
        return SimpleNamespace(
            num_steps=steps, num_envs=lanes, obs=tree(np.stack(rows)), ended=ended, reward=reward, action=action,
            terminated=done & (reward > 0), truncated=done & (reward <= 0), action_mask=None,
        )  # fmt: skip


def mixed(obs: np.ndarray) -> dict:
    speed = obs[..., 0, 0, :2].astype(np.float32) / 3
    return {"camera": obs, "gear": obs[..., 1, 1, 1].astype(np.int64), "speed": speed}  # in the order of a Dict space


def true_transitions(rollout):
    """(obs, next_obs) of every step, time first."""
    following = map_tree(lambda leaf: leaf[1:].copy(), rollout.obs)
    for end in rollout.ended:
        for leaf, last in zip(leaves(following), leaves(end.obs), strict=True):
            leaf[end.t, end.lanes] = last
    flat = lambda tree, count: map_tree(lambda leaf: leaf[:count].reshape(-1, *leaf.shape[2:]), tree)  # noqa: E731
    return flat(rollout.obs, rollout.num_steps), flat(following, rollout.num_steps)


@settings(max_examples=12)
@given(st.integers(1, 4), st.integers(0, 99), st.integers(1, 30), st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_what_is_read_is_what_was_seen(lanes, seed, mean_length, parts):
    film, frames = Film(lanes, seed, mean_length), Frames(MIXED, 500)
    for steps in parts:
        rollout = film.rollout(steps, mixed)
        seen, following = frames.remember(rollout.obs, rollout.ended)
        for numbers, wanted in zip((seen, following), true_transitions(rollout), strict=True):
            shown = frames.read(numbers.reshape(-1, frames.width))
            for ours, theirs in zip(leaves(shown), leaves(wanted), strict=True):
                np.testing.assert_array_equal(ours, theirs)


def test_a_frame_is_stored_once():
    film, frames = Film(3, 0, 50), Frames(SPACE, 1_000)
    steps, episodes = 0, 3
    for _ in range(5):
        rollout = film.rollout(40)
        frames.remember(rollout.obs, rollout.ended)
        steps, episodes = steps + 40 * 3, episodes + sum(len(end.lanes) for end in rollout.ended)
    assert frames.rings[0].total == steps + episodes


def test_lanes_that_were_reset_in_between_begin_anew():
    film, frames = Film(2, 0, 50), Frames(SPACE, 1_000)
    frames.remember(film.rollout(5).obs, [])
    film.obs[1] = 9
    rollout = film.rollout(1)
    seen, _ = frames.remember(rollout.obs, rollout.ended)
    np.testing.assert_array_equal(frames.read(seen[0]), rollout.obs[0])


def dddqn(**settings) -> DDDQN:
    options = {"replay_capacity": 60, "batch_size": 8, "warmup": 20, "num_steps": 5, "hidden": (8,), **settings}
    return DDDQN(SPACE, Discrete(2), DDDQNConfig(**options))


@pytest.mark.parametrize("prioritised", [False, True])
@pytest.mark.parametrize("mean_length", [1, 3, 40])
def test_only_transitions_whose_frames_are_there_are_drawn(prioritised, mean_length):
    agent, film = dddqn(prioritised=prioritised, n_step=2, updates_per_step=0.001), Film(4, 1, mean_length)
    frames = {}
    for _ in range(12):
        rollout = film.rollout(5)
        agent.update(rollout)
        ring = agent.frames.rings[0]
        frames |= {n: ring.frames[n % len(ring.frames)].copy() for n in range(max(0, ring.total - 99), ring.total)
                   if n not in frames}  # fmt: skip
        assert agent.replay.count <= 60
        if agent.replay.count:
            drawn = agent.replay.draw(32, agent.generator)
            rows = agent.replay.read(drawn.numbers, torch.empty(32, agent.columns.width))
            numbers = rows[:, agent.columns.next_obs].contiguous().view(torch.int64).numpy()
            shown = agent.frames.read(numbers).numpy()
            for row, stack in zip(numbers, shown, strict=True):
                for number, frame in zip(row, stack, strict=True):
                    np.testing.assert_array_equal(frame, frames[number])
    assert agent.replay.count >= {1: 0, 3: 20, 40: 40}[mean_length]


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("make", [dddqn, lambda **s: SAC(MIXED, Box(-1, 1, (2,)), SACConfig(
    replay_capacity=60, batch_size=8, warmup=20, num_steps=5, hidden=(8,), **s))], ids=["dddqn", "sac"])  # fmt: skip
def test_a_resumed_agent_learns_the_same(make, outside, tmp_path):
    tree = mixed if isinstance(make(), SAC) else (lambda obs: obs)
    agent, other, film = make(n_step=3, random_shift=1), make(n_step=3, random_shift=1), Film(4, 2, 9)
    if outside:

        def allocate(resumed):
            return lambda name, shape, dtype: np.memmap(tmp_path / name, dtype, "r+" if resumed else "w+", shape=shape)

        agent.keep_memory_in(allocate(False), 100)
    rollouts = [film.rollout(5, tree) for _ in range(10)]
    if isinstance(agent, SAC):
        for rollout in rollouts:
            rollout.action = np.tanh(np.random.default_rng(0).normal(size=(5, 4, 2))).astype(np.float32)
    for rollout in rollouts[:6]:
        agent.update(rollout)
    saved = agent.state_dict()
    for rollout in rollouts[6:]:
        metrics = agent.update(rollout)
    if outside:
        other.keep_memory_in(allocate(True), 100)
    other.load_state_dict(saved)
    for rollout in rollouts[6:]:
        again = other.update(rollout)
    assert again == metrics
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, agent.state_dict()[name]), name


def test_a_memory_that_cannot_fit_is_refused_with_what_would():
    agent = SAC(Box(0, 255, (210, 160, 3), np.uint8), Box(-1, 1, (2,)), SACConfig(replay_capacity=1_000_000))
    with pytest.raises(
        ConfigError, match=r"102,\d+ bytes each.* need 102.\d GB, but here has 10.0 GB.* 87,\d{3} or less"
    ):
        agent.check_room(10_000_000_000, 0, "here")
    agent.check_room(200_000_000_000, 0, "here")


class Tiny(torch.nn.Module):
    def __init__(self, features: int = 5) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, features)

    def forward(self, obs):
        return self.layer(obs["speed"])


@pytest.mark.parametrize("kind", ["sac", "dddqn"])
def test_a_network_of_the_user_learns(kind):
    torch.manual_seed(0)
    options = {"batch_size": 8, "warmup": 20, "num_steps": 5, "hidden": (8,)}
    network, film = Tiny(), Film(4, 2, 9)
    if kind == "sac":
        agent = SAC(MIXED, Discrete(2), SACConfig(**options), network=network)
    else:
        agent = DDDQN(MIXED, Discrete(2), DDDQNConfig(**options), network=network)
    before = network.layer.weight.detach().clone()
    for _ in range(3):
        agent.update(film.rollout(5, mixed))
    assert not torch.equal(network.layer.weight, before)
    rollout = film.rollout(5, mixed)
    assert agent.act_batch(index_tree(rollout.obs, 0)).action.shape == (4,)


@pytest.mark.parametrize(
    ("network", "sentence"),
    [
        (Tiny, "not the class Tiny"),
        (torch.nn.Linear(3, 4), "cannot read observations"),
        (torch.nn.Identity(), "must return features"),
    ],
)
def test_what_is_no_network_gets_a_sentence(network, sentence):
    with pytest.raises(ConfigError, match=sentence):
        SAC(MIXED, Discrete(2), network=network)
