"""The peers, each as its own documentation says to use it. Each is imported in its own process only."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.bench.contender import Run, Unavailable
from shoal.bench.step.actions import random_actions, stepping


def gymnasium_vector(num_envs: int, env: str, mode: str | None) -> Run:
    """`gymnasium.make_vec`: its own array code ("vector_entry_point"), "sync" or "async"."""
    import gymnasium
    from gymnasium.envs.registration import VectorizeMode

    spec = gymnasium.spec(env)
    if mode == VectorizeMode.VECTOR_ENTRY_POINT.value and spec.vector_entry_point is None:
        raise Unavailable(f"{env} has no array code of its own")
    batch = gymnasium.make_vec(env, num_envs=num_envs, vectorization_mode=mode)
    batch.reset(seed=0)
    return stepping(batch, random_actions(batch.single_action_space, num_envs))


def sb3(num_envs: int, env: str, processes: bool) -> Run:
    """Stable-Baselines3's DummyVecEnv or SubprocVecEnv."""
    import gymnasium
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    factories = [lambda: gymnasium.make(env)] * num_envs
    batch = SubprocVecEnv(factories, start_method="fork") if processes else DummyVecEnv(factories)
    batch.seed(0)
    batch.reset()
    return stepping(batch, random_actions(batch.action_space, num_envs))


def envpool(num_envs: int, env: str) -> Run:
    """EnvPool, one thread, synchronous."""
    import envpool as pool

    if env not in pool.list_all_envs():
        raise Unavailable(f"EnvPool has no {env}")
    batch = pool.make(env, env_type="gymnasium", num_envs=num_envs, num_threads=1, seed=0)
    batch.reset()
    actions = random_actions(batch.action_space, num_envs)
    whole = hasattr(batch.action_space, "n")
    return stepping(batch, [row.astype(np.int32) for row in actions] if whole else actions)


def pufferlib_c(num_envs: int) -> Run:
    """PufferLib's own CartPole in C ("ocean"), with its statistics fetched now and then."""
    from pufferlib.ocean.cartpole.cartpole import Cartpole

    batch = Cartpole(num_envs=num_envs, report_interval=128)
    batch.reset(0)
    return stepping(batch, [row.astype(np.float32) for row in random_actions(batch.single_action_space, num_envs)])


def pufferlib_serial(num_envs: int, env: str) -> Run:
    """PufferLib's serial backend around a Gymnasium environment."""
    import gymnasium
    import pufferlib.emulation
    import pufferlib.vector

    def make(**options: Any) -> Any:
        return pufferlib.emulation.GymnasiumPufferEnv(env_creator=gymnasium.make, env_args=[env], **options)

    batch = pufferlib.vector.make(make, num_envs=num_envs, backend=pufferlib.vector.Serial)
    batch.reset(seed=0)
    return stepping(batch, random_actions(batch.single_action_space, num_envs))


def torchrl_serial(num_envs: int, env: str) -> Run:
    """TorchRL's SerialEnv around its GymEnv."""
    import torch
    from torchrl.envs import GymEnv, SerialEnv

    torch.set_num_threads(1)
    batch = SerialEnv(num_envs, lambda: GymEnv(env, categorical_action_encoding=True))
    batch.set_seed(0)
    if not hasattr(batch.action_spec.space, "n"):
        raise Unavailable("measured on discrete actions only")
    actions = [torch.from_numpy(row) for row in random_actions(batch.action_spec.space, num_envs)]
    held = [batch.reset()]

    def run(count: int) -> int:
        for k in range(count):
            _, held[0] = batch.step_and_maybe_reset(held[0].set("action", actions[k % len(actions)]))
        return count

    run.close = batch.close  # type: ignore[attr-defined]
    return run


def hockey_env(num_envs: int, bots: bool) -> Run:
    """The original hockey, an object per lane: its strong bot against its weak one, or random actions for both."""
    import hockey.hockey_env as original

    lanes = [original.HockeyEnv() for _ in range(num_envs)]
    seen = [lane.reset()[0] for lane in lanes]
    seats = [(original.BasicOpponent(weak=False), original.BasicOpponent(weak=True)) for _ in lanes]
    actions = np.random.default_rng(0).uniform(-1, 1, (64, num_envs, 8)).astype(np.float32)

    def run(count: int) -> int:
        for k in range(count):
            for i, lane in enumerate(lanes):
                action = actions[k % 64, i]
                if bots:
                    action = np.hstack([seats[i][0].act(seen[i]), seats[i][1].act(lane.obs_agent_two())])
                seen[i], _, done, _, _ = lane.step(action)
                if done:
                    seen[i], _ = lane.reset()
        return count

    return run


def gymnax_scan(num_envs: int, env: str) -> Run:
    """gymnax: `vmap` over lanes, `lax.scan` over time, all compiled into one call; actions are given."""
    import gymnax
    import jax
    import jax.numpy as jnp

    if env not in gymnax.registered_envs:
        raise Unavailable(f"gymnax has no {env}")
    world, params = gymnax.make(env)
    actions = jnp.asarray(np.stack(random_actions(_gymnax_space(world.action_space(params)), num_envs)))
    step, reset = jax.vmap(world.step, (0, 0, 0, None)), jax.vmap(world.reset, (0, None))

    @jax.jit
    def roll(key: Any, state: Any) -> Any:
        def one(carry: Any, action: Any) -> Any:
            key, state = carry
            key, sub = jax.random.split(key)
            obs, state, *outcome, _ = step(jax.random.split(sub, num_envs), state, action, params)
            return (key, state), (obs, *outcome)

        return jax.lax.scan(one, (key, state), actions)

    key = jax.random.key(0)
    held = [(key, reset(jax.random.split(key, num_envs), params)[1])]

    def run(count: int) -> int:
        done = 0
        while done < count:
            held[0], outputs = roll(*held[0])
            jax.block_until_ready(outputs)
            done += len(actions)
        return done

    return run


def _gymnax_space(space: Any) -> Any:
    """Its Discrete and Box have the attributes that `random_actions` reads, the latter as JAX arrays."""
    if hasattr(space, "n"):
        return space
    shape = space.shape
    box = {"low": np.broadcast_to(space.low, shape), "high": np.broadcast_to(space.high, shape), "shape": shape}
    return type("Box", (), {**box, "dtype": np.float32})()
