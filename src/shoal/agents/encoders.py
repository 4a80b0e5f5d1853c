"""From observations to features: images through convolutions, numbers as they are, Dicts of both side by side.

`make_encoder` is what the agents call. An encoder is a module with `size`, the number of features F; it maps
observations [N, *obs] in their own types (bytes of an image stay bytes up to here) to [N, F] float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import gymnasium as gym
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from shoal.agents.checks import wrong_obs
from shoal.agents.config import OffPolicyConfig, is_own
from shoal.agents.images import Image, has_image, image_of
from shoal.agents.networks import Encoder, FlattenObs, Head, PolicyOutput, linear, mlp, own_weights
from shoal.errors import ConfigError
from shoal.trees import Tree, at_path, map_tree
from shoal.vector.spaces import empty_batch, leaf_spaces

GAIN = math.sqrt(2)
NATURE_SIDE = 36  # the smallest side that is left with a pixel after the strides of the Nature network


def network_for(space: gym.Space, name: str) -> str:
    """What "auto" means for `space`: "mlp" without images, "nature" for those of at least 36 x 36 pixels, "small" for
    smaller ones such as boards. Other names mean themselves."""
    if is_own(name):
        raise ConfigError(f"An agent does not import {name!r} itself. Pass the network: network=Net(...).")
    images = [image for _, part in leaf_spaces(space) if (image := image_of(part)) is not None]
    if not images:
        if name not in ("auto", "mlp"):
            raise ConfigError(f"network={name!r} is for images, but observations are {space}. Use 'auto' or 'mlp'.")
        return "mlp"
    side = min(min(image.height, image.width) for image in images)
    if name == "nature" and side < NATURE_SIDE:
        raise ConfigError(
            f"network='nature' needs images of at least {NATURE_SIDE} x {NATURE_SIDE} pixels, but the smallest side "
            f"here is {side}. Use 'small' or 'impala'."
        )
    if name != "auto":
        return name
    return "nature" if side >= NATURE_SIDE else "small"


def make_encoder(space: gym.Space, name: str, hidden: Sequence[int], activation: str) -> MixedEncoder | None:
    """The convolutions that `name` stands for, or None where observations are flattened instead.

    `hidden` are the layers through which numbers beside an image pass.
    """
    name = network_for(space, name)
    return None if name == "mlp" else MixedEncoder(space, BODIES[name], hidden, activation)


def encoder_for(
    space: gym.Space,
    network: nn.Module | None,
    config: OffPolicyConfig,
    generator: torch.Generator,
    device: torch.device,
) -> Encoder | None:
    """What SAC and DDDQN put before their layers: the user's network, or one for images; None for numbers alone."""
    if network is None and not has_image(space):
        network_for(space, config.network)
        return None
    if config.scale_obs:
        raise ConfigError("scale_obs is for observations that are numbers only, read by a standard network.")
    if network is not None:
        return UserEncoder(network, space).to(device)
    with own_weights(generator):
        return (make_encoder(space, config.network, (), "relu") or FlattenObs(space)).to(device)


# ---------------------------------------------------------------------- images


class ImageEncoder(Encoder):
    """Convolutions over one image, and a layer of `size` features behind them.

    Activations lie pixel by pixel in memory (channels last), which is what the CPU's convolutions like best, and bytes
    become floats in the same copy. They are scaled by scaling the first layer's few weights instead. The weights of the
    last layer lie pixel by pixel too, so that it is a convolution over all that is left: what multiplies matrices for
    those knows vectors of AVX-512 on every processor that has them, what multiplies them for linear layers does not.
    """

    def __init__(self, image: Image, body: Callable[[int], Body]) -> None:
        super().__init__()
        made = body(image.channels)
        self.image, self.size = image, made.size
        self.first, self.rest = made.first, made.rest
        with torch.no_grad():
            seen = self._convolve(torch.zeros(1, image.channels, image.height, image.width))
        self.grid = seen.shape[2], seen.shape[3], seen.shape[1]
        self.dense = linear(seen.numel(), self.size, GAIN)

    def _convolve(self, planes: Tensor) -> Tensor:
        weight, bias, first = self.first.weight * self.image.scale, self.first.bias, self.first
        if self.image.low:
            planes = planes - self.image.low
        return self.rest(F.conv2d(planes, weight, bias, first.stride, first.padding))

    def forward(self, pixels: Tensor) -> Tensor:
        weight = self.dense.weight.view(self.size, *self.grid).permute(0, 3, 1, 2)
        features = F.conv2d(self._convolve(self.image.planes(pixels)), weight, self.dense.bias)
        return torch.relu_(features.flatten(1))


