"""What every world shares: configurations, curricula and run folders, and the commands that read them."""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.attempts import ROOT, Reader
from tests.fuzz.damage import damage_bytes, damage_json, damage_json_lines, damage_tensors, damage_text

OLD_RUNS = ROOT / "tests" / "fixtures" / "old_run"


SMALL_PPO = {"name": "ppo", "num_steps": 8, "minibatches": 2, "epochs": 1, "hidden": [8], "lr_final": 1e-4,
             "clip_final": 0.1, "entropy_final": 0.0, "value_clip": 0.2, "target_kl": 0.1, "normalise_obs": True,
             "gamma": 0.9, "lr": 1e-3}  # fmt: skip
SMALL_SAC = {"name": "sac", "num_steps": 4, "hidden": [8], "warmup": 16, "batch_size": 4, "replay_capacity": 64,
             "lr": 1e-3, "lr_final": 1e-4, "updates_per_step": 0.25, "n_step": 2, "prioritised": True,
             "priority_exponent": 0.5, "priority_correction": 0.5, "reward_scale": 2.0, "tau": 0.1, "temperature": 0.2,
             "target_entropy": -1.0, "pessimism_final": 0.5, "noise": "pink"}  # fmt: skip
SMALL_DDDQN = {"name": "dddqn", "num_steps": 4, "hidden": [8], "warmup": 16, "batch_size": 4, "replay_capacity": 64,
               "epsilon": 0.5, "epsilon_final": 0.1, "explore": 0.5, "target_every": 4, "loss": "squared", "tau": 0.01,
               "max_grad_norm": 1.0, "updates_per_step": 0.25, "gamma": 0.9}  # fmt: skip
SMALL_RUN = {"num_envs": 4, "total_steps": 64, "seed": 1, "device": "cpu", "checkpoint_every": 64, "keep": 2,
             "eval_every": 0, "eval_episodes": 2, "runners": 0, "staleness": 0, "num_threads": 1, "init": None,
             "ray_address": None, "compiled": True}  # fmt: skip


def _small(world: str) -> dict[str, object]:
    """A whole configuration of a world, small, with every option of the world and its lab as it is by default."""
    from shoal.training.settings import config_values, resolve_config

    algo = {"hockey": SMALL_SAC, "mountaincar": SMALL_DDDQN}.get(world, SMALL_PPO)
    env = {"kg": {"max_states": 16, "max_depth": 4}, "dvrp": {"customers": 8, "travellers": 8, "trips_each": 8}}.get(
        world, {}
    )
    return config_values(resolve_config(world, {**SMALL_RUN, "algo": algo, "env": env}))


def _config(world: str) -> Reader:
    def prepare(folder: Path) -> None:
        (folder / "config.json").write_text(_cached(f"config {world}", lambda: json.dumps(_small(world))))

    return Reader(
        f"config {world}",
        prepare,
        {"config.json": damage_json},
        ["train", "--config", "config.json", "--runs-dir", "runs"],
    )


_made: dict[str, str] = {}


def _cached(name: str, make: Callable[[], str]) -> str:
    if name not in _made:
        _made[name] = make()
    return _made[name]


def _toml(folder: Path) -> None:
    (folder / "config.toml").write_text(
        'world = "cartpole"\nnum_envs = 4\ntotal_steps = 64\n[algo]\nname = "ppo"\nnum_steps = 8\nminibatches = 2\n'
        "lr = 1e-3\nhidden = [8]\n[env]\ngravity = 9.8\n"
    )


CURRICULUM = {
    "curriculum": {
        "phases": [
            {
                "name": "game", "steps": 64, "win_rate": 0.9, "environment": {"mode": "NORMAL", "keep_mode": True},
                "opponent": {
                    "type": "weighted_mixture",
                    "opponents": [
                        {"type": "basic_weak", "weight": 0.8},
                        {"type": "self_play", "weight": 0.2, "strategy": "uniform"},
                    ],
                },
                "reward_shaping": {"N": 6, "K": 4, "CLOSENESS_START": 20, "CLOSENESS_FINAL": 1.5},
                "reward_bonus": {"N": 0, "K": 10, "WIN_BONUS_START": 10.0, "WIN_DISCOUNT_FINAL": 0.92},
                "clear_buffer": False,
            },
            {
                "episodes": 4,
                "environment": {
                    "mixture": [{"mode": "NORMAL", "weight": 0.9}, {"mode": "TRAIN_DEFENSE", "weight": 0.1}],
                },
                "opponent": {"type": "archive", "distribution": {"pfsp": 0.5, "random": 0.3, "baseline": 0.2}},
            },
        ]
    },
    "hyperparameters": {"learning_rate": 0.001, "batch_size": 4},
    "training": {
        "max_episode_steps": 250, "updates_per_step": 1, "train_freq": 8, "warmup_steps": 16, "reward_scale": 0.2,
        "checkpoint_frequency": 64, "checkpoint_save_freq": 1, "eval_frequency": 100_000,
    },
    "agent": {
        "type": "DDDQN",
        "hyperparameters": {
            "action_fineness": 3, "hidden_dim": 8, "use_huber": False, "eps": 1.0, "eps_min": 0.05, "eps_decay": 0.995,
            "n_step": 2, "gamma": 0.96, "lr_final": 0.0001, "num_steps": 4, "buffer_size": 64, "target_update_freq": 4,
            "tau": None,
        },
    },
    "mirror": True, "both_players": False, "hold": 4, "num_envs": 4, "seed": 0,
}  # fmt: skip


