"""A world that brings every part a world may bring, for tests: named `tests.training.nudge:NUDGE`."""

from dataclasses import dataclass

import numpy as np
from torch import nn

from shoal.training.hooks import Hooks
from shoal.training.lab import (
    Headline,
    Lab,
    NamedPolicy,
    OwnEvaluation,
    Preset,
    Shorthands,
    Verb,
    Verdict,
)
from shoal.world import Command, World
from tests.training.worlds import ArrayWalk


@dataclass(frozen=True)
class NudgeOptions:
    """Stay near the middle against a wind."""

    wind: float = 0.0
    """How far every step moves a lane to the right."""
    calm: bool = False
    """No wind at all."""


class Nudge(ArrayWalk):
    def __init__(self, num_envs, wind, **options):
        super().__init__(num_envs, **options)
        self.wind, self.gusts = wind, 1

    def transition(self, action):
        self.state["pos"] += self.wind * self.gusts
        return super().transition(action)


def make_nudge(num_envs, options, batch):
    return Nudge(num_envs, 0.0 if options.calm else options.wind, **batch.only("autoreset_mode", "copy"))


class Linear(nn.Module):
    """A network with no hidden layer."""

    state_size = 0

    def __init__(self, inputs, outputs):
        super().__init__()
        self.policy, self.critic = nn.Linear(inputs, outputs), nn.Linear(inputs, 1)

    def forward(self, obs, state):
        return self.policy(obs), self.critic(obs).squeeze(-1), state


@dataclass(frozen=True)
class NudgeTraining:
    """What training can be told."""

    gusts: int = 1
    """How much stronger the wind is in training."""


class FirstWeights:
    """Logs one number of the network, to see that it is this one which learns."""

    def after_iteration(self, loop):
        weight = float(loop.agent.network.policy.weight[0, 0].detach())
        return {"train/first_weight": weight, "nudge/gusts": loop.batch.gusts}


def network(batch, config):
    return Linear(batch.single_observation_space.shape[0], int(batch.single_action_space.n))


def hooks(batch, config):
    batch.gusts = config.extra.gusts
    return Hooks(callbacks=(FirstWeights(),))


class Still:
    def __call__(self, obs, info):
        return (obs[:, 0] < 0).astype(np.int64)

    def forget(self, ended):
        """Nothing is remembered."""


@dataclass(frozen=True)
class NudgeEvaluation:
    """How nudge is evaluated."""

    drift: bool = False
    """Measure where lanes end instead of what they earn."""


def evaluate(player, options, episodes, seed):
    if not options.drift:
        return None
    actor = player.act_in(player.batch)
    obs, info = player.batch.reset(seed=seed)
    for _ in range(5):
        obs, *_, info = player.batch.step(actor(obs, info))
    mean = float(np.mean(obs[:, 0]))
    return Verdict(f"{player.title}: mean position {mean:.2f} after 5 steps", {"drift": mean})


@dataclass(frozen=True)
class NudgeShorthands:
    """How nudge counts."""

    walks: int | None = None
    """Walks of twenty steps."""


def translate(options, given, base):
    return {} if options.walks is None else {"total_steps": 20 * options.walks}


@dataclass(frozen=True)
class Greeting:
    """Say hello."""

    name: str = "wind"
    """To whom."""


def greet(command):
    print(f"hello {command.name}")
    return 0


GREET = Verb(Greeting, greet)
LAB = Lab(
    options=NudgeTraining,
    presets={
        "ppo": Preset("the usual", {"num_envs": 8, "algo": {"num_steps": 16, "minibatches": 2}}),
        "tiny": Preset("two lanes", {"num_envs": 2}),
    },
    headlines=(Headline("nudge/gusts", "gusts", ".1f"),),
    network=network,
    hooks=hooks,
    policies=lambda options: {"still": NamedPolicy("walks towards the middle", lambda batch: Still(), {"calm": True})},
    default_policy="still",
    evaluation=OwnEvaluation(NudgeEvaluation, evaluate),
    shorthands=Shorthands(NudgeShorthands, translate),
)
NUDGE = World(
    "nudge",
    "test/Nudge-v0",
    "stay near the middle against a wind",
    NudgeOptions,
    make_nudge,
    "tests.training.nudge:LAB",
    {"greet": Command("say hello", "tests.training.nudge:GREET")},
)
