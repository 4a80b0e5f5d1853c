"""Defenders by name: the trained networks that come with Shoal (`bundled`), and the baselines.

A bundled network is a small safetensors file whose header says for which variant and red it was trained, with which
options of the world, by which command, and how it scored. NumPy evaluates it; torch is not needed.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from shoal.errors import ConfigError, missing_extra, unknown_name
from shoal.vector.kernel import KernelBatch
from shoal.worlds.cage2.baselines import BASELINES, Policy, make_baseline
from shoal.worlds.cage2.leaderboard import Defender
from shoal.worlds.cage2.names import RED_AGENTS

BUNDLED = "bundled"
DEFAULT = "react-restore"
"""Whom `shoal play cage2` shows if nobody is named."""
HEADER = "shoal.cage2"


@dataclass(frozen=True)
class Network:
    """A trained defender: tanh layers between Blue's observation and the scores of its actions."""

    variant: str
    red: str
    env: dict[str, Any]
    """Options of `make_cage2` that its observations and actions need."""
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    """(weight [out, in], bias [out]) in order; tanh after all but the last."""
    about: dict[str, Any]
    """The command that made it and what it scored."""

    def scores(self, obs: np.ndarray) -> np.ndarray:
        """[B, D] -> [B, A]."""
        x = np.asarray(obs, np.float32)
        if x.shape[1] != self.layers[0][0].shape[1]:
            raise ConfigError(
                f"This defender reads {self.layers[0][0].shape[1]} numbers per lane, but the lanes show {x.shape[1]}. "
                f"Make them with {', '.join(f'{name}={value!r}' for name, value in self.env.items())}."
            )
        for weight, bias in self.layers[:-1]:
            x = np.tanh(x @ weight.T + bias)
        weight, bias = self.layers[-1]
        return x @ weight.T + bias


class NetworkPolicy:
    """In every lane the network that was trained against its red; the likeliest action that the mask allows."""

    def __init__(self, batch: KernelBatch, by_red: dict[str, Network]) -> None:
        red = batch.lane_state["red"]
        self._lanes = {name: np.flatnonzero(red == RED_AGENTS.index(name)) for name in RED_AGENTS}
        self._by_red = by_red

    def __call__(self, obs: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        action = np.zeros(len(obs), np.int64)
        mask = info.get("action_mask")
        for red, lanes in self._lanes.items():
            if len(lanes):
                scores = self._by_red[red].scores(obs[lanes])
                if mask is not None:
                    scores[~mask[lanes]] = -np.inf
                action[lanes] = scores.argmax(1)
        return action

    def forget(self, ended: np.ndarray) -> None:
        """Nothing is remembered."""


def read_network(content: bytes) -> Network:
    """A network from the bytes of a safetensors file."""
    try:
        from safetensors.numpy import load
    except ImportError:
        raise missing_extra("safetensors", "train", "A bundled defender") from None
    size = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][HEADER])
    arrays = {name: array.astype(np.float32) for name, array in load(content).items()}
    depth = len(arrays) // 2
    layers = tuple((arrays[f"{k}.weight"], arrays[f"{k}.bias"]) for k in range(depth))
    return Network(header["variant"], header["red"], header["env"], layers, header["about"])


@functools.cache
def bundled_networks() -> dict[tuple[str, str], Network]:
    """The networks that come with Shoal, by (variant, red)."""
    found = (path for path in files(__package__).iterdir() if path.name.endswith(".safetensors"))
    networks = [read_network(path.read_bytes()) for path in sorted(found, key=lambda path: path.name)]
    return {(network.variant, network.red): network for network in networks}


def bundled_for(variant: str) -> dict[str, Network]:
    """The networks of one variant by red; lanes of other reds get the one trained against B-line."""
    networks = {red: network for (of, red), network in bundled_networks().items() if of == variant}
    if "bline" not in networks:
        have = ", ".join(sorted({variant for variant, _ in bundled_networks()}))
        raise ConfigError(f"No defender for variant {variant!r} comes with Shoal; there are some for {have}.")
    return {red: networks.get(red, networks["bline"]) for red in RED_AGENTS}


def defender_of(name: str, variant: str) -> Defender:
    """The policy called `name`, ready to be scored on `variant`."""
    if name == BUNDLED:
        by_red = bundled_for(variant)
        return Defender(name, by_red["bline"].env, lambda batch: NetworkPolicy(batch, by_red))
    if name not in BASELINES and not name.startswith("greedy:"):
        raise unknown_name("policy of cage2", name, [BUNDLED, *BASELINES], "`shoal.worlds.cage2.policies`")
    return Defender(name, {}, lambda batch: make_baseline(name))


def find_policy(name: str, env: dict[str, Any]) -> tuple[dict[str, Any], Callable[[KernelBatch], Policy]]:
    """Options of the lanes that the policy called `name` needs, and what makes it for a batch of them."""
    defender = defender_of(name, env.get("variant", "cage2"))
    return dict(defender.env), defender.make_policy
