"""Shoal's own ways, the C loop, and the machine's limit."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.bench.contender import Run, Unavailable
from shoal.bench.step.actions import random_actions, stepping
from shoal.trees import leaves


def shoal_batch(num_envs: int, env: str, **options: Any) -> Run:
    """`shoal.make(env, num_envs, **options)`, stepped with random actions."""
    import shoal

    batch = shoal.make(env, num_envs, **options)
    batch.reset(seed=0)
    return stepping(batch, random_actions(batch.single_action_space, num_envs))


def single_lanes(num_envs: int, env: str, red: str) -> Run:
    """A plain Python loop: uncompiled lanes in batches of their own, one per red, stepped in turn `num_envs` times."""
    import shoal

    lanes = [shoal.make(env, 1, compiled=False, copy=False, red=name) for name in red.split(",")]
    for k, lane in enumerate(lanes):
        lane.reset(seed=k)
    actions = random_actions(lanes[0].single_action_space, 1)

    def run(count: int) -> int:
        for k in range(count * num_envs):
            lanes[k % len(lanes)].step(actions[k % len(actions)])
        return count

    return run


def c_loop(num_envs: int, columns: bool = False) -> Run:
    """CartPole by hand in C, over records or over columns."""
    import gymnasium as gym

    from shoal.bench.step.c_loop import cartpole_in_c

    batch = cartpole_in_c(num_envs, columns=columns)
    return stepping(batch, random_actions(gym.spaces.Discrete(2), num_envs))


def board(num_envs: int, kernel: str, **options: Any) -> Run:
    """The class `kernel` of boards.py."""
    import shoal
    from shoal.bench.step import boards

    batch = shoal.make(getattr(boards, kernel), num_envs, **options)
    batch.reset(seed=0)
    return stepping(batch, random_actions(batch.single_action_space, num_envs))


def board_in_c(num_envs: int, kernel: str) -> Run:
    """The same board by hand in C."""
    from shoal.bench.step import boards, c_loop

    rules = getattr(boards, kernel)
    return stepping(c_loop.board_in_c(rules, num_envs), random_actions(rules.action_space, num_envs))


def memory_limit(num_envs: int, env: str) -> Run:
    """Only move as many bytes as a step reads and writes: what no loop over these lanes can beat."""
    import shoal
    from shoal.vector.kernel.batch import KernelBatch

    batch = shoal.make(env, num_envs)
    if not isinstance(batch, KernelBatch):
        raise Unavailable("only kernels know the size of their lanes")
    batch.reset(seed=0)
    step = batch.step(batch.action_space.sample())
    touched = sum(array.nbytes for array in leaves((batch.get_state(), step[:4])))
    source, target = np.ones(touched, np.uint8), np.zeros(touched, np.uint8)

    def run(count: int) -> int:
        for _ in range(count):
            np.copyto(target, source)
        return count

    return run


def two_processes(num_envs: int, env: str) -> Run:
    """Half of the lanes in each of two processes that never wait for each other within a run: the limit of workers."""
    import multiprocessing

    from shoal.bench.step.peers import gymnasium_vector

    fork: Any = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()
    half = gymnasium_vector(num_envs // 2, env, "sync")

    def serve() -> None:
        ours.close()
        while count := theirs.recv():
            theirs.send(half(count))

    other = fork.Process(target=serve, daemon=True)
    other.start()

    def run(count: int) -> int:
        ours.send(count)
        half(count)
        return ours.recv()

    def close() -> None:
        ours.send(0)
        other.join()

    run.close = close  # type: ignore[attr-defined]
    return run
