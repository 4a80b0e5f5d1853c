"""The policy of a run as plain layers, read from its folder.

`python -m shoal.worlds.hockey.players RUN NAME` stores it among the policies that come with Shoal.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from shoal.agents.frozen import FrozenPolicy
from shoal.errors import ConfigError
from shoal.worlds.hockey.policies import STORED
from shoal.worlds.hockey.tables import action_table


def frozen_run(run: Path, checkpoint: str = "latest") -> FrozenPolicy:
    """The actor in a checkpoint of `run`, an agent of any kind with a standard network."""
    from safetensors.numpy import load_file

    try:
        config = json.loads((run / "config.json").read_text())
        arrays = load_file(run / "checkpoints" / checkpoint / "arrays.safetensors")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{run} is no run folder with a checkpoint {checkpoint!r}: {error}.") from error
    env, keep = config["env"], config["env"].get("keep_mode", True)
    name = env.get("actions") or ("eight" if env.get("discrete") else None)
    table = None if name is None else action_table(name, keep)
    mine = {key.removeprefix("agent."): array for key, array in arrays.items() if key.startswith("agent.")}
    kind = config["algo"]["name"]
    policy = _of_ppo(mine, config["algo"], table) if kind == "ppo" else _of_towers(mine, kind, table)
    policy.hold = env.get("hold", 1)
    return policy


def _of_towers(arrays: dict[str, np.ndarray], kind: str, table: np.ndarray | None) -> FrozenPolicy:
    net = "actor" if kind == "sac" else "network"
    count = sum(re.fullmatch(rf"{net}\.weights\.\d+", name) is not None for name in arrays)
    layers = [(arrays[f"{net}.weights.{i}"][0], arrays[f"{net}.biases.{i}"][0, 0]) for i in range(count)]
    scale = arrays["scale"]
    if kind == "sac" and table is None:
        return FrozenPolicy(layers, "tanh", scale=scale, num_actions=layers[-1][0].shape[1] // 2)
    if kind == "dddqn":  # the value comes first and is the same for all actions
        weight, bias = layers.pop()
        layers.append((weight[:, 1:], bias[1:]))
    return FrozenPolicy(layers, "choice", scale=scale, table=table)


def _of_ppo(arrays: dict[str, np.ndarray], algo: dict[str, Any], table: np.ndarray | None) -> FrozenPolicy:
    hidden = sorted(int(k) for name in arrays for k in re.findall(r"^network\.actor\.(\d+)\.weight$", name))
    if not hidden:
        raise ConfigError("A PPO agent with memory cannot sit in the other seat: it has no plain layers.")
    names = [*(f"network.actor.{k}" for k in hidden), "network.policy.linear"]
    layers = [(arrays[f"{name}.weight"].T, arrays[f"{name}.bias"]) for name in names]
    options: dict[str, Any] = {"activation": algo["activation"]}
    if "obs_normaliser.mean" in arrays:
        variance = arrays["obs_normaliser.squares"] / arrays["obs_normaliser.count"]
        options |= {"mean": arrays["obs_normaliser.mean"], "scale": (variance + 1e-8) ** -0.5, "clip": 10.0}
    head = "choice" if table is not None else "tanh" if algo["squash"] else "clip"
    return FrozenPolicy(layers, head, table=table, **options)


def store(run: Path, name: str) -> Path:
    """Keep the policy of `run` under `name`, with the command that trained it and the step it had reached."""
    step = (run / "checkpoints" / "latest").resolve().name
    STORED.mkdir(exist_ok=True)
    path = STORED / f"{name}.safetensors"
    command = re.sub(r" --runs-dir \S+|(?<=--init )\S*/", "", (run / "command.txt").read_text().strip())
    frozen_run(run).save(path, f"{command} ({step})")
    return path


if __name__ == "__main__":
    print(store(Path(sys.argv[1]), sys.argv[2]))
