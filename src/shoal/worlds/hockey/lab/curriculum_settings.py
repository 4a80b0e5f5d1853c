"""The settings of a run from a curriculum file, in the field names of the original system.

Names on the left of `_AGENT` and in `_TRAINING` are those of the original files. What they counted per batch step or
per episode is counted in environment steps here, so that the number of lanes does not change the algorithm.
"""

from __future__ import annotations

import math
import os
from dataclasses import asdict
from pathlib import Path

from shoal.agents.config import DDDQNConfig, PPOConfig, SACConfig
from shoal.errors import ConfigError
from shoal.options import Values, fit, hints_of
from shoal.reading import shortened
from shoal.worlds.hockey.lab.curriculum import Phase, Reader, readable_anywhere
from shoal.worlds.hockey.lanes.kernel import TIME_LIMIT
from shoal.worlds.hockey.world import MODES

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
_MOST = 1e15
"""No count of a file is larger than this."""
MEAN_EPISODE = 100
"""Steps of the rink in an episode on average, to turn what is counted in episodes into steps."""


def settings_from(values: Values, path: Path) -> Values:
    """Nested settings as config.json has them. Every error in the file is reported together."""
    reader = Reader(path.parent)
    phases, errors = reader.phases(values.get("curriculum")), reader.errors
    reader.table(values, "the file", _TOP)
    agent = reader.table(values.get("agent", {}), "agent", _AGENT_TABLE)
    given = reader.table(values.get("hyperparameters", {}), "hyperparameters")
    given |= reader.table(agent.get("hyperparameters", {}), "agent.hyperparameters")
    kind = reader.text(agent, "type", "agent", "SAC")
    if kind.upper() not in _AGENTS:
        errors.append(f"agent.type={shortened(kind)} is not available: use {', '.join(_AGENTS)}")
    checkpoint = reader.text(agent, "checkpoint_path", "agent", None)
    if checkpoint is not None and not os.path.exists(path.parent / checkpoint):
        errors.append(f"agent.checkpoint_path: there is no run {shortened(checkpoint)}")
    hold = reader.whole(values, "hold", "the file") or 1
    algo, actions = _algo(given, _AGENTS.get(kind.upper(), "sac"), phases, hold, reader)
    if algo.get("scale_obs") and not all(_like_a_game(phase) for phase in phases[:1]):
        errors.append(
            "agent.hyperparameters.scale_obs learns how large numbers are in the first phase, but phases[0] is not a "
            "game in NORMAL mode against somebody, so what hardly moves there would be far too large later: begin "
            "with such a phase, or leave scale_obs out"
        )
    of_algo, of_run = _training(values, reader)
    reader.refuse(str(path))
    extra: Values = {"curriculum": {"curriculum": readable_anywhere(values["curriculum"], path.parent)}}
    extra |= {name: values.get(name, False) for name in ("mirror", "both_players")}
    env: Values = {"opponent": "pool", "keep_mode": phases[0].keep_mode, "hold": hold}
    if algo["name"] == "dddqn":
        env["actions"] = actions
    settings: Values = {"world": "hockey", "total_steps": _longest(phases, hold), "env": env, "extra": extra}
    settings["algo"] = algo | of_algo
    settings |= {name: values[name] for name in ("num_envs", "seed") if name in values}
    if checkpoint is not None:
        settings["init"] = str(path.parent / checkpoint)
    return settings | of_run


def _like_a_game(phase: Phase) -> bool:
    return {mode for mode, _ in phase.modes} <= {"NORMAL"} and not phase.opponents.nobody


def _training(values: Values, reader: Reader) -> tuple[Values, Values]:
    """What the table `training` says of the agent, and of the run."""
    training = reader.table(values.get("training", {}), "training", _TRAINING)
    counts = {name: reader.number(training, name, "training", None, low=0.0, high=_MOST) for name in _TRAINING}
    given = {name: value for name, value in counts.items() if value is not None}
    of_algo: Values = {}
    if "updates_per_step" in given or "train_freq" in given:
        every = given.get("train_freq", 1)
        if every <= 0:
            reader.errors.append(f"training.train_freq={every:g} must be above 0")
        of_algo["updates_per_step"] = given.get("updates_per_step", 1) / (every or 1)
    of_algo |= {"warmup": int(given["warmup_steps"])} if "warmup_steps" in given else {}
    of_algo |= {"reward_scale": given["reward_scale"]} if "reward_scale" in given else {}
    of_run: Values = {}
    if "checkpoint_frequency" in given or "checkpoint_save_freq" in given:
        in_steps = given.get("checkpoint_frequency", given.get("checkpoint_save_freq", 0) * MEAN_EPISODE)
        of_run["checkpoint_every"] = max(1, int(in_steps))
    of_run |= {"eval_every": int(given["eval_frequency"])} if "eval_frequency" in given else {}
    return of_algo, of_run


def _algo(given: Values, name: str, phases: list[Phase], hold: int, reader: Reader) -> tuple[Values, str]:
    """The agent's settings, and the name of its table of actions."""
    at, config = "agent.hyperparameters", _CONFIGS[name]
    fineness = reader.whole(given, "action_fineness", at)
    actions = reader.text(given, "actions", at, "eight" if fineness is None else f"fine{fineness}")
    # plain defaults, so that nothing of our preset for games slips into a file that says nothing about it
    algo: Values = {"name": name, **asdict(config())}
    is_huber = reader.switch(given, "use_huber", at, True)
    decay = reader.number(given, "eps_decay", at, 0.9995, low=0.0, high=1.0) or 0.0
    lowest = reader.number(given, "eps_min", at, None, low=0.0, high=1.0)
    own = {"action_fineness", "actions", "use_huber", "eps_decay", "eps_min"}
    if name == "dddqn":
        own |= {"eps", "epsilon"}
        algo["loss"] = "huber" if is_huber else "squared"
        algo["epsilon"] = reader.number(given, "eps" if "eps" in given else "epsilon", at, 1.0, low=0.0, high=1.0)
        if lowest is not None and not 0.0 < decay < 1.0:
            reader.errors.append(f"{at}.eps_decay={decay:g} must lie between 0 and 1")
        elif lowest is not None:
            length = MEAN_EPISODE / hold
            episodes = sum(phase.episodes or (phase.steps or 0) / length for phase in phases) or 1
            algo["epsilon_final"] = lowest
            algo["explore"] = min(1.0, math.log(max(lowest, 1e-6)) / math.log(decay) / episodes)
    hints = hints_of(config)
    for key, value in given.items():
        if key in own:
            continue
        if key not in _AGENT:
            reader.errors.append(f"{at} has an unknown key {shortened(key)}")
        elif isinstance(value, list) and _AGENT[key] != "hidden":
            reader.errors.append(f"{key} is a list, which is for a search over values: give one value")
        else:
            value = [value, value] if key == "hidden_dim" and isinstance(value, int) else value
            try:
                algo[_AGENT[key]] = fit(value, hints.get(_AGENT[key], object), f"{at}.{key}")
            except ConfigError as error:
                reader.errors.append(str(error).removesuffix("."))
    return algo, actions


def _longest(phases: list[Phase], hold: int) -> int:
    """Steps that the phases take at most; the run ends with the last of them."""
    total = 0
    for phase in phases:
        limit = math.ceil(max(int(TIME_LIMIT[MODES.index(mode)]) for mode, _ in phase.modes) / hold)
        bounds = [phase.episodes * limit if phase.episodes else None, phase.steps]
        total += min((bound for bound in bounds if bound is not None), default=10_000_000)
    return total
