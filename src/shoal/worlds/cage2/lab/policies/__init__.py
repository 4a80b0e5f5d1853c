"""Defenders by name: the trained networks that come with Shoal (`bundled`), and the baselines.

A bundled network is a stored policy (`shoal.agents.frozen`) whose `about` says for which variant and red it was
trained, with which options of the world, by which command, and how it scored. NumPy evaluates it; torch is not needed.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from shoal.agents.frozen import FrozenPolicy, stored_policies
from shoal.errors import ConfigError
from shoal.training.lab import NamedPolicy, Policy
from shoal.vector.kernel import KernelBatch
from shoal.worlds.cage2.lab.baselines import BASELINES, GREEDY, Baseline, find_baseline
from shoal.worlds.cage2.lanes.names import RED_AGENTS
from shoal.worlds.cage2.world import Cage2Options

BUNDLED = "bundled"


class NetworkPolicy(Policy):
    """In every lane the network that was trained against its red; the likeliest action that the mask allows."""

    def __init__(self, batch: KernelBatch, by_red: dict[str, FrozenPolicy]) -> None:
        red = batch.lane_state["red"]
        lanes = {name: np.flatnonzero(red == RED_AGENTS.index(name)) for name in RED_AGENTS}
        self._lanes = {name: places for name, places in lanes.items() if len(places)}
        self._by_red = by_red
        widths = gym.spaces.flatdim(batch.single_observation_space), gym.spaces.flatdim(batch.single_action_space)
        for name in self._lanes:
            options = ", ".join(f"{option}={value!r}" for option, value in by_red[name].about["env"].items())
            by_red[name].check_fits(*widths, f"The defender against {name}", f"Make the lanes with {options}.")

    def __call__(self, obs: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        action = np.zeros(len(obs), np.int64)
        mask = info.get("action_mask")
        for red, lanes in self._lanes.items():
            action[lanes] = self._by_red[red](obs[lanes], None if mask is None else mask[lanes])
        return action


@functools.cache
def bundled_networks() -> dict[tuple[str, str], FrozenPolicy]:
    """The networks that come with Shoal, by (variant, red)."""
    networks = [FrozenPolicy.load(path) for path in stored_policies(Path(__file__).parent).values()]
    return {(network.about["variant"], network.about["red"]): network for network in networks}


def bundled_for(variant: str) -> dict[str, FrozenPolicy]:
    """The networks of one variant by red; lanes of other reds get the one trained against B-line."""
    networks = {red: network for (of, red), network in bundled_networks().items() if of == variant}
    if "bline" not in networks:
        have = ", ".join(sorted({variant for variant, _ in bundled_networks()}))
        raise ConfigError(f"No defender for variant {variant!r} comes with Shoal; there are some for {have}.")
    return {red: networks.get(red, networks["bline"]) for red in RED_AGENTS}


class _Defenders(dict[str, NamedPolicy]):
    """Policies by name; `greedy:ORDER` is there for every workflow."""

    def __missing__(self, name: str) -> NamedPolicy:
        if not name.startswith(GREEDY):
            raise KeyError(name)
        return _named(find_baseline(name))


def policies_for(options: Cage2Options) -> Mapping[str, NamedPolicy]:
    """Whom `--policy` can name for lanes with these options. (Every world has `random`.)"""
    baselines = {name: _named(baseline) for name, baseline in BASELINES.items() if name != "random"}
    return _Defenders({BUNDLED: _bundled(options.variant), **baselines})


def _named(baseline: Baseline) -> NamedPolicy:
    return NamedPolicy(baseline.about, lambda batch: baseline.make(0))


def _bundled(variant: str) -> NamedPolicy:
    about = "the trained defenders that come with Shoal, in every lane the one against its red"
    of_bline = bundled_networks().get((variant, "bline"))
    needs = {} if of_bline is None else of_bline.about["env"]
    return NamedPolicy(about, lambda batch: NetworkPolicy(batch, bundled_for(variant)), needs)
