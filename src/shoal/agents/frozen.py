"""A trained policy as plain arrays: small to store, quick to load, and acting needs no torch.

One safetensors file a policy. Its metadata are two JSON objects: `policy`, the settings, and `about`, where it comes
from (`command`, `step`, and what its world has to say).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError, missing_extra
from shoal.reading import is_number, parse_json, shortened
from shoal.trees import Tree

if TYPE_CHECKING:
    from torch import nn

    from shoal.agents.agent import Agent
    from shoal.agents.networks import Towers
    from shoal.agents.ppo import PPO

Layer = tuple[np.ndarray, np.ndarray]
Json = dict[str, Any]
_ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"relu": lambda x: np.maximum(x, 0.0), "tanh": np.tanh}
_HEADS = ("tanh", "clip", "choice", "choices")
_ARRAYS = ("mean", "scale", "low", "high")
_SETTINGS = ("activation", "clip", "num_actions", "nvec", "start", "memory", "hold")
_CELL = ("cell_weight", "cell_bias", "cell_state_weight", "cell_state_bias")
_BLOCK = 8
"""Rows of one matrix product. A library of matrix products may add in another order for another number of rows, and a
lane's action must not depend on how many others ask."""
_LARGEST_WEIGHT = 1e9
"""Beyond it products overflow after a few layers, and actions are no longer numbers."""


