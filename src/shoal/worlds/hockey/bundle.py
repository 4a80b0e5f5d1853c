"""`python -m shoal.worlds.hockey.bundle RUN`: make the network of a PPO run the bundled agent.

The bundled agent is a few named arrays, so that playing against it needs neither torch nor a run folder.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

TARGET = Path(__file__).with_name("agent.safetensors")


def bundle(run: Path, target: Path = TARGET) -> Path:
    """Write the policy in the latest checkpoint of `run` as layers for `policies.Agent`."""
    from safetensors.numpy import load_file, save_file

    latest = max((run / "checkpoints").glob("step_*"), key=lambda path: int(path.name.removeprefix("step_")))
    arrays = load_file(latest / "arrays.safetensors")
    hidden = sorted(int(k) for name in arrays for k in re.findall(r"^agent\.network\.actor\.(\d+)\.weight$", name))
    layers = [*(f"agent.network.actor.{k}" for k in hidden), "agent.network.policy.linear"]
    squares, count = arrays["agent.obs_normaliser.squares"], arrays["agent.obs_normaliser.count"]
    stored = {"mean": arrays["agent.obs_normaliser.mean"], "scale": 1.0 / np.sqrt(squares / count + 1e-8)}
    for k, layer in enumerate(layers):
        stored |= {f"weight_{k}": arrays[f"{layer}.weight"].T, f"bias_{k}": arrays[f"{layer}.bias"]}
    save_file({name: np.ascontiguousarray(array, np.float32) for name, array in stored.items()}, target)
    return target


if __name__ == "__main__":
    print(bundle(Path(sys.argv[1])))
