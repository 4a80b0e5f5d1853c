"""PPO in the manner of PureJaxRL: environment (gymnax), rollout and update compiled as one program by JAX."""

from __future__ import annotations

from typing import NamedTuple

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from shoal.bench.trainers import Recent, Trainer, Work

Params = dict[str, list[tuple[Array, Array]]]
"""Weights and biases of the layers of "actor" and "critic"."""
Rows = tuple[Array, ...]
Pair = tuple[Array, Array]


class State(NamedTuple):
    """What goes from one iteration to the next."""

    params: Params
    moments: optax.OptState
    obs: Array  # [B, 4]
    env_state: gymnax.EnvState
    running: Array  # [B] returns so far of the episodes that are under way
    key: Array


class Program:
    """An iteration of collecting and learning."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.env, self.env_params = gymnax.make("CartPole-v1")
        self.optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(work.lr, eps=1e-5))
        self.step = jax.vmap(self.env.step, in_axes=(0, 0, 0, None))

    def fresh(self, seed: int) -> State:
        """Before the first iteration."""
        B, keys = self.work.num_envs, jax.random.split(jax.random.key(seed), 4)
        params = {"actor": make_network(keys[0], 2, 0.01), "critic": make_network(keys[1], 1, 1.0)}
        obs, env_state = jax.vmap(self.env.reset, in_axes=(0, None))(jax.random.split(keys[2], B), self.env_params)
        return State(params, self.optimizer.init(params), obs, env_state, jnp.zeros(B), keys[3])

    def iteration(self, state: State) -> tuple[State, Rows]:
        """The state after it; returns of the episodes that ended, and where they did, [T, B] each."""
        T, B = self.work.num_steps, self.work.num_envs
        key, collect_key, epoch_key = jax.random.split(state.key, 3)
        end, history = jax.lax.scan(self._collect_step, state, jax.random.split(collect_key, T))
        obs, action, log_prob, value, reward, done, returns = history
        last = apply(state.params["critic"], end.obs)[:, 0]
        _, advantage = jax.lax.scan(self._gae_step, (jnp.zeros(B), last), (value, reward, done), reverse=True)
        rows = (obs, action, log_prob, advantage, advantage + value)
        rows = jax.tree.map(lambda x: x.reshape(T * B, *x.shape[2:]), rows)
        learned, epoch_keys = (state.params, state.moments, rows), jax.random.split(epoch_key, self.work.epochs)
        (params, moments, _), _ = jax.lax.scan(self._epoch, learned, epoch_keys)
        return end._replace(params=params, moments=moments, key=key), (returns, done)

    def _collect_step(self, state: State, key: Array) -> tuple[State, Rows]:
        logits, value = apply(state.params["actor"], state.obs), apply(state.params["critic"], state.obs)[:, 0]
        act_key, step_key = jax.random.split(key)
        action = jax.random.categorical(act_key, logits)
        log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], 1)[:, 0]
        keys = jax.random.split(step_key, self.work.num_envs)
        answer = self.step(keys, state.env_state, action, self.env_params)
        following, env_state, reward, terminated, truncated, _ = answer
        done = terminated | truncated
        total = state.running + reward
        row = (state.obs, action, log_prob, value, reward, done, jnp.where(done, total, 0.0))
        return state._replace(obs=following, env_state=env_state, running=jnp.where(done, 0.0, total)), row

    def _gae_step(self, carry: Pair, row: tuple[Array, Array, Array]) -> tuple[Pair, Array]:
        (trace, following), (value, reward, done) = carry, row
        delta = reward + self.work.gamma * following * (1 - done) - value
        trace = delta + self.work.gamma * self.work.gae_lambda * (1 - done) * trace
        return (trace, value), trace

    def _epoch(self, carry: tuple[Params, optax.OptState, Rows], key: Array) -> tuple[tuple, None]:
        params, moments, rows = carry
        order = jax.random.permutation(key, self.work.batch_size)
        parts = jax.tree.map(lambda x: x[order].reshape(self.work.minibatches, -1, *x.shape[1:]), rows)
        (params, moments), _ = jax.lax.scan(self._minibatch, (params, moments), parts)
        return (params, moments, rows), None

    def _minibatch(self, carry: tuple[Params, optax.OptState], rows: Rows) -> tuple[tuple, None]:
        params, moments = carry
        updates, moments = self.optimizer.update(jax.grad(self._loss)(params, rows), moments, params)
        return (optax.apply_updates(params, updates), moments), None

    def _loss(self, params: Params, rows: Rows) -> Array:
        obs, action, old, advantage, target = rows
        log_probs, clip = jax.nn.log_softmax(apply(params["actor"], obs)), self.work.clip
        ratio = jnp.exp(jnp.take_along_axis(log_probs, action[:, None], 1)[:, 0] - old)
        gain = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        policy_loss = -jnp.minimum(ratio * gain, jnp.clip(ratio, 1 - clip, 1 + clip) * gain).mean()
        value_loss = ((apply(params["critic"], obs)[:, 0] - target) ** 2).mean()
        entropy = -(jnp.exp(log_probs) * log_probs).sum(-1).mean()
        return policy_loss + 0.5 * value_loss - self.work.entropy * entropy


def make_network(key: Array, outputs: int, gain: float) -> list[tuple[Array, Array]]:
    """Three layers with orthogonal weights."""
    layers = zip(jax.random.split(key, 3), [(4, 64), (64, 64), (64, outputs)], [2**0.5, 2**0.5, gain], strict=True)
    return [(jax.nn.initializers.orthogonal(g)(k, shape), jnp.zeros(shape[1])) for k, shape, g in layers]


def apply(network: list[tuple[Array, Array]], x: Array) -> Array:
    """[..., 4] -> [..., outputs]"""
    for weight, bias in network[:-1]:
        x = jnp.tanh(x @ weight + bias)
    return x @ network[-1][0] + network[-1][1]


def start(work: Work) -> Trainer:
    """Everything between two calls, an iteration of collecting and learning, is one program."""
    program = Program(work)
    train = jax.jit(program.iteration)
    held = [program.fresh(work.seed)]
    recent = Recent()
    finished: list[Rows] = []  # returns and ends [T, B] of iterations that nobody has asked about yet

    def iterate(iterations: int) -> None:
        for _ in range(iterations):
            held[0], episodes = train(held[0])
            finished.append(episodes)
        jax.block_until_ready(held)

    def restart(seed: int) -> None:
        held[0] = program.fresh(seed)
        recent.clear()
        finished.clear()

    def recent_return() -> float:
        for returns, done in finished:
            recent.extend(np.asarray(returns)[np.asarray(done)].tolist())
        finished.clear()
        return recent.mean()

    return Trainer(iterate, recent_return, restart)
