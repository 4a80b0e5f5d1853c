"""From a curriculum file to the settings of a run: `shoal.train("curriculum.json")`.

Names on the left of `_AGENT` and `_TRAINING` are those of the original files. What they counted per batch step or per
episode is counted in environment steps here, so that the number of lanes does not change the algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from shoal.agents.config import DDDQNConfig, PPOConfig, SACConfig
from shoal.worlds.hockey.constants import MODE_NAMES, TIME_LIMIT
from shoal.worlds.hockey.curriculum import Phase, examine, refuse

_TOP = (
    "world", "curriculum", "hyperparameters", "training", "agent", "num_envs", "seed", "mirror", "both_players", "hold",
)  # fmt: skip
_AGENT_TABLE = ("type", "hyperparameters", "checkpoint_path")
_CONFIGS = {"dddqn": DDDQNConfig, "sac": SACConfig, "ppo": PPOConfig}
_AGENTS = {"DDDQN": "dddqn", "DDQN_PER": "dddqn", "SAC": "sac", "PPO": "ppo"}
_AGENT = {
    "learning_rate": "lr", "lr": "lr", "lr_final": "lr_final", "batch_size": "batch_size", "gamma": "gamma",
    "discount": "gamma", "hidden": "hidden", "hidden_dim": "hidden", "hidden_dims": "hidden",
    "hidden_sizes": "hidden", "buffer_size": "replay_capacity", "buffer_max_size": "replay_capacity",
    "replay_capacity": "replay_capacity", "target_update_freq": "target_every", "target_every": "target_every",
    "tau": "tau", "grad_clip": "max_grad_norm", "n_step": "n_step", "prioritised": "prioritised", "noise": "noise",
    "target_entropy": "target_entropy", "temperature": "temperature", "num_steps": "num_steps",
    "updates_per_step": "updates_per_step", "scale_obs": "scale_obs", "pessimism": "pessimism",
    "pessimism_final": "pessimism_final",
}  # fmt: skip
_TRAINING = (
    "max_episode_steps", "updates_per_step", "warmup_steps", "train_freq", "reward_scale", "checkpoint_save_freq",
    "checkpoint_frequency", "eval_frequency",
)  # fmt: skip
MEAN_EPISODE = 100
"""Steps of the rink in an episode on average, to turn what is counted in episodes into steps."""


def settings_from(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Nested settings as config.json has them. Every error in the file is reported together."""
    phases, errors = examine(values, path.parent)
    errors += [f"unknown key {key!r}; known are {', '.join(_TOP)}" for key in values if key not in _TOP]
    agent = dict(values.get("agent", {}))
    kind = agent.get("type", "SAC")
    if str(kind).upper() not in _AGENTS:
        errors.append(f"agent.type={kind!r} is not available: use {', '.join(_AGENTS)}")
    given = {**dict(values.get("hyperparameters", {})), **dict(agent.get("hyperparameters", {}))}
    errors += [f"agent has an unknown key {key!r}" for key in agent if key not in _AGENT_TABLE]
    if agent.get("checkpoint_path") is not None and not (path.parent / agent["checkpoint_path"]).exists():
        errors.append(f"agent.checkpoint_path: there is no run {agent['checkpoint_path']!r}")
    training = dict(values.get("training", {}))
    errors += [f"training has an unknown key {key!r}" for key in training if key not in _TRAINING]
    hold = values.get("hold", 1)
    if not isinstance(hold, int) or isinstance(hold, bool) or hold < 1:
        errors.append(f"hold={hold!r} must be a whole number of steps, from 1")
        hold = 1
    algo, actions = _algo(given, _AGENTS.get(str(kind).upper(), "sac"), phases, hold, errors)
    if algo.get("scale_obs") and phases and not _is_like_a_game(phases[0]):
        errors.append(
            "agent.hyperparameters.scale_obs learns how large numbers are in the first phase, but phases[0] is no game "
            "in NORMAL mode against somebody, so what hardly moves there would be far too large later: begin with such "
            "a phase, or leave scale_obs out"
        )
    refuse(errors, str(path))
    algo |= _training_of_agent(training)
    extra = {"curriculum": {"curriculum": values["curriculum"]}}
    extra |= {name: values.get(name, False) for name in ("mirror", "both_players")}
    env: dict[str, Any] = {"opponent": "pool", "keep_mode": phases[0].keep_mode, "hold": hold}
    if algo["name"] == "dddqn":
        env["actions"] = actions
    settings = {"world": "hockey", "total_steps": _longest(phases, hold), "env": env, "extra": extra, "algo": algo}
    settings |= {name: values[name] for name in ("num_envs", "seed") if name in values}
    if agent.get("checkpoint_path") is not None:
        settings["init"] = str(path.parent / agent["checkpoint_path"])
    if "checkpoint_frequency" in training or "checkpoint_save_freq" in training:
        in_steps = training.get("checkpoint_frequency", training.get("checkpoint_save_freq", 0) * MEAN_EPISODE)
        settings["checkpoint_every"] = max(1, int(in_steps))
    if "eval_frequency" in training:
        settings["eval_every"] = int(training["eval_frequency"])
    return settings


