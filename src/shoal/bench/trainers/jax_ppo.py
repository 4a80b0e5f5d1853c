"""PPO in the manner of PureJaxRL: environment (gymnax), rollout and update compiled as one program by JAX."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from shoal.bench.trainers import Trainer, Work


def start(work: Work) -> Trainer:
    """Everything between two calls, an iteration of collecting and learning, is one program."""
    import gymnax
    import jax
    import jax.numpy as jnp
    import optax

    env, env_params = gymnax.make("CartPole-v1")
    T, B = work.num_steps, work.num_envs
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(work.lr, eps=1e-5))
    reset = jax.vmap(env.reset, in_axes=(0, None))
    step = jax.vmap(env.step, in_axes=(0, 0, 0, None))

    def make_network(key: Any, outputs: int, gain: float) -> list[tuple[Any, Any]]:
        sizes, gains = [(4, 64), (64, 64), (64, outputs)], [2**0.5, 2**0.5, gain]
        keys = jax.random.split(key, 3)
        return [
            (jax.nn.initializers.orthogonal(g)(k, shape), jnp.zeros(shape[1]))
            for k, shape, g in zip(keys, sizes, gains, strict=True)
        ]

    def apply(network: Any, x: Any) -> Any:
        for weight, bias in network[:-1]:
            x = jnp.tanh(x @ weight + bias)
        return x @ network[-1][0] + network[-1][1]

    def collect_step(carry: Any, key: Any) -> Any:
        params, obs, env_state, running = carry
        logits, value = apply(params["actor"], obs), apply(params["critic"], obs)[:, 0]
        act_key, step_key = jax.random.split(key)
        action = jax.random.categorical(act_key, logits)
        log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], 1)[:, 0]
        answer = step(jax.random.split(step_key, B), env_state, action, env_params)
        following, env_state, reward, terminated, truncated, _ = answer
        done = terminated | truncated
        total = running + reward
        row = (obs, action, log_prob, value, reward, done, jnp.where(done, total, 0.0))
        return (params, following, env_state, jnp.where(done, 0.0, total)), row

    def gae_step(carry: Any, row: Any) -> Any:
        trace, following = carry
        value, reward, done = row
        delta = reward + work.gamma * following * (1 - done) - value
        trace = delta + work.gamma * work.gae_lambda * (1 - done) * trace
        return (trace, value), trace

    def loss(params: Any, rows: Any) -> Any:
        obs, action, old, advantage, target = rows
        log_probs = jax.nn.log_softmax(apply(params["actor"], obs))
        ratio = jnp.exp(jnp.take_along_axis(log_probs, action[:, None], 1)[:, 0] - old)
        gain = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        policy_loss = -jnp.minimum(ratio * gain, jnp.clip(ratio, 1 - work.clip, 1 + work.clip) * gain).mean()
        value_loss = ((apply(params["critic"], obs)[:, 0] - target) ** 2).mean()
        entropy = -(jnp.exp(log_probs) * log_probs).sum(-1).mean()
        return policy_loss + 0.5 * value_loss - work.entropy * entropy

    def minibatch(carry: Any, rows: Any) -> Any:
        params, moments = carry
        updates, moments = optimizer.update(jax.grad(loss)(params, rows), moments, params)
        return (optax.apply_updates(params, updates), moments), None

    def epoch(carry: Any, key: Any) -> Any:
        params, moments, rows = carry
        order = jax.random.permutation(key, T * B)
        parts = jax.tree.map(lambda x: x[order].reshape(work.minibatches, -1, *x.shape[1:]), rows)
        (params, moments), _ = jax.lax.scan(minibatch, (params, moments), parts)
        return (params, moments, rows), None

    def iteration(carry: Any) -> Any:
        params, moments, obs, env_state, running, key = carry
        key, collect_key, epoch_key = jax.random.split(key, 3)
        start = (params, obs, env_state, running)
        end, history = jax.lax.scan(collect_step, start, jax.random.split(collect_key, T))
        _, obs, env_state, running = end
        old_obs, action, log_prob, value, reward, done, returns = history
        last = apply(params["critic"], obs)[:, 0]
        _, advantage = jax.lax.scan(gae_step, (jnp.zeros(B), last), (value, reward, done), reverse=True)
        rows = (old_obs, action, log_prob, advantage, advantage + value)
        rows = jax.tree.map(lambda x: x.reshape(T * B, *x.shape[2:]), rows)
        carry, _ = jax.lax.scan(epoch, (params, moments, rows), jax.random.split(epoch_key, work.epochs))
        return (carry[0], carry[1], obs, env_state, running, key), (returns, done)

    train = jax.jit(iteration)

    def fresh(seed: int) -> Any:
        keys = jax.random.split(jax.random.key(seed), 4)
        params = {"actor": make_network(keys[0], 2, 0.01), "critic": make_network(keys[1], 1, 1.0)}
        obs, env_state = reset(jax.random.split(keys[2], B), env_params)
        return params, optimizer.init(params), obs, env_state, jnp.zeros(B), keys[3]

    state: dict[str, Any] = {"carry": fresh(work.seed)}
    recent: deque[float] = deque(maxlen=100)
    finished: list[Any] = []  # returns and ends [T, B] of iterations that nobody has asked about yet

    def iterate(iterations: int) -> None:
        for _ in range(iterations):
            state["carry"], episodes = train(state["carry"])
            finished.append(episodes)
        jax.block_until_ready(state)

    def restart(seed: int) -> None:
        state["carry"] = fresh(seed)
        recent.clear()
        finished.clear()

    def recent_return() -> float:
        for returns, done in finished:
            recent.extend(np.asarray(returns)[np.asarray(done)].tolist())
        finished.clear()
        return float(np.mean(recent)) if recent else 0.0

    return Trainer(iterate, recent_return, restart)
