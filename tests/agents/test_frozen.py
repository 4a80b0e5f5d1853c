"""Policies as plain arrays: what is stored comes back, masks are obeyed, and other shapes are refused in a sentence."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from shoal.agents.eyes import Eye
from shoal.agents.frozen import FrozenPolicy, stored_policies
from shoal.errors import ConfigError


def policy(seed=0, head="choice", **options):
    rng = np.random.default_rng(seed)
    sizes = ((5, 6), (6, 4))
    layers = [(rng.normal(size=size).astype(np.float32), rng.normal(size=size[1]).astype(np.float32)) for size in sizes]
    return FrozenPolicy(layers, head, **options)


def observations(count=7, width=5):
    return np.random.default_rng(1).normal(size=(count, width)).astype(np.float32)


@pytest.mark.parametrize(
    "made",
    [
        policy(),
        policy(activation="tanh", mean=np.arange(5), scale=0.5, clip=2.0, table=np.eye(4), hold=3),
        policy(head="tanh", num_actions=2, low=np.array([-2, -1]), high=np.array([2, 3])),
        policy(head="clip", high=0.5),
    ],
)
def test_what_is_stored_comes_back(made, tmp_path):
    about = {"command": "shoal train somewhere", "step": 12, "scores": {"30": -2.5}}
    made.save(tmp_path / "a.safetensors", about)
    again = FrozenPolicy.load(tmp_path / "a.safetensors")
    assert again.about == about
    assert (again.settings, again.action_width) == (made.settings, made.action_width)
    np.testing.assert_array_equal(again(observations()), made(observations()))


def test_half_precision_takes_half_the_room_and_is_read_as_float32(tmp_path):
    made = FrozenPolicy([(np.random.default_rng(0).normal(size=(64, 64)), np.zeros(64))], "choice")
    made.save(tmp_path / "full.safetensors")
    made.save(tmp_path / "half.safetensors", half=True)
    full, half = ((tmp_path / f"{name}.safetensors").stat().st_size for name in ("full", "half"))
    assert half < 0.6 * full
    (weight, bias), (rounded, _) = made.layers[0], FrozenPolicy.load(tmp_path / "half.safetensors").layers[0]
    assert rounded.dtype == bias.dtype == np.float32
    np.testing.assert_array_equal(rounded, weight.astype(np.float16).astype(np.float32))


def test_forbidden_choices_are_not_made():
    made = policy()
    free = made(observations())
    mask = np.ones((7, 4), bool)
    mask[np.arange(7), free] = False
    masked = made(observations(), mask)
    assert (masked != free).all()
    np.testing.assert_array_equal(made(observations(), ~mask), free)


def test_other_shapes_are_refused_in_one_sentence():
    with pytest.raises(ConfigError, match=r"reads observations \[lanes, 5\], not \[7, 4\]"):
        policy()(observations(width=4))
    with pytest.raises(ConfigError, match=r"reads observations \[lanes, 5\], not \[5\]"):
        policy()(observations()[0])
    with pytest.raises(ConfigError, match=r"action_mask must be \[7, 4\], not \[7, 3\]"):
        policy()(observations(), np.ones((7, 3), bool))
    with pytest.raises(
        ConfigError, match=r"It was made for observations of 5 numbers and actions of 4, but .* 6 and 4"
    ):
        policy().check_fits(6, 4, "It")
    policy().check_fits(5, 4, "It")


def test_files_that_are_something_else_are_told(tmp_path):
    (tmp_path / "text.safetensors").write_text("not a policy")
    with pytest.raises(ConfigError, match=r"text\.safetensors is not a stored policy"):
        FrozenPolicy.load(tmp_path / "text.safetensors")


def test_a_folder_without_policies_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="no stored policies in"):
        stored_policies(tmp_path)
    policy().save(tmp_path / "a.safetensors")
    assert stored_policies(tmp_path) == {"a": tmp_path / "a.safetensors"}


@pytest.mark.parametrize("outputs", [1, 4])
def test_a_row_is_the_same_alone_and_among_others(outputs):
    """Who else is asked must not change what a lane's opponent does, not even by rounding."""
    rng = np.random.default_rng(0)
    sizes = (18, 256, 256, outputs)
    layers = [(rng.normal(size=(a, b)) / 10, rng.normal(size=b)) for a, b in pairwise(sizes)]
    policy, obs = FrozenPolicy(layers, "tanh"), rng.normal(size=(33, 18)).astype(np.float32)
    together = policy(obs)
    for count in (1, 2, 3, 7, 9):
        np.testing.assert_array_equal(policy(obs[5 : 5 + count]), together[5 : 5 + count])


def seeing(**changes):
    """A policy over an image of 5 x 6 pixels with two channels, and three numbers."""
    rng = np.random.default_rng(0)
    convs = [(rng.normal(size=(3, 3, 2, 4)), rng.normal(size=4)), (rng.normal(size=(3, 3, 4, 4)), rng.normal(size=4))]
    steps = [["conv", 1, 1], ["pool"], ["keep"], ["relu"], ["conv", 1, 1], ["add"]]
    last = rng.normal(size=(3 * 3 * 4, 7)), rng.normal(size=7)
    eye = Eye(**{"start": 1, "shape": [5, 6, 2], "order": [2, 0, 1], "low": 0.5, "steps": steps, **changes},
              convs=convs, last=last)  # fmt: skip
    return FrozenPolicy([(rng.normal(size=(7 + 3, 4)), rng.normal(size=4))], "choice", eyes=[eye])


def test_images_are_stored_and_seen_alike_alone_and_among_others(tmp_path):
    made = seeing()
    assert made.num_features == 5 * 6 * 2 + 3
    made.save(tmp_path / "a.safetensors")
    again, obs = FrozenPolicy.load(tmp_path / "a.safetensors"), observations(40, made.num_features)
    together = made(obs)
    assert len({*together.tolist()}) > 1
    np.testing.assert_array_equal(again(obs), together)
    for row in (0, 3, 39):
        np.testing.assert_array_equal(made(obs[row : row + 1]), together[row : row + 1])
    assert made(obs[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"start": -1}, "begins at no column"),
        ({"shape": [5, 6]}, "not the axes"),
        ({"shape": [5, 0, 2]}, "not the shape of an image"),
        ({"order": [0, 0, 1]}, "not the axes of an image"),
        ({"low": "black"}, "lowest pixel is not a number"),
        ({"steps": [["blur"]]}, r"there is no step \['blur'\]"),
        ({"steps": [["conv", 0, 1], ["conv", 1, 1]]}, "does not fit what comes before"),
        ({"steps": [["conv", 1, 1]]}, "not have as many convolutions as steps"),
        ({"steps": [["conv", 1, 1], ["conv", 1, 1], ["add"]]}, "another shape"),
        ({"steps": [["conv", 1, 1], ["conv", 1, 1]]}, "last layer does not fit"),
    ],
)
def test_images_that_do_not_fit_are_told(changes, sentence, tmp_path):
    seeing(**changes).save(tmp_path / "a.safetensors")
    with pytest.raises(ConfigError, match=f"is not a stored policy: .*{sentence}"):
        FrozenPolicy.load(tmp_path / "a.safetensors")
