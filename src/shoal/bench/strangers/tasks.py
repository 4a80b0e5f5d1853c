"""What is trained: MuJoCo at one set of settings for both, Box2D at what RL Baselines3 Zoo publishes for it.

Only the standard library is imported here: both contenders read it in processes of their own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """An environment, an agent and its settings, the same for everybody."""

    env: str
    algo: str
    total_steps: int
    num_envs: int = 1
    num_steps: int = 2_048
    epochs: int = 10
    minibatch: int = 64
    """Transitions of one gradient step of PPO."""
    lr: float = 3e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy: float = 0.0
    normalise: bool = False
    """Observations and rewards by running statistics."""
    warmup: int = 10_000
    """Random steps of SAC."""
    solved: float | None = None
    """The mean return at which the environment counts as solved."""

    @property
    def name(self) -> str:
        """How it is called on the command line and in tables."""
        return f"{self.env} {self.algo}"


MUJOCO = ("Hopper-v5", "HalfCheetah-v5", "Walker2d-v5")
TASKS = {
    task.name: task
    for task in (
        *(Task(env, "ppo", 300_000, num_envs=4, num_steps=512, normalise=True) for env in MUJOCO),
        *(Task(env, "sac", 30_000) for env in MUJOCO),
        Task(
            "LunarLander-v3",
            "ppo",
            1_000_000,
            num_envs=16,
            num_steps=1_024,
            epochs=4,
            gamma=0.999,
            gae_lambda=0.98,
            entropy=0.01,
            solved=200.0,
        ),
        Task(
            "BipedalWalker-v3",
            "ppo",
            5_000_000,
            num_envs=32,
            num_steps=2_048,
            gamma=0.999,
            clip=0.18,
            normalise=True,
            solved=300.0,
        ),
    )
}
