"""From an agent's networks to the plain arrays of a `FrozenPolicy`. `frozen.freeze` calls this."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from torch import Tensor, nn

from shoal.agents.blocks import Layer
from shoal.agents.dddqn import DDDQN
from shoal.agents.encoders import EncodedActorCritic, ImageEncoder, MixedEncoder, Stage
from shoal.agents.eyes import Eye
from shoal.agents.frozen import FrozenPolicy
from shoal.agents.networks import (
    ActorCritic,
    FlattenObs,
    GaussianHead,
    Head,
    MultiCategoricalHead,
    SquashedGaussianHead,
)
from shoal.agents.normalise import ObsNormaliser
from shoal.agents.offpolicy import OffPolicyAgent
from shoal.agents.ppo import PPO
from shoal.agents.recurrent import RecurrentActorCritic
from shoal.agents.sac import SAC
from shoal.agents.soft_policies import ContinuousPolicy
from shoal.agents.towers import Towers
from shoal.errors import ConfigError
from shoal.trees import leaves

Options = dict[str, Any]
"""Arguments of `FrozenPolicy`."""


def frozen_ppo(agent: PPO, table: np.ndarray | None) -> FrozenPolicy:
    """The likeliest actions of PPO with a standard network."""
    network = agent.network
    if type(network) not in (ActorCritic, EncodedActorCritic, RecurrentActorCritic):
        raise _own_network(agent)
    options: Options = {"activation": agent.config.activation, "layers": [_linear(network.policy.linear)]}
    if isinstance(network, RecurrentActorCritic):
        options |= {"memory": agent.config.memory, "cell": _cell(network.cell)}
    first = network.actor if isinstance(network, ActorCritic) else network.encoder
    if isinstance(first, MixedEncoder):
        spaces = [part for _, _, part in first.parts]
        options |= _looking(first)
    else:
        spaces = [part for _, part, _ in network.flatten.parts]
        options["layers"] = [*map(_linear, list(first)[::2]), *options["layers"]]
        _fold_scaling(network.flatten, options)
    if agent.obs_normaliser is not None:
        options |= _normalisation(agent.obs_normaliser, spaces)
    return FrozenPolicy(**options, **_ppo_head(agent.head, table))


def frozen_towers(agent: OffPolicyAgent, table: np.ndarray | None) -> FrozenPolicy:
    """The best actions of SAC or DDDQN."""
    assert isinstance(agent, SAC | DDDQN)
    options: Options = {"layers": _towers(agent.actor if isinstance(agent, SAC) else agent.network)}
    if isinstance(agent, DDDQN):
        weight, bias = options["layers"].pop()
        # the value is the same for all actions, so the best one follows from the advantages alone
        options["layers"].append((weight[:, 1:], bias[1:]))
    if agent.encoder is None or isinstance(agent.encoder, FlattenObs):
        _fold_scaling(agent.flatten, options)
        options["scale"] = agent.scale.cpu().numpy()
    elif isinstance(agent.encoder, MixedEncoder):
        options |= _looking(agent.encoder)
    else:
        raise _own_network(agent)
    policy = agent if isinstance(agent, DDDQN) else agent.policy
    if not isinstance(policy, ContinuousPolicy):
        if not isinstance(policy, DDDQN) and policy.raw_shape:
            return FrozenPolicy(head="choices", nvec=policy.sizes, start=policy.start.flatten().tolist(), **options)
        return FrozenPolicy(head="choice", table=table, start=int(policy.start), **options)
    low, high = policy.low.cpu().numpy(), policy.high.cpu().numpy()
    return FrozenPolicy(head="tanh", num_actions=policy.raw_shape[0], low=low, high=high, **options)


def _own_network(agent: PPO | OffPolicyAgent) -> ConfigError:
    return ConfigError(f"This {type(agent).__name__} has a network of its own, which plain arrays cannot stand for.")


def _ppo_head(head: Head, table: np.ndarray | None) -> Options:
    if isinstance(head, GaussianHead):
        kind = "tanh" if isinstance(head, SquashedGaussianHead) else "clip"
        return {"head": kind, "low": head.low.numpy(), "high": head.high.numpy()}
    if isinstance(head, MultiCategoricalHead):
        return {"head": "choices", "nvec": head.sizes, "start": head.start.flatten().tolist()}
    return {"head": "choice", "table": table, "start": head.start}  # type: ignore[attr-defined]


# ---------------------------------------------------------------------- what happens to observations first


def _normalisation(normaliser: ObsNormaliser, spaces: Sequence[gym.Space]) -> Options:
    """The statistics of the observations over the flattened row, whose parts are `spaces`."""
    columns: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for space, moments in zip(spaces, leaves(normaliser.moments), strict=True):
        width = np.ones(gym.spaces.flatdim(space))
        if moments is None:
            columns.append((0.0 * width, width, np.inf * width))
        else:
            scale = (moments.variance + 1e-8).rsqrt()
            columns.append((_array(moments.mean).ravel(), _array(scale).ravel(), normaliser.clip * width))
    mean, scale, clip = (np.concatenate(column) for column in zip(*columns, strict=True))
    same = (clip == normaliser.clip).all()
    return {"mean": mean, "scale": scale, "clip": normaliser.clip if same else clip.astype(np.float32)}


def _fold_scaling(flatten: FlattenObs, options: Options) -> None:
    """Images that are laid flat are scaled to 0..1 after everything else, which the first layer can do as well."""
    if all(image is None for _, _, image in flatten.parts):
        return
    columns = [
        np.full((gym.spaces.flatdim(part), 2), (0.0, 1.0) if image is None else (image.low, image.scale))
        for _, part, image in flatten.parts
    ]
    low, scale = np.concatenate(columns).T
    first = options["cell"] if "cell" in options and len(options["layers"]) == 1 else options["layers"]
    weight, bias = first[0]
    scaled = weight * scale[:, None]
    folded = scaled, bias - low @ scaled
    options["cell" if first is options.get("cell") else "layers"] = type(first)((folded, *first[1:]))


# ---------------------------------------------------------------------- layers


def _looking(encoder: MixedEncoder) -> Options:
    """What looks at the images of an observation, and the layers for the numbers beside them."""
    eyes, start = [], 0
    for key, _, part in encoder.parts:
        if key in encoder.images:
            eyes.append(_eye(encoder.images[key], part, start))  # type: ignore[arg-type]
        start += gym.spaces.flatdim(part)
    hidden = [] if encoder.mlp is None else list(encoder.mlp)[::2]
    return {"eyes": eyes, "numbers": [_linear(layer) for layer in hidden]}  # type: ignore[arg-type]


def _eye(encoder: ImageEncoder, space: gym.Space, start: int) -> Eye:
    image = encoder.image
    convs: list[Layer] = []
    steps = [*_steps(encoder.first, convs), *_steps(encoder.rest, convs)]
    convs[0] = convs[0][0] * np.float32(image.scale), convs[0][1]
    assert space.shape is not None
    return Eye(start, [*space.shape], [*image.order], image.low, steps, convs, _linear(encoder.dense))


def _steps(module: nn.Module, convs: list[Layer]) -> list[list[str | int]]:
    """The steps of an `Eye` that do what `module` does; their convolutions are added to `convs`."""
    if isinstance(module, nn.Conv2d):
        assert module.bias is not None
        convs.append((_array(module.weight).transpose(2, 3, 1, 0), _array(module.bias)))
        return [["conv", module.stride[0], int(module.padding[0])]]
    if isinstance(module, nn.ReLU):
        return [["relu"]]
    if isinstance(module, nn.Sequential):
        return [step for part in module for step in _steps(part, convs)]
    assert isinstance(module, Stage)
    steps = [] if isinstance(module.entrance, nn.Identity) else _steps(module.entrance, convs)
    steps.append(["pool"])
    for block in module.blocks:
        steps += [["keep"], *_steps(block, convs), ["add"]]
    return steps


def _towers(towers: Towers) -> list[Layer]:
    return [(_array(w)[0], _array(b)[0, 0]) for w, b in zip(towers.weights, towers.biases, strict=True)]


def _linear(layer: nn.Linear) -> Layer:
    return _array(layer.weight).T, _array(layer.bias)


def _cell(cell: nn.GRUCell | nn.LSTMCell) -> tuple[Layer, Layer]:
    weight, state_weight, bias, state_bias = map(_array, cell.parameters())
    return (weight.T, bias), (state_weight.T, state_bias)


def _array(tensor: Tensor) -> np.ndarray:
    """A copy, so that what is frozen stays as it is while the agent learns."""
    return tensor.detach().cpu().numpy().copy()