class Body(NamedTuple):
    """The convolutions of a network: the first, whose weights are scaled with the pixels, then all others."""

    first: nn.Conv2d
    rest: nn.Module
    size: int
    """Features behind them."""


def conv(inputs: int, outputs: int, side: int, stride: int = 1, padding: int = 0) -> nn.Conv2d:
    """A convolution with orthogonal weights for ReLU and zero bias."""
    layer = nn.Conv2d(inputs, outputs, side, stride, padding)
    nn.init.orthogonal_(layer.weight, GAIN)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer


def relu() -> nn.ReLU:
    """In the place of what it is given, as convolutions do not need their outputs to learn."""
    return nn.ReLU(inplace=True)


def nature(channels: int) -> Body:
    """Mnih et al. 2015: three convolutions with strides 4, 2 and 1, then 512 features."""
    rest = nn.Sequential(relu(), conv(32, 64, 4, 2), relu(), conv(64, 64, 3), relu())
    return Body(conv(channels, 32, 8, 4), rest, 512)


def small(channels: int) -> Body:
    """For boards such as 10 x 10 (Young & Tian 2019): one convolution of 3 x 3, then 128 features."""
    return Body(conv(channels, 16, 3), relu(), 128)


def impala(channels: int) -> Body:
    """Espeholt et al. 2018: three stages of 16, 32 and 32 channels with two residual blocks each, then 256 features."""
    stages: list[nn.Module] = [Stage(16, None)]
    stages += [Stage(outputs, conv(inputs, outputs, 3, padding=1)) for inputs, outputs in ((16, 32), (32, 32))]
    return Body(conv(channels, 16, 3, padding=1), nn.Sequential(*stages, nn.ReLU()), 256)


class Stage(nn.Module):
    """A convolution (unless it was made before), pooling to half the size, and two residual blocks."""

    def __init__(self, channels: int, entrance: nn.Module | None) -> None:
        super().__init__()
        self.entrance = entrance or nn.Identity()
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.ReLU(), conv(channels, channels, 3, padding=1), nn.ReLU(), conv(channels, channels, 3, padding=1)
            )
            for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(self.entrance(x), 3, stride=2, padding=1)
        for block in self.blocks:
            x = x + block(x)
        return x


BODIES: dict[str, Callable[[int], Body]] = {"nature": nature, "impala": impala, "small": small}


# ---------------------------------------------------------------------- whole observations


class MixedEncoder(Encoder):
    """Every image of an observation through convolutions of its own, all numbers together through `hidden` layers."""

    def __init__(self, space: gym.Space, body: Callable[[int], Body], hidden: Sequence[int], activation: str) -> None:
        super().__init__()
        self.parts = [(_module_name(path), path, part) for path, part in leaf_spaces(space)]
        self.images, self.numbers = nn.ModuleDict(), nn.ModuleDict()
        self.size = width = 0
        for key, _, part in self.parts:
            image = image_of(part)
            if image is not None:
                encoder = self.images[key] = ImageEncoder(image, body)
                self.size += encoder.size
            else:
                flatten = self.numbers[key] = FlattenObs(part)
                width += flatten.size
        self.mlp = mlp([width, *hidden], activation) if width else None
        if width:
            self.size += hidden[-1] if hidden else width

    def forward(self, obs: Tree) -> Tensor:
        features: list[Tensor] = []
        numbers: list[Tensor] = []
        for key, path, part in self.parts:
            leaf = at_path(obs, path)
            if leaf.shape[1:] != part.shape:
                raise wrong_obs(leaf.shape, part.shape or ())
            if key in self.images:
                features.append(self.images[key](leaf))
            else:
                numbers.append(self.numbers[key](leaf))
        if self.mlp is not None:
            features.append(self.mlp(torch.cat(numbers, -1)))
        return features[0] if len(features) == 1 else torch.cat(features, -1)


