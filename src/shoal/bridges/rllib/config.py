"""`ppo_config`: RLlib's `PPOConfig` for lanes of a world, with all sizes in environment samples."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode, VectorEnv
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.tune.registry import register_env

from shoal.bridges.batches import batch_for
from shoal.bridges.rllib.connectors import Device, LaneActions, LaneObs
from shoal.bridges.rllib.envs import ENV_NAME, KINDS, make_env
from shoal.bridges.rllib.faults import PATIENCE, PatientEnvRunner, count_restarts, stop_on_faults
from shoal.bridges.rllib.lanes import lane_observation_space
from shoal.bridges.rllib.learner import LaneLearner, VecLearner
from shoal.bridges.rllib.modules import LanePPOModule, MaskedPPOModule
from shoal.bridges.rllib.runners import ColumnarEnvRunner, PackedEnvRunner
from shoal.bridges.rllib.spaces import policy_space
from shoal.bridges.rllib.timing import time_each_iteration
from shoal.errors import ConfigError
from shoal.vector.batch import check_autoreset_mode

EVALUATION_LANES = 64
RUNNERS = {"vec": PatientEnvRunner, "packed_vec": PackedEnvRunner, "columnar": ColumnarEnvRunner}
"""Env runners by mode."""
FAULT_TOLERANCE: dict[str, Any] = {
    "restart_failed_env_runners": True,
    "delay_between_env_runner_restarts_s": 5,
    "num_consecutive_env_runner_failures_tolerance": PATIENCE,
    "env_runner_restore_timeout_s": 300,
    "restart_failed_sub_environments": True,
}


def ppo_config(
    world: object,
    *,
    mode: str = "auto",
    num_envs: int = 64,
    train_batch_size: int = 8192,
    minibatch_size: int | None = None,
    num_epochs: int = 4,
    num_env_runners: int = 0,
    num_learners: int = 0,
    num_gpus_per_learner: float = 0,
    seed: int | None = None,
    evaluate_every: int = 0,
    evaluation_episodes: int = 20,
    model: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    callbacks: type[RLlibCallback] | None = None,
    fast_connectors: bool = True,
    **training: Any,
) -> PPOConfig:
    """PPO on `num_envs` lanes per env runner; `config.build_algo().train()` goes on from there.

    Args:
        world: anything `shoal.make` takes that can be pickled, e.g. "cartpole".
        mode: "vec", "packed_vec", "columnar", or "auto": columnar, unless callbacks or memory need RLlib's episodes.
        num_envs: lanes of each env runner.
        train_batch_size: environment samples of one iteration, over all lanes and runners.
        minibatch_size: environment samples of one gradient step of each learner; none takes 1,024, or all there are.
        num_epochs: passes over the train batch.
        num_env_runners: remote ones; 0 samples in this process.
        num_learners: remote ones; 0 learns in this process.
        num_gpus_per_learner: GPUs of each learner, which may be a share of one; 0 learns on the CPU.
        seed: everything random follows from it; None draws fresh entropy.
        evaluate_every: iterations between evaluations (0: none) of `evaluation_episodes` without exploration.
        model: fields of RLlib's `DefaultModelConfig`.
        options: what `shoal.make` takes besides, e.g. options of the world.
        callbacks: an `RLlibCallback` class.
        fast_connectors: in `vec`, connectors of ours that treat all lanes at once, instead of RLlib's.
        training: what `PPOConfig.training` takes: lr, gamma, lambda_, clip_param, ...
    """
    model, options = model or {}, options or {}
    mode = _pick_mode(mode, model, callbacks)
    learners = max(1, num_learners)
    minibatch_size = min(1024, train_batch_size // learners) if minibatch_size is None else minibatch_size
    num_steps = check_sizes(mode, num_envs, train_batch_size, minibatch_size, max(1, num_env_runners), learners)
    ours = mode != "vec" or (fast_connectors and not model.get("use_lstm"))
    spec, same_step = _module_spec(world, mode, model, options, ours)
    register_env(ENV_NAME, make_env)  # again: a Ray that was started since does not know it
    config = PPOConfig().environment(ENV_NAME, env_config=_env_config(world, mode, num_envs, options, same_step))
    config.env_runners(
        env_runner_cls=RUNNERS[mode],
        gym_env_vectorize_mode="vector_entry_point",
        num_env_runners=num_env_runners,
        num_envs_per_env_runner=1 if mode == "packed_vec" else num_envs,
        rollout_fragment_length=num_steps,
    )
    config.training(
        train_batch_size_per_learner=train_batch_size // learners,
        minibatch_size=minibatch_size,
        num_epochs=num_epochs,
        **training,
    )
    config.learners(num_learners=num_learners, num_gpus_per_learner=num_gpus_per_learner).rl_module(rl_module_spec=spec)
    config.debugging(seed=seed, log_level="ERROR").fault_tolerance(**FAULT_TOLERANCE)
    _watch(config, callbacks)
    if ours:
        _use_connectors(config, mode, spec)
    if evaluate_every:
        _evaluate(config, world, options, evaluate_every, evaluation_episodes)
    return config


def _watch(config: PPOConfig, callbacks: type[RLlibCallback] | None) -> None:
    """Time iterations, stop when runners keep failing, and let the user's own callbacks look on."""
    config.callbacks(
        on_algorithm_init=time_each_iteration, on_env_runners_recreated=count_restarts, on_train_result=stop_on_faults
    )
    if callbacks is not None:
        config.callbacks(callbacks)