def _algo(
    given: dict[str, Any], name: str, phases: list[Phase], hold: int, errors: list[str]
) -> tuple[dict[str, Any], str]:
    """The agent's settings, and the name of its table of actions."""
    given = dict(given)
    fineness = given.pop("action_fineness", None)
    actions = given.pop("actions", "eight" if fineness is None else f"fine{fineness}")
    # plain defaults, so that nothing of our preset for games slips into a file that says nothing about it
    algo: dict[str, Any] = {"name": name, **asdict(_CONFIGS[name]())}
    squared = given.pop("use_huber", True) is False
    decay, lowest = given.pop("eps_decay", 0.9995), given.pop("eps_min", None)
    if name == "dddqn":
        algo["loss"] = "squared" if squared else "huber"
        algo["epsilon"] = given.pop("eps", given.pop("epsilon", 1.0))
        if lowest is not None:
            length = MEAN_EPISODE / hold
            episodes = sum(phase.episodes or (phase.steps or 0) / length for phase in phases) or 1
            algo |= {"epsilon_final": lowest}
            algo["explore"] = min(1.0, math.log(max(lowest, 1e-6)) / math.log(decay) / episodes)
    for key, value in given.items():
        if key not in _AGENT:
            errors.append(f"agent.hyperparameters has an unknown key {key!r}")
        elif isinstance(value, list) and _AGENT[key] != "hidden":
            errors.append(f"{key} is a list, which is for a search over values: give one value")
        else:
            algo[_AGENT[key]] = [value, value] if key == "hidden_dim" and isinstance(value, int) else value
    return algo, str(actions)


def _training_of_agent(training: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "updates_per_step" in training or "train_freq" in training:
        found["updates_per_step"] = training.get("updates_per_step", 1) / training.get("train_freq", 1)
    if "warmup_steps" in training:
        found["warmup"] = training["warmup_steps"]
    if "reward_scale" in training:
        found["reward_scale"] = training["reward_scale"]
    return found


def _is_like_a_game(phase: Phase) -> bool:
    return all(mode == "NORMAL" for mode, _ in phase.modes) and phase.opponents.nobody == 0.0


def _longest(phases: list[Phase], hold: int) -> int:
    """Steps that the phases take at most; the run ends with the last of them."""
    total = 0
    for phase in phases:
        limit = math.ceil(max(int(TIME_LIMIT[MODE_NAMES.index(mode)]) for mode, _ in phase.modes) / hold)
        bounds = [phase.episodes * limit if phase.episodes else None, phase.steps]
        total += min((bound for bound in bounds if bound is not None), default=10_000_000)
    return total