def _module_name(path: tuple[str | int, ...]) -> str:
    return "_".join(map(str, ("obs", *path))).replace(".", "_")  # a dot would begin a module inside it


class UserEncoder(Encoder):
    """A network of the user's that makes features: obs [N, *obs] in their own types -> [N, F] float32."""

    def __init__(self, network: object, space: gym.Space) -> None:
        super().__init__()
        if not isinstance(network, nn.Module):
            what = f"the class {network.__name__}" if isinstance(network, type) else f"a {type(network).__name__}"
            raise ConfigError(f"network must be an nn.Module that turns observations into features, not {what}.")
        self.network = network
        device = next((p.device for p in network.parameters()), torch.device("cpu"))
        zeros = map_tree(lambda leaf: torch.from_numpy(leaf).to(device), empty_batch(space, 2))
        try:
            with torch.no_grad():
                features = network(zeros)
        except Exception as error:
            raise ConfigError(
                f"{type(network).__name__} cannot read observations [N, *obs] of {space}: {type(error).__name__}: "
                f"{error}"
            ) from error
        if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != 2:
            got = list(features.shape) if isinstance(features, Tensor) else f"a {type(features).__name__}"
            raise ConfigError(
                f"{type(network).__name__} must return features [N, F], but for 2 observations it returned {got}. SAC "
                "and DDDQN put their own layers behind it; a network with policy and value is for PPO."
            )
        self.size = features.shape[1]

    def forward(self, obs: Tree) -> Tensor:
        return self.network(obs).float()


# ---------------------------------------------------------------------- augmentation


def shifted_images(obs: Tree, flatten: FlattenObs, pixels_away: int, generator: torch.Generator) -> Tree:
    """Observations [N, *obs] whose images are moved at random; `flatten` knows which leaves these are."""
    if not pixels_away:
        return obs
    images = iter([image for _, _, image in flatten.parts])

    def move(leaf: Tensor) -> Tensor:
        image = next(images)
        return leaf if image is None else shifted(leaf, image, pixels_away, generator)

    return map_tree(move, obs)


def shifted(pixels: Tensor, image: Image, pixels_away: int, generator: torch.Generator) -> Tensor:
    """Images [N, *obs] moved by up to `pixels_away` in both directions, each its own way, edges repeated.

    Random shifts, Yarats et al. 2021. The type stays.
    """
    count, sides = len(pixels), (image.height, image.width)
    offsets = torch.randint(-pixels_away, pixels_away + 1, (2, count), generator=generator).to(pixels.device)
    rows, columns = (
        (torch.arange(side, device=pixels.device) + offset[:, None]).clamp(0, side - 1)
        for side, offset in zip(sides, offsets, strict=True)
    )
    ordered = pixels.permute(0, *(1 + axis for axis in image.order))
    planes = ordered.reshape(count, -1, *sides)
    lanes = torch.arange(count, device=pixels.device)[:, None, None]
    moved = planes.movedim(1, -1)[lanes, rows[:, :, None], columns[:, None, :]].movedim(-1, 1)
    back = sorted(range(len(image.order)), key=image.order.__getitem__)
    return moved.reshape(ordered.shape).permute(0, *(1 + axis for axis in back))


class EncodedActorCritic(nn.Module):
    """Policy and value as linear layers over the same features. The standard network for images."""

    state_size = 0

    def __init__(self, encoder: Encoder, head: Head) -> None:
        super().__init__()
        self.encoder = encoder
        self.policy = PolicyOutput(encoder.size, head)
        self.value = linear(encoder.size, 1, gain=1.0)

    def forward(self, obs: Tree, state: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor | None]:
        features = self.encoder(obs)
        return self.policy(features), self.value(features).squeeze(-1), state


def compile_network(network: nn.Module, device: torch.device) -> None:
    """Let `torch.compile` make machine code of a network in place, when it is first used; on a GPU with CUDA graphs."""
    network.compile(mode="reduce-overhead" if device.type == "cuda" else None)