def check_sizes(
    mode: str, num_envs: int, train_batch_size: int, minibatch_size: int, runners: int, learners: int
) -> int:
    """Steps per lane of one iteration, or a `ConfigError` that says which size does not fit."""
    lanes = num_envs * runners
    if train_batch_size % lanes:
        nearest = max(lanes, round(train_batch_size / lanes) * lanes)
        raise ConfigError(
            f"train_batch_size={train_batch_size:,} is not a multiple of the {lanes:,} lanes "
            f"(= {num_envs:,} per runner x {runners}). Try {nearest:,}."
        )
    num_steps, share = train_batch_size // lanes, train_batch_size // learners
    if minibatch_size > share:
        raise ConfigError(
            f"minibatch_size={minibatch_size:,} is larger than a learner's share of the train batch, {share:,} samples "
            f"(= {train_batch_size:,} over {learners} learner(s)). Use at most {share:,}."
        )
    shared = {"packed_vec": (num_steps * runners, "steps"), "columnar": (lanes, "lanes"), "vec": (learners, "")}
    count, what = shared[mode]
    if count % learners:
        raise ConfigError(
            f"{learners} learners cannot share {count} {what} equally. Use a divisor of {count} learners."
        )
    return num_steps


def _pick_mode(mode: str, model: dict[str, Any], callbacks: type[RLlibCallback] | None) -> str:
    if mode == "auto":
        return "vec" if callbacks is not None or model.get("use_lstm") else "columnar"
    if mode not in KINDS:
        raise ConfigError(f"mode={mode!r} is unknown. Use one of auto, {', '.join(KINDS)}.")
    if mode != "vec" and model.get("use_lstm"):
        raise ConfigError(f"A network with memory needs RLlib's episodes, which mode={mode!r} lacks. Use mode='vec'.")
    return mode


def _module_spec(
    world: object, mode: str, model: dict[str, Any], options: dict[str, Any], ours: bool
) -> tuple[RLModuleSpec, bool]:
    """The network for one lane, and whether the lanes of this mode begin anew within the same step.

    `ours`: as `LanePPOModule` rather than RLlib's own.
    """
    wanted = AutoresetMode.NEXT_STEP if mode == "vec" else AutoresetMode.SAME_STEP
    autoreset = check_autoreset_mode(options.get("autoreset_mode", wanted))
    others = {key: value for key, value in options.items() if key != "autoreset_mode"}
    with closing(batch_for(world, 1, autoreset, others)) as batch:
        spec = RLModuleSpec(
            module_class=MaskedPPOModule if batch.has_action_mask else LanePPOModule if ours else None,
            observation_space=lane_observation_space(batch),
            action_space=policy_space(batch.single_action_space),
            model_config=DefaultModelConfig(**{"fcnet_hiddens": [64, 64], **model}),
        )
    return spec, autoreset == AutoresetMode.SAME_STEP


def _env_config(world: object, mode: str, num_envs: int, options: dict[str, Any], same_step: bool) -> dict[str, Any]:
    return {"world": world, "mode": mode, "lanes": num_envs, "options": options, "same_step": same_step}


def _use_connectors(config: PPOConfig, mode: str, spec: RLModuleSpec) -> None:
    """Runner, learner and connectors of ours, for the mode."""
    packed, acting = mode == "packed_vec", (config.normalize_actions, config.clip_actions)
    config.env_runners(
        env_to_module_connector=partial(_observing, spec.observation_space if packed else None),
        module_to_env_connector=partial(_acting, spec.action_space, *acting, packed),  # type: ignore[arg-type]
        add_default_connectors_to_env_to_module_pipeline=False,
        add_default_connectors_to_module_to_env_pipeline=False,
    )
    config.learners(
        learner_class=VecLearner if mode == "vec" else LaneLearner, add_default_connectors_to_learner_pipeline=False
    )


# Functions of the module, with what RLlib passes after our own arguments, as a config is pickled.


def _observing(lane_space: gym.Space | None, env: VectorEnv, spaces: object, device: Device) -> LaneObs:
    return LaneObs(device, lane_space)


def _acting(space: gym.Space, normalize: bool, clip: bool, packed: bool, *given: object) -> LaneActions:
    return LaneActions(space, normalize, clip, packed)


def _evaluate(config: PPOConfig, world: object, options: dict[str, Any], every: int, episodes: int) -> None:
    """Evaluation plays whole episodes, so it is always `vec` with RLlib's own runner."""
    lanes = min(episodes, EVALUATION_LANES)
    others = {key: value for key, value in options.items() if key != "autoreset_mode"}
    config.evaluation(
        evaluation_interval=every,
        evaluation_duration=episodes,
        evaluation_duration_unit="episodes",
        evaluation_config=PPOConfig.overrides(
            env_config=_env_config(world, "vec", lanes, others, False),
            env_runner_cls=PatientEnvRunner,
            num_envs_per_env_runner=lanes,
            explore=False,
            add_default_connectors_to_env_to_module_pipeline=True,
            add_default_connectors_to_module_to_env_pipeline=True,
            _env_to_module_connector=None,
            _module_to_env_connector=None,
        ),
    )