def _curriculum(folder: Path) -> None:
    (folder / "curriculum.json").write_text(json.dumps(CURRICULUM))


# ---------------------------------------------------------------------- run folders

_PLAIN = {
    "config.json": damage_json,
    "metrics.jsonl": damage_json_lines,
    "evaluations.jsonl": damage_json_lines,
    "monitor.csv": damage_text,
    "command.txt": damage_bytes,
    "system.json": damage_json,
}


def _run_reader(world: str, verb: str) -> Reader:
    """A command on a run; each is damaged where it reads, and only resuming may write into the folder."""
    step = next((OLD_RUNS / world / "checkpoints").glob("step_*")).name if world != "new" else "step_64"
    saved = {
        f"run/checkpoints/{step}/meta.json": damage_json,
        f"run/checkpoints/{step}/arrays.safetensors": damage_tensors,
    }
    plain = {f"run/{name}": damage for name, damage in _PLAIN.items()}
    if world == "new":
        plain |= {
            "run/headlines.json": damage_json,
            "run/replays/step_64.json": damage_json,
            "run/sections/own.json": damage_json,
        }
    if (OLD_RUNS / world / "checkpoints" / step / "environments.safetensors").exists() or world == "new":
        saved[f"run/checkpoints/{step}/environments.safetensors"] = damage_tensors
    damages = {
        "report": plain,
        "eval": saved | {"run/config.json": damage_json},
        "play": saved | {"run/config.json": damage_json},
        "resume": saved | {"run/config.json": damage_json},
        "init": saved | {"run/config.json": damage_json},
    }[verb]
    name = "cartpole" if world == "new" else world
    commands = {
        "report": ["report", "run"],
        "eval": ["eval", "run", "--episodes", "2", "--num-envs", "2"],
        "play": ["play", "run", "--num-envs", "2", "--max-steps", "3"],
        "resume": ["train", "--resume", "run", "--total-steps", "4096"],
        "init": ["train", "--config", "small.json", "--init", "run", "--runs-dir", "runs"],
    }

    def prepare(folder: Path) -> None:
        _copy_run(world, folder / "run")
        if verb == "init":
            (folder / "small.json").write_text((folder / "run" / "config.json").read_text())

    return Reader(
        f"{verb} {name}" + (" of today" if world == "new" else ""), prepare, damages, commands[verb], ("run",)
    )


_NEW_RUN: Path | None = None


def make_new_run(folder: Path) -> None:
    """A run of today, with a replay, headlines and a section, for readers to copy."""
    global _NEW_RUN
    import shoal
    from shoal.report.sections import Section, add_section, fields, text

    settings = {**SMALL_RUN, "algo": SMALL_PPO, "eval_every": 32}
    run = shoal.train("cartpole", quiet=True, runs_dir=folder, run_name="run", **settings).run
    add_section(run, "own", Section("Own", [text("title", "content"), fields("fields", {"a": 1})], "a note"))
    _NEW_RUN = run


def _copy_run(world: str, target: Path) -> None:
    assert world != "new" or _NEW_RUN is not None, "make_new_run comes first"
    source = _NEW_RUN if world == "new" and _NEW_RUN is not None else OLD_RUNS / world
    shutil.copytree(source, target, symlinks=True)
    for packed in list(target.rglob("*.xz")):
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
        packed.unlink()


READERS = [
    *(_config(world) for world in ("cartpole", "pendulum", "mountaincar", "hockey", "kg", "dvrp", "cage2")),
    Reader(
        "config toml", _toml, {"config.toml": damage_text}, ["train", "--config", "config.toml", "--runs-dir", "runs"]
    ),
    Reader(
        "curriculum",
        _curriculum,
        {"curriculum.json": damage_json},
        ["train", "--config", "curriculum.json", "--runs-dir", "runs"],
    ),
    *(
        _run_reader(world, verb)
        for world in ("new", "cartpole", "hockey", "kg", "dvrp", "cage2")
        for verb in ("report", "eval", "play", "resume", "init")
        if (world, verb) != ("cage2", "init")  # its preset is of another shape today
    ),
]
