"""`python -m shoal.worlds.cage2.policies.export RUN FILE`: make a run's best checkpoint a bundled defender.

Takes the policy network of a run trained with the standard network (tanh) and scores it first.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from shoal.worlds.cage2.leaderboard import Defender, score_red
from shoal.worlds.cage2.policies import HEADER, Network, NetworkPolicy

EPISODES = 1000


def network_of_run(run: Path, checkpoint: str = "best") -> Network:
    """The policy network of a run, read from its checkpoint."""
    from safetensors.numpy import load_file

    config = json.loads((run / "config.json").read_text())
    arrays = load_file(run / "checkpoints" / checkpoint / "arrays.safetensors")
    weights = {
        name.removeprefix("agent.network."): a for name, a in arrays.items() if name.startswith("agent.network.")
    }
    hidden = sorted({int(name.split(".")[1]) for name in weights if name.startswith("actor.")})
    names = [*(f"actor.{k}" for k in hidden), "policy.linear"]
    layers = tuple((_halved(weights[f"{name}.weight"]), _halved(weights[f"{name}.bias"])) for name in names)
    env = dict(config["env"])
    variant, red = env.pop("variant", "cage2"), env.pop("red", "bline")
    command = (run / "command.txt").read_text().strip()
    return Network(variant, red, env, layers, {"command": command, "step": _step(run, checkpoint)})


def _halved(array: np.ndarray) -> np.ndarray:
    """As the file will hold it, so that what is scored is what is shipped."""
    return array.astype(np.float16).astype(np.float32)


def _step(run: Path, checkpoint: str) -> int:
    return int((run / "checkpoints" / checkpoint).resolve().name.removeprefix("step_"))


def save_network(network: Network, path: Path, about: dict[str, Any]) -> None:
    """Write a network with its header, its numbers in half precision."""
    from safetensors.numpy import save_file

    arrays: dict[str, np.ndarray] = {}
    for k, (weight, bias) in enumerate(network.layers):
        arrays |= {f"{k}.weight": np.ascontiguousarray(weight, np.float16), f"{k}.bias": bias.astype(np.float16)}
    header = {"variant": network.variant, "red": network.red, "env": network.env, "about": about}
    save_file(arrays, path, {HEADER: json.dumps(header)})


def main(argv: list[str]) -> int:
    """Export one run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--checkpoint", default="best")
    parser.add_argument("--command", help="the command that made it, if the run does not say")
    options = parser.parse_args(argv)
    network = network_of_run(options.run, options.checkpoint)
    defender = Defender(str(options.run), network.env, lambda batch: NetworkPolicy(batch, {network.red: network}))
    scores = {
        label: {str(c.length): round(c.mean, 3) for c in cells}
        for label, cells in (
            ("as played", score_red(defender, network.variant, network.red, EPISODES, False, seed=1)),
            ("after evidence only", score_red(defender, network.variant, network.red, EPISODES, True, seed=1)),
        )
    }
    command = options.command or network.about["command"]
    about = {**network.about, "command": command, "mean return": scores, "episodes": EPISODES}
    save_network(network, options.file, about)
    print(json.dumps(about, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
