"""Images are recognised, scaled and encoded, whatever the order of their axes."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete

from shoal.agents.config import PPOConfig
from shoal.agents.encoders import make_encoder, network_for, shifted
from shoal.agents.images import image_of
from shoal.agents.networks import FlattenObs
from shoal.agents.ppo import PPO
from shoal.errors import ConfigError
from tests.agents.pictures import random_obs


def pixels(*shape: int) -> Box:
    return Box(0, 255, shape, np.uint8)


MIXED = Dict({"camera": pixels(24, 20, 3), "speed": Box(-1, 1, (2,), np.float32), "gear": Discrete(5)})


@pytest.mark.parametrize(
    ("space", "planes"),
    [
        (pixels(4, 84, 84), (4, 84, 84)),
        (pixels(84, 84, 3), (3, 84, 84)),
        (pixels(7, 7, 3), (3, 7, 7)),
        (pixels(84, 64), (1, 84, 64)),
        (pixels(4, 60, 80, 3), (12, 60, 80)),
        (pixels(4, 3, 60, 80), (12, 60, 80)),
        (Box(0, 1, (10, 10, 6), np.bool_), (6, 10, 10)),
        (Box(0, 1, (10, 10, 4), np.float32), (4, 10, 10)),
    ],
)
def test_images_are_told_by_their_shape(space, planes):
    image = image_of(space)
    assert image is not None
    assert (image.channels, image.height, image.width) == planes
    obs = random_obs(space, 3)
    shown = image.planes(torch.as_tensor(obs)).numpy()
    assert shown.shape == (3, *planes)
    middle = [axis for axis in image.order if axis not in image.order[-2:]]
    expected = np.transpose(obs, [0, *(1 + a for a in [*middle, *image.order[-2:]])]).reshape(3, *planes)
    np.testing.assert_array_equal(shown, expected.astype(np.float32))


@pytest.mark.parametrize(
    "space",
    [
        Box(-np.inf, np.inf, (84, 84, 3), np.float32),
        Box(0, 255, (12,), np.uint8),
        Box(0, 1, (20, 20), np.float32),
        Box(0, 1, (3, 3, 3), np.float32),
        Discrete(4),
    ],
)
def test_other_observations_are_none(space):
    assert image_of(space) is None


def test_networks_are_chosen_by_the_size_of_images():
    assert network_for(pixels(4, 84, 84), "auto") == "nature"
    assert network_for(pixels(10, 10, 4), "auto") == "small"
    assert network_for(Box(-1, 1, (8,)), "auto") == "mlp"
    with pytest.raises(ConfigError, match="'impala' is for images"):
        network_for(Box(-1, 1, (8,)), "impala")
    with pytest.raises(ConfigError, match="at least 36 x 36 pixels, but the smallest side here is 10"):
        make_encoder(pixels(10, 10, 4), "nature", (), "relu")


@pytest.mark.parametrize("name", ["nature", "impala"])
def test_the_order_of_axes_and_the_type_change_nothing(name):
    torch.manual_seed(0)
    first = make_encoder(pixels(3, 40, 48), name, (), "relu")
    last = make_encoder(pixels(40, 48, 3), name, (), "relu")
    scaled = make_encoder(Box(0, 1, (40, 48, 3), np.float32), name, (), "relu")
    last.load_state_dict(first.state_dict())
    scaled.load_state_dict(first.state_dict())
    obs = torch.as_tensor(random_obs(pixels(40, 48, 3), 5))
    features = last(obs)
    torch.testing.assert_close(first(obs.permute(0, 3, 1, 2)), features)
    torch.testing.assert_close(scaled(obs.float() / 255), features, atol=1e-3, rtol=1e-3)


def test_flattened_images_are_scaled():
    obs = random_obs(pixels(7, 7, 3), 2)
    np.testing.assert_allclose(FlattenObs(pixels(7, 7, 3))(torch.as_tensor(obs)), obs.reshape(2, -1) / 255, rtol=1e-6)


def test_every_part_of_a_mixed_observation_counts():
    encoder = make_encoder(MIXED, "small", (16,), "tanh")
    obs = {key: torch.as_tensor(value) for key, value in random_obs(MIXED, 4).items()}
    features = encoder(obs)
    assert features.shape == (4, encoder.size)
    for key, changed in (("camera", 255 - obs["camera"]), ("speed", -obs["speed"]), ("gear", 4 - obs["gear"])):
        assert not torch.equal(encoder({**obs, key: changed}), features), key


@pytest.mark.parametrize("shape", [(2, 9, 12), (9, 12, 2), (9, 12), (3, 9, 12, 2)])
def test_shifts_move_whole_images(shape):
    space = pixels(*shape) if len(shape) != 2 else pixels(18, 24)
    image, obs = image_of(space), torch.as_tensor(random_obs(space, 40))
    moved = shifted(obs, image, 2, torch.Generator().manual_seed(1))
    assert moved.shape == obs.shape
    assert moved.dtype == torch.uint8
    before, after = image.planes(obs), image.planes(moved)
    offsets = set()
    for old, new in zip(before, after, strict=True):
        padded = torch.nn.functional.pad(old[None], (2, 2, 2, 2), mode="replicate")[0]
        height, width = old.shape[1:]
        matches = [
            (y, x) for y in range(5) for x in range(5) if torch.equal(padded[:, y : y + height, x : x + width], new)
        ]
        assert matches
        offsets.add(matches[0])
    assert len(offsets) > 10


@pytest.mark.parametrize("memory", ["none", "gru", "lstm"])
@pytest.mark.parametrize("space", [pixels(10, 10, 4), MIXED], ids=["board", "mixed"])
def test_ppo_acts_on_images(space, memory):
    agent = PPO(space, Discrete(3), PPOConfig(memory=memory, memory_size=8))
    act = agent.act_batch(random_obs(space, 6))
    assert act.action.shape == (6,)
    with pytest.raises(ConfigError, match="acts on observations of shape"):
        agent.act_batch(
            random_obs(Dict({**MIXED.spaces, "camera": pixels(24, 21, 3)}) if space is MIXED else pixels(9, 9, 4), 6)
        )


@pytest.mark.slow  # the compiler of C++ takes most of a minute
def test_compiled_networks_give_the_same_actions():
    config = PPOConfig()
    plain = PPO(pixels(10, 10, 4), Discrete(3), config, seed=3)
    compiled = PPO(pixels(10, 10, 4), Discrete(3), PPOConfig(compile=True), seed=3)
    assert plain.state_dict().keys() == compiled.state_dict().keys()
    obs = random_obs(pixels(10, 10, 4), 4)
    ours, theirs = plain.act_batch(obs), compiled.act_batch(obs)
    torch.testing.assert_close(ours.value, theirs.value)
    torch.testing.assert_close(ours.log_prob, theirs.log_prob)
    loss = compiled.network(torch.as_tensor(obs), None)[1].sum()
    loss.backward()
    reference = plain.network(torch.as_tensor(obs), None)[1].sum()
    reference.backward()
    torch.testing.assert_close(compiled.optimizer.grad, plain.optimizer.grad, atol=1e-5, rtol=1e-4)
