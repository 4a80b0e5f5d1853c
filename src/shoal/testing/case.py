"""What a property is tried on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """Drawn by hypothesis, and shrunk when a property fails on it."""

    num_envs: int
    num_steps: int
    seed: int
    action_seed: int

    def __str__(self) -> str:
        return f"num_envs={self.num_envs}, seed={self.seed}, {self.num_steps} steps of random actions"
