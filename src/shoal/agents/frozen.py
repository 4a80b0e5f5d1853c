"""A trained policy as plain arrays: small to store, quick to load, and acting needs no torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import ConfigError

Layer = tuple[np.ndarray, np.ndarray]
_ACTIVATIONS: dict[str, Any] = {"relu": lambda x: np.maximum(x, 0.0), "tanh": np.tanh}


class FrozenPolicy:
    """The best action of an actor: layers, then what `head` makes of the outputs.

    Heads: "tanh" (means, squashed) and "clip" (means, clipped), both onto [low, high]; "choice" (the number of the
    largest), which `table` [K, A], if there is one, turns into the action that it stands for. Outputs beyond the
    actions, such as standard deviations, do not count.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        head: str,
        *,
        activation: str = "relu",
        mean: np.ndarray | float = 0.0,
        scale: np.ndarray | float = 1.0,
        clip: float = np.inf,
        low: np.ndarray | float = -1.0,
        high: np.ndarray | float = 1.0,
        num_actions: int | None = None,
        table: np.ndarray | None = None,
        hold: int = 1,
    ) -> None:
        """Weights are [in, out]. Observations become (obs - mean) * scale, clipped, first.

        `hold` is for who asks: an action is meant to be kept for so many steps.
        """
        self.layers = [(np.asarray(w, np.float32), np.asarray(b, np.float32)) for w, b in layers]
        self.head, self.activation, self.clip = head, activation, float(clip)
        self.num_features = self.layers[0][0].shape[0]
        self.num_actions = num_actions or self.layers[-1][0].shape[1]
        self.mean, self.scale = (np.broadcast_to(np.float32(v), self.num_features) for v in (mean, scale))
        self.low, self.high = np.float32(low), np.float32(high)
        self.table = None if table is None else np.asarray(table, np.float32)
        self.hold = hold

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        """obs [N, D] -> actions [N, A] float32, or [N] int64 for choices without a table."""
        x = (np.asarray(obs, np.float32) - self.mean) * self.scale
        if np.isfinite(self.clip):
            x = np.clip(x, -self.clip, self.clip)
        activate = _ACTIVATIONS[self.activation]
        for weight, bias in self.layers[:-1]:
            x = activate(x @ weight + bias)
        x = (x @ self.layers[-1][0] + self.layers[-1][1])[:, : self.num_actions]
        if self.head == "choice":
            chosen = x.argmax(1)
            return chosen if self.table is None else self.table[chosen]
        if self.head == "tanh":
            x = (self.high + self.low) / 2 + (self.high - self.low) / 2 * np.tanh(x)
        return np.clip(x, self.low, self.high)

    def check_fits(self, obs_width: int, action_width: int, who: str) -> None:
        """`ConfigError` unless it reads and writes as many numbers as that."""
        width = self.num_actions if self.table is None else self.table.shape[1]
        if (self.num_features, width) != (obs_width, action_width):
            raise ConfigError(
                f"{who} was made for observations of {self.num_features} numbers and actions of {width}, but here they "
                f"have {obs_width} and {action_width}."
            )

    # ------------------------------------------------------------------ storage

    def tensors(self) -> dict[str, np.ndarray]:
        """All arrays by name; `settings` has the rest."""
        named = {"mean": self.mean, "scale": self.scale, "low": self.low, "high": self.high}
        for i, (weight, bias) in enumerate(self.layers):
            named |= {f"weight_{i}": weight, f"bias_{i}": bias}
        if self.table is not None:
            named["table"] = self.table
        return {name: np.ascontiguousarray(array) for name, array in named.items()}

    @property
    def settings(self) -> dict[str, Any]:
        clip = self.clip if np.isfinite(self.clip) else None
        return {
            "head": self.head,
            "activation": self.activation,
            "clip": clip,
            "num_actions": self.num_actions,
            "hold": self.hold,
        }

    @classmethod
    def from_tensors(cls, tensors: dict[str, Any], settings: dict[str, Any]) -> FrozenPolicy:
        """What `tensors` and `settings` describe."""
        arrays = {name: np.asarray(value) for name, value in tensors.items()}
        count = sum(name.startswith("weight_") for name in arrays)
        layers = [(arrays[f"weight_{i}"], arrays[f"bias_{i}"]) for i in range(count)]
        clip = np.inf if settings["clip"] is None else settings["clip"]
        options: dict[str, Any] = {name: arrays[name] for name in ("mean", "scale", "low", "high")}
        options |= {"clip": clip, **{name: settings[name] for name in ("activation", "num_actions", "hold")}}
        return cls(layers, settings["head"], table=arrays.get("table"), **options)

    def save(self, path: Path, about: str = "") -> None:
        """One safetensors file; `about` says where the policy comes from."""
        from safetensors.numpy import save_file

        save_file(self.tensors(), path, {"policy": json.dumps(self.settings), "about": about})

    @classmethod
    def load(cls, path: str | Path) -> FrozenPolicy:
        """Read what `save` wrote."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, "numpy") as file:
                settings = json.loads((file.metadata() or {})["policy"])
                return cls.from_tensors({name: file.get_tensor(name) for name in list(file.keys())}, settings)
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise ConfigError(f"{path} is no stored policy: {error}.") from error


def freeze(agent: Any, table: np.ndarray | None = None) -> FrozenPolicy:
    """The best actions of SAC, DDDQN or PPO with a standard network; `table` [K, A] if choices stand for actions."""
    from shoal.agents.dddqn import DDDQN
    from shoal.agents.networks import ActorCritic
    from shoal.agents.ppo import PPO
    from shoal.agents.sac import SAC
    from shoal.agents.soft_policies import ContinuousPolicy

    if isinstance(agent, SAC):
        layers = _tower_layers(agent.actor)
        policy = agent.policy
        if isinstance(policy, ContinuousPolicy):
            size = policy.raw_shape[0]
            low, high = policy.low.numpy(), policy.high.numpy()
            return FrozenPolicy(layers, "tanh", scale=agent.scale.numpy(), num_actions=size, low=low, high=high)
        return FrozenPolicy(layers, "choice", scale=agent.scale.numpy(), table=table)
    if isinstance(agent, DDDQN):
        layers = _tower_layers(agent.network)
        weight, bias = layers.pop()
        # the value is the same for all actions, so the best one follows from the advantages alone
        return FrozenPolicy([*layers, (weight[:, 1:], bias[1:])], "choice", scale=agent.scale.numpy(), table=table)
    if isinstance(agent, PPO) and type(agent.network) is ActorCritic:
        return _freeze_ppo(agent, table)
    raise ConfigError(f"A {type(agent).__name__} with a network of its own cannot be frozen into plain layers.")


def _freeze_ppo(agent: Any, table: np.ndarray | None) -> FrozenPolicy:
    from shoal.agents.distributions import GaussianHead, SquashedGaussianHead

    network, head = agent.network, agent.head
    options: dict[str, Any] = {}
    layers = [_linear_layer(layer) for layer in [*list(network.actor)[::2], network.policy.linear]]
    if agent.obs_normaliser is not None:
        (moments,) = agent.obs_normaliser.leaves.values()
        scale = (moments.variance + 1e-8).rsqrt().cpu().numpy()
        options = {"mean": moments.mean.cpu().numpy(), "scale": scale, "clip": agent.obs_normaliser.clip}
    if isinstance(head, GaussianHead):
        kind = "tanh" if isinstance(head, SquashedGaussianHead) else "clip"
        options |= {"low": head.low.numpy(), "high": head.high.numpy()}
        return FrozenPolicy(layers, kind, activation=network.activation, **options)
    return FrozenPolicy(layers, "choice", activation=network.activation, table=table, **options)


def _tower_layers(towers: Any) -> list[Layer]:
    pairs = zip(towers.weights, towers.biases, strict=True)
    return [(w.detach()[0].cpu().numpy().copy(), b.detach()[0, 0].cpu().numpy().copy()) for w, b in pairs]


def _linear_layer(layer: Any) -> Layer:
    return layer.weight.detach().cpu().numpy().T.copy(), layer.bias.detach().cpu().numpy().copy()
