"""Suite "policy": one observation to one action, by `shoal.load`, by every exported file, and by SB3's `predict`.

The network is PPO's standard one, two layers of 64, with normalised observations; all take turns in this process. The C
header is compiled with -O2 and called in a loop from C, as a program on a robot would.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from shoal.bench.report import make_console, print_result, write_result
from shoal.bench.rounds import Result, Samples, rows_of
from shoal.training.lab import Verb

Calls = Callable[[int], None]
"""Act this many times on one observation."""
WIDTH = 8


def contenders(folder: Path) -> tuple[dict[str, Calls], list[str]]:
    """Whoever can act here, by name, and why others cannot."""
    import gymnasium as gym
    import torch

    from shoal.agents.config import PPOConfig
    from shoal.agents.ppo import PPO
    from shoal.policy.export import c, numpy, onnx
    from shoal.policy.export import torch as torch_format
    from shoal.policy.export.opened import Exportable
    from shoal.policy.load import load

    torch.set_num_threads(1)
    space: gym.Space = gym.spaces.Box(-np.inf, np.inf, (WIDTH,), np.float32)
    actions: gym.Space = gym.spaces.Discrete(4)
    agent = PPO(space, actions, PPOConfig(normalise_obs=True))
    opened = Exportable(folder, agent, space, actions, "a standard network")
    obs = np.linspace(-1, 1, WIDTH, dtype=np.float32)
    notes = []

    def calls(act: Callable[[np.ndarray], object]) -> Calls:
        def repeat(times: int) -> None:
            for _ in range(times):
                act(obs)

        return repeat

    able = {
        "shoal.load": calls(load(numpy.write(opened, folder / "a.safetensors")[0])),
        "torch.export": calls(load(torch_format.write(opened, folder / "a.pt2")[0])),
    }
    if find_spec("onnxruntime") and find_spec("onnxscript"):
        able["onnxruntime"] = calls(load(onnx.write(opened, folder / "a.onnx")[0]))
    else:
        notes.append("onnxruntime: not installed")
    if shutil.which("gcc"):
        able["c header"] = _compiled(c.write(opened, folder / "a.h")[0])
    else:
        notes.append("c header: there is no gcc")
    if find_spec("stable_baselines3"):
        able["sb3 predict"] = calls(_sb3(space, actions))
    else:
        notes.append("sb3: not installed")
    return able, notes


def _compiled(header: Path) -> Calls:
    program, library = header.with_suffix(".c"), header.with_suffix(".so")
    program.write_text(
        f'#include "{header.name}"\n'
        "int repeat(int times) {\n"
        f"    float obs[{WIDTH}] = {{0}};\n    int action, sum = 0;\n"
        "    for (int i = 0; i < times; i++) { obs[0] = i * 1e-6f; a_act(obs, 0, 0, &action); sum += action; }\n"
        "    return sum;\n}\n"
    )
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(program), "-lm"], check=True)
    return ctypes.CDLL(str(library)).repeat


def _sb3(space: object, actions: object) -> Callable[[np.ndarray], object]:
    """Its standard network of the same size; it does not normalise."""
    from stable_baselines3.common.policies import ActorCriticPolicy

    policy = ActorCriticPolicy(space, actions, lambda progress: 0.0)  # type: ignore[arg-type]
    return lambda obs: policy.predict(obs, deterministic=True)


@dataclass(frozen=True)
class PolicyArgs:
    """Measure how long a policy takes for one observation, in every form that it can have."""

    out: Path | None = None
    """Write the rows here as JSON."""
    rounds: int = 15
    """Interleaved rounds, of which the median is reported."""
    calls: int = 2_000
    """Actions per round."""


def run(args: PolicyArgs) -> int:
    """The command."""
    with tempfile.TemporaryDirectory() as folder:
        able, notes = contenders(Path(folder))
        samples: Samples = {name: [] for name in able}
        for _ in range(args.rounds):
            for name, repeat in able.items():
                cpu, wall = time.process_time(), time.perf_counter()
                repeat(args.calls)
                spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
                samples[name].append({clock: args.calls / max(seconds, 1e-9) for clock, seconds in spent.items()})
    result = Result(rows_of("policy", "one action", 1, samples, "shoal.load", "cpu"), notes, {})
    print_result(result, make_console())
    write_result(result, args.out)
    return 0


SUITE = Verb(PolicyArgs, run)