@dataclass
class FrozenPolicy:
    """The best action of an actor: layers, then what `head` makes of the outputs.

    Heads: "tanh" (means, squashed) and "clip" (means, clipped), both onto [low, high]; "choice" (the number of the
    largest), which `table` [K, A], if there is one, turns into the action that it stands for; "choices" (one of each
    group of `nvec` outputs). Outputs beyond the actions, such as standard deviations, do not count.
    """

    layers: Sequence[Layer]
    """(weight [in, out], bias [out]) in order; `activation` after all but the last."""
    head: str
    activation: str = "relu"
    mean: np.ndarray | float = 0.0
    scale: np.ndarray | float = 1.0
    """Observations become (obs - mean) * scale first."""
    clip: float | None = None
    """Then they are limited to [-clip, clip]."""
    low: np.ndarray | float = -1.0
    high: np.ndarray | float = 1.0
    num_actions: int | None = None
    """How many of the outputs count; all of them if it is left out."""
    table: np.ndarray | None = None
    nvec: Sequence[int] = ()
    start: Sequence[int] | int = 0
    """What the first choice is called: one number, or one of each group."""
    memory: str = "none"
    """A "gru" or "lstm" cell before the last layer, or "none"."""
    cell: tuple[Layer, Layer] | None = None
    """What the cell makes of its input and of its state: weights [in, gates * S] and [S, gates * S] with their biases,
    the gates in torch's order."""
    hold: int = 1
    """For the caller: an action is meant to be kept for this many steps."""
    about: Json = field(default_factory=dict)
    """Where the policy comes from."""

    def __post_init__(self) -> None:
        self.layers = [_as_layer(layer) for layer in self.layers]
        self.cell = None if self.cell is None else (_as_layer(self.cell[0]), _as_layer(self.cell[1]))
        for name in ("low", "high", "table"):
            if getattr(self, name) is not None:
                setattr(self, name, np.asarray(getattr(self, name), np.float32))
        for name in ("mean", "scale"):  # statistics may need all their digits: a mean can be large beside its spread
            array = np.asarray(getattr(self, name))
            setattr(self, name, array if array.dtype == np.float64 and array.ndim else array.astype(np.float32))

    @property
    def num_features(self) -> int:
        """Numbers per observation."""
        return self.layers[0][0].shape[0]

    @property
    def action_width(self) -> int:
        """Numbers per action, or how many choices there are."""
        if self.table is not None:
            return self.table.shape[1]
        return self.num_actions or len(self.nvec) or self.layers[-1][0].shape[1]

    @property
    def state_size(self) -> int:
        """Numbers that it remembers between two steps of an episode; 0 without memory."""
        return 0 if self.cell is None else self.cell[1][0].shape[0] * (2 if self.memory == "lstm" else 1)

    def __call__(self, obs: np.ndarray, action_mask: np.ndarray | None = None) -> np.ndarray:
        """obs [N, D] -> actions [N, A] float32, or [N] int64 for choices without a table; [N, G] for groups of them.

        `action_mask` [N, K] is for choices: True where one is allowed. With memory, every row begins an episode.
        """
        return self.step(obs, action_mask, None)[0]

    def step(
        self, obs: np.ndarray, action_mask: np.ndarray | None, state: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """As `__call__`, from `state` [N, S] (None: the beginning of an episode), with the state after it."""
        x: np.ndarray = np.asarray(obs, np.float32)
        if x.ndim != 2 or x.shape[1] != self.num_features:
            raise ConfigError(f"This policy reads observations [lanes, {self.num_features}], not {list(x.shape)}.")
        count, x = len(x), _padded((x - self.mean) * self.scale)
        if self.clip is not None:
            x = np.clip(x, -self.clip, self.clip)
        activate = _ACTIVATIONS[self.activation]
        for weight, bias in self.layers[:-1]:
            x = activate(_times(x, weight) + bias)
        if self.cell is not None:
            x, state = self._remember(x, None if state is None else _padded(state))
            state = state[:count]
        x = (_times(x, self.layers[-1][0]) + self.layers[-1][1])[:count, : self.num_actions]
        return self._act(x, action_mask), state

    def _act(self, x: np.ndarray, action_mask: np.ndarray | None) -> np.ndarray:
        """From outputs [N, K] to actions."""
        if self.head == "choice":
            chosen = self._allowed(x, action_mask).argmax(1)
            return chosen + self.start if self.table is None else self.table[chosen]
        if self.head == "choices":
            groups = np.split(self._allowed(x, action_mask), np.cumsum(self.nvec)[:-1], axis=1)
            return np.stack([group.argmax(1) for group in groups], 1) + np.asarray(self.start)
        if self.head == "tanh":
            x = (self.high + self.low) / 2 + (self.high - self.low) / 2 * np.tanh(x)
        return np.clip(x, self.low, self.high)

    def _remember(self, x: np.ndarray, state: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """What the cell makes of x [N, in] and its state [N, S]: [N, H], and the state after it."""
        assert self.cell is not None
        (weight, bias), (state_weight, state_bias) = self.cell
        before = np.zeros((len(x), self.state_size), np.float32) if state is None else state
        if self.memory == "gru":
            reset, update, new = np.split(_times(x, weight) + bias, 3, axis=1)
            old_reset, old_update, old_new = np.split(_times(before, state_weight) + state_bias, 3, axis=1)
            share = _sigmoid(update + old_update)
            hidden = (1 - share) * np.tanh(new + _sigmoid(reset + old_reset) * old_new) + share * before
            return hidden, hidden
        hidden, kept = np.split(before, 2, axis=1)
        gates = _times(x, weight) + bias + _times(hidden, state_weight) + state_bias
        enter, forget, new, leave = np.split(gates, 4, axis=1)
        kept = _sigmoid(forget) * kept + _sigmoid(enter) * np.tanh(new)
        hidden = _sigmoid(leave) * np.tanh(kept)
        return hidden, np.concatenate([hidden, kept], axis=1)

    def _allowed(self, scores: np.ndarray, action_mask: np.ndarray | None) -> np.ndarray:
        if action_mask is None:
            return scores
        if action_mask.shape != scores.shape:
            raise ConfigError(f"action_mask must be {list(scores.shape)}, not {list(action_mask.shape)}.")
        return np.where(action_mask, scores, -np.inf)

    def check_fits(self, obs_width: int, action_width: int, who: str, remedy: str = "") -> None:
        """`ConfigError`, ending with `remedy`, unless it reads and writes as many numbers as that."""
        if (self.num_features, self.action_width) != (obs_width, action_width):
            raise ConfigError(
                f"{who} was made for observations of {self.num_features} numbers and actions of {self.action_width}, "
                f"but here they have {obs_width} and {action_width}.{' ' if remedy else ''}{remedy}"
            )

    # ------------------------------------------------------------------ storage

    def tensors(self) -> dict[str, np.ndarray]:
        """All arrays by name, those apart that are as `FrozenPolicy` assumes; `settings` has the rest."""
        plain = {name: getattr(FrozenPolicy, name) for name in _ARRAYS}  # a dataclass keeps its defaults there
        named = {name: getattr(self, name) for name in _ARRAYS if np.any(getattr(self, name) != plain[name])}
        for i, (weight, bias) in enumerate(self.layers):
            named |= {f"weight_{i}": weight, f"bias_{i}": bias}
        if self.table is not None:
            named["table"] = self.table
        if self.cell is not None:
            named |= dict(zip(_CELL, (*self.cell[0], *self.cell[1]), strict=True))
        return {name: np.ascontiguousarray(array) for name, array in named.items()}

    @property
    def settings(self) -> Json:
        """What is not an array, as far as it is not as `FrozenPolicy` assumes."""
        changed = [name for name in _SETTINGS if getattr(self, name) != getattr(FrozenPolicy, name)]
        return {name: getattr(self, name) for name in ("head", *changed)}

    @classmethod
    def from_tensors(cls, tensors: dict[str, np.ndarray], settings: Json, about: Json | None = None) -> FrozenPolicy:
        """What `tensors` and `settings` describe."""
        count = sum(name.startswith("weight_") for name in tensors)
        layers = [(tensors[f"weight_{i}"], tensors[f"bias_{i}"]) for i in range(count)]
        options = {**settings, **{name: tensors[name] for name in (*_ARRAYS, "table") if name in tensors}}
        if _CELL[0] in tensors:
            weight, bias, state_weight, state_bias = (tensors[name] for name in _CELL)
            options["cell"] = (weight, bias), (state_weight, state_bias)
        return cls(layers, **options, about=about or {})

    def save(self, path: Path, about: Json | None = None, half: bool = False) -> None:
        """One safetensors file; with `half` the layers take half the room, and lose the digits that do not fit."""
        from safetensors.numpy import save_file

        tensors = self.tensors()
        if half:
            layers = [name for name in tensors if name.startswith(("weight", "bias", "cell"))]
            tensors |= {name: tensors[name].astype(np.float16) for name in layers}
        notes = {"policy": self.settings, "about": self.about if about is None else about}
        save_file(tensors, path, {name: json.dumps(note, separators=(",", ":")) for name, note in notes.items()})

    @classmethod
    def load(cls, path: str | Path) -> FrozenPolicy:
        """Read what `save` wrote."""
        try:
            from safetensors import SafetensorError, safe_open
        except ImportError:
            raise missing_extra("safetensors", "train", "A stored policy") from None
        try:
            with safe_open(path, "numpy") as file:
                notes = file.metadata() or {}
                about = parse_json(notes["about"]) if notes["about"].startswith("{") else {"command": notes["about"]}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                policy = cls.from_tensors(tensors, parse_json(notes["policy"]), about)
            policy._check()
        except (OSError, SafetensorError, LookupError, ValueError, TypeError) as error:
            raise ConfigError(f"{path} is not a stored policy: {error}.") from error
        return policy

    def _check(self) -> None:
        """`ValueError` unless everything fits together, so that it can act."""
        if self.head not in _HEADS or self.activation not in [*_ACTIVATIONS]:
            raise ValueError(f"there is no head {shortened(self.head)} or no activation {shortened(self.activation)}")
        if not self.layers or any(weight.ndim != 2 or bias.shape != weight.shape[1:] for weight, bias in self.layers):
            raise ValueError("its layers are not weights [inputs, outputs] and biases [outputs]")
        if (self.cell is None) != (self.memory == "none") or self.memory not in ("none", "gru", "lstm"):
            raise ValueError(f"its cell does not fit memory={shortened(self.memory)}")
        if not isinstance(self.about, dict):
            raise ValueError("what is noted about it is not a table")
        sizes = [value for value in (self.hold, self.num_actions) if value is not None]
        if any(not isinstance(size, int) or isinstance(size, bool) or size < 1 for size in sizes):
            raise ValueError("hold and num_actions must be whole numbers from 1")
        if self.clip is not None and not is_number(self.clip):
            raise ValueError(f"clip={shortened(self.clip)} is not a number")
        layers = [*self.layers, *(self.cell or ())]
        if not all((np.abs(array) <= _LARGEST_WEIGHT).all() for layer in layers for array in layer):
            raise ValueError(f"some of its weights are not numbers of at most {_LARGEST_WEIGHT:g}")
        if self.table is not None and (self.table.ndim != 2 or len(self.table) < self.layers[-1][0].shape[1]):
            raise ValueError("its table of actions has fewer rows than there are choices")
        self(np.zeros((1, self.num_features), np.float32))  # a `ValueError` where shapes do not fit


def _padded(rows: np.ndarray) -> np.ndarray:
    """rows [N, D] as float32, and zeros below them up to a multiple of `_BLOCK`."""
    padded = np.zeros((-(-len(rows) // _BLOCK) * _BLOCK, rows.shape[1]), np.float32)
    padded[: len(rows)] = rows
    return padded


def _times(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """rows [N, D] times weight [D, H], N a multiple of `_BLOCK`: every block is a product of the same shape."""
    return (rows.reshape(-1, _BLOCK, rows.shape[1]) @ weight).reshape(len(rows), -1)


def stored_policies(folder: Path) -> dict[str, Path]:
    """The policies stored in `folder`, by name. A folder without any is an error: an installation lost its files."""
    paths = {path.stem: path for path in sorted(folder.glob("*.safetensors"))}
    if not paths:
        raise ConfigError(f"There are no stored policies in {folder}. Install Shoal again: its files are missing.")
    return paths


def freeze(agent: Agent, table: np.ndarray | None = None) -> FrozenPolicy:
    """The best actions of SAC, DDDQN or PPO with a standard network; `table` [K, A] if choices stand for actions."""
    from shoal.agents.dddqn import DDDQN
    from shoal.agents.networks import ActorCritic
    from shoal.agents.ppo import PPO
    from shoal.agents.recurrent import RecurrentActorCritic
    from shoal.agents.sac import SAC
    from shoal.agents.soft_policies import ContinuousPolicy

    if _looks_at_images(agent):
        raise ConfigError(f"This {type(agent).__name__} looks at images, which plain layers cannot.")
    if isinstance(agent, SAC):
        layers = _tower_layers(agent.actor)
        policy, scale = agent.policy, agent.scale.numpy()
        if isinstance(policy, ContinuousPolicy):
            size = policy.raw_shape[0]
            low, high = policy.low.numpy(), policy.high.numpy()
            return FrozenPolicy(layers, "tanh", scale=scale, num_actions=size, low=low, high=high)
        if policy.raw_shape:
            return FrozenPolicy(
                layers, "choices", scale=scale, nvec=policy.sizes, start=policy.start.flatten().tolist()
            )
        return FrozenPolicy(layers, "choice", scale=scale, table=table, start=int(policy.start))
    if isinstance(agent, DDDQN):
        layers = _tower_layers(agent.network)
        weight, bias = layers.pop()
        # the value is the same for all actions, so the best one follows from the advantages alone
        layers.append((weight[:, 1:], bias[1:]))
        return FrozenPolicy(layers, "choice", scale=agent.scale.numpy(), table=table, start=agent.start)
    if isinstance(agent, PPO) and type(agent.network) in (ActorCritic, RecurrentActorCritic):
        return _freeze_ppo(agent, table)
    raise ConfigError(
        f"This {type(agent).__name__} has a network of its own, which cannot be frozen into plain layers."
    )


def _looks_at_images(agent: Agent) -> bool:
    """Whether there is more between observations and layers than laying numbers side by side."""
    from shoal.agents.networks import EncodedActorCritic, FlattenObs
    from shoal.agents.recurrent import RecurrentActorCritic

    network, encoder = getattr(agent, "network", None), getattr(agent, "encoder", None)
    if encoder is not None or isinstance(network, EncodedActorCritic):
        return True
    if isinstance(network, RecurrentActorCritic) and network.encodes_images:
        return True
    flatten = getattr(network, "flatten", None)
    return isinstance(flatten, FlattenObs) and any(image is not None for _, _, image in flatten.parts)


def _freeze_ppo(agent: PPO, table: np.ndarray | None) -> FrozenPolicy:
    from shoal.agents.networks import CategoricalHead, GaussianHead, MultiCategoricalHead, SquashedGaussianHead

    network, head = agent.network, agent.head
    options: Json = {"activation": agent.config.activation, **_normalisation(agent)}
    encoder = network.actor if agent.config.memory == "none" else network.encoder
    layers = [_linear_layer(layer) for layer in [*list(encoder)[::2], network.policy.linear]]
    if agent.config.memory != "none":
        options |= {"memory": agent.config.memory, "cell": _cell_layers(network.cell)}
    if isinstance(head, GaussianHead):
        kind = "tanh" if isinstance(head, SquashedGaussianHead) else "clip"
        return FrozenPolicy(layers, kind, low=head.low.numpy(), high=head.high.numpy(), **options)
    if isinstance(head, MultiCategoricalHead):
        return FrozenPolicy(layers, "choices", nvec=head.sizes, start=head.start.flatten().tolist(), **options)
    assert isinstance(head, CategoricalHead)
    return FrozenPolicy(layers, "choice", table=table, start=head.start, **options)


def _normalisation(agent: PPO) -> Json:
    """The statistics of the observations, over the flattened row."""
    normaliser = agent.obs_normaliser
    if normaliser is None:
        return {}
    parts = _flat_moments(agent.network.flatten.space, normaliser.moments)
    mean, scale = (np.concatenate(column) for column in zip(*parts, strict=True))
    return {"mean": mean, "scale": scale, "clip": normaliser.clip}


def _flat_moments(space: gym.Space, moments: Tree) -> list[tuple[np.ndarray, np.ndarray]]:
    """Mean and scale of every leaf of `space` as it stands in the flattened row; what is not normalised stays."""
    if isinstance(space, gym.spaces.Dict):
        return [part for key, sub in space.spaces.items() for part in _flat_moments(sub, moments[key])]
    if isinstance(space, gym.spaces.Tuple):
        return [part for sub, of in zip(space.spaces, moments, strict=True) for part in _flat_moments(sub, of)]
    if moments is None:
        width = gym.spaces.flatdim(space)
        return [(np.zeros(width), np.ones(width))]
    return [(moments.mean.flatten().cpu().numpy(), (moments.variance + 1e-8).rsqrt().flatten().cpu().numpy())]


def _tower_layers(towers: Towers) -> list[Layer]:
    pairs = zip(towers.weights, towers.biases, strict=True)
    return [(w.detach()[0].cpu().numpy().copy(), b.detach()[0, 0].cpu().numpy().copy()) for w, b in pairs]


def _linear_layer(layer: nn.Linear) -> Layer:
    return layer.weight.detach().cpu().numpy().T.copy(), layer.bias.detach().cpu().numpy().copy()


def _cell_layers(cell: nn.GRUCell | nn.LSTMCell) -> tuple[Layer, Layer]:
    weight, state_weight, bias, state_bias = (tensor.detach().cpu().numpy().copy() for tensor in cell.parameters())
    return (weight.T, bias), (state_weight.T, state_bias)


def _as_layer(layer: Layer) -> Layer:
    return np.asarray(layer[0], np.float32), np.asarray(layer[1], np.float32)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * x))  # which cannot overflow
