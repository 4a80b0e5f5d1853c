"""Settings of the agents. No torch in here: the command line reads them before anything heavy is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Annotated, ClassVar, Literal, get_args

from shoal.errors import ConfigError, nearest
from shoal.options import Flag
from shoal.platform import total_memory

NETWORKS = ("auto", "mlp", "nature", "impala", "small")
"""Standard networks; see `shoal.agents.encoders`."""
Activation = Literal["tanh", "relu"]
BYTES_PER_WEIGHT = 32  # of two networks, each with its gradient and Adam's two moments
NETWORK_FLAG = Flag("|".join((*NETWORKS, "MODULE:NAME")))
MINIBATCH, MOST_MINIBATCHES, MOST_WITH_MEMORY = 64, 32, 8
"""Steps in a minibatch of PPO, and minibatches in a rollout, where nothing is said: a memory is unrolled step by step,
which takes as long for few lanes as for many."""
_RULES: dict[str, Callable[[float], bool]] = {
    "be at least 0": lambda value: value >= 0,
    "be at least 1": lambda value: value >= 1,
    "be above 0": lambda value: value > 0,
    "be above 0 and at most 1": lambda value: 0 < value <= 1,
    "lie between 0 and 1": lambda value: 0 <= value <= 1,
}


def _check(config: object, rule: str, *fields: str) -> None:
    """`ConfigError` unless these fields obey the rule, or are None."""
    for field in fields:
        value = getattr(config, field)
        if value is not None and not _RULES[rule](value):
            raise ConfigError(f"{field} must {rule}, not {value}.")


def is_own(network: str) -> bool:
    """Whether this names a network of the user's, and not a standard one."""
    return ":" in network


def _check_network(network: str) -> None:
    if network not in NETWORKS and not is_own(network):
        meant = nearest(network, NETWORKS)
        hint = f" Did you mean {meant!r}?" if meant else ""
        raise ConfigError(
            f"No network {network!r}.{hint} Standard ones are {', '.join(NETWORKS)}; yours is package.module:Net."
        )


@dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation (Schulman et al. 2017)."""

    name: ClassVar[str] = "ppo"

    num_steps: int = 32
    """Steps per environment between updates. Without a preset or a memory, 2,048 in all lanes if that is more."""
    epochs: int = 10
    """Passes over a rollout."""
    minibatches: int | None = None
    """Parts of a rollout, each of which makes one gradient step per epoch; if not given, parts have 64 steps, and
    there are at most 32 of them, or 8 with memory."""
    lr: float = 3e-4
    """Learning rate of Adam. With a memory and without a preset, 0.001."""
    lr_final: float | None = None
    """Learning rate at the end of the run, approached linearly; none keeps it constant."""
    gamma: float = 0.99
    """Discount per step."""
    gae_lambda: float = 0.95
    """Decay of the advantage trace: 0 is one-step, 1 is the whole return."""
    clip: float = 0.2
    """How far the probability ratio may move before its gradient stops."""
    clip_final: float | None = None
    """Clip range at the end of the run, approached linearly; none keeps it constant."""
    entropy: float = 0.01
    """Weight of the entropy bonus."""
    entropy_final: float | None = None
    """Entropy weight at the end of the run, approached linearly; none keeps it constant."""
    value_weight: float = 0.5
    """Weight of the squared value error."""
    value_clip: float | None = None
    """Clip the change of the value estimate to this range; none leaves it free."""
    max_grad_norm: float = 0.5
    """Gradients longer than this are shortened to it."""
    target_kl: float | None = 0.02
    """Stop the epochs of an update once the policy has moved 1.5 times this far; none never stops early."""
    normalise_advantage: bool = True
    """Bring the advantages of a minibatch to zero mean and unit variance."""
    normalise_obs: bool = True
    """Bring observations to zero mean and unit variance by running statistics."""
    normalise_reward: bool = True
    """Divide rewards by the running standard deviation of the discounted return."""
    squash: bool = False
    """Map continuous actions onto the box by tanh instead of clipping them."""
    network: Annotated[str, NETWORK_FLAG] = "auto"
    """What reads observations. For images: nature, impala, or small (for boards); auto chooses by their size, and mlp
    flattens them. Or a network of your own, as package.module:Net (docs/networks.md)."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers of the standard network; where there are images, of the layers for the other
    numbers."""
    activation: Activation = "tanh"
    """Activation of the standard network."""
    memory: Literal["none", "gru", "lstm"] = "none"
    """A recurrent cell after the hidden layers, for tasks that must remember."""
    memory_size: int = 64
    """Width of the recurrent cell."""
    fast: bool = True
    """Compute updates by hand-written, compiled code where there is some (standard networks on the CPU); off keeps to
    plain torch."""
    compile: bool = False
    """Use torch.compile for networks that run through plain torch, e.g. convolutions; on a GPU with CUDA graphs."""

    def __post_init__(self) -> None:
        _check(self, "be at least 1", "num_steps", "epochs", "minibatches", "memory_size")
        _check(self, "lie between 0 and 1", "gamma", "gae_lambda")
        _check(self, "be above 0", "lr", "clip", "max_grad_norm")
        _check_network(self.network)
        check_hidden(self.hidden, self.activation)

    def check_batch(self, num_envs: int) -> None:
        """`ConfigError` unless the minibatches divide a rollout of `num_envs` lanes."""
        rows = self._rows(num_envs)
        if self.minibatches is not None and rows % self.minibatches:
            what = f"the {num_envs} lanes" if self.memory != "none" else f"the batch of {rows}"
            sizes = "" if self.memory != "none" else f" (= {num_envs} envs x {self.num_steps} steps)"
            raise ConfigError(
                f"minibatches={self.minibatches} does not divide {what}{sizes}. "
                f"Try {nearest_divisor(rows, self.minibatches)}."
            )

    def num_minibatches(self, num_envs: int) -> int:
        """Into how many parts a rollout of `num_envs` lanes is cut."""
        self.check_batch(num_envs)
        if self.minibatches is not None:
            return self.minibatches
        most = MOST_MINIBATCHES if self.memory == "none" else MOST_WITH_MEMORY
        wanted = min(most, num_envs * self.num_steps // MINIBATCH)
        return nearest_divisor(self._rows(num_envs), max(1, wanted))

    def _rows(self, num_envs: int) -> int:
        """What is dealt into minibatches: steps, or with memory whole lanes."""
        return num_envs if self.memory != "none" else num_envs * self.num_steps


@dataclass(frozen=True)
class OffPolicyConfig:
    """What agents that learn from a replay memory share."""

    num_steps: int = 32
    """Steps per environment between two rounds of updates."""
    updates_per_step: float = 1.0
    """Gradient updates per step, as `update_rule` counts steps."""
    update_rule: Literal["step", "batch"] = "step"
    """Which steps earn updates: step, those of every lane, so that the number of lanes does not change how much is
    learned from each; batch, one of all lanes together, so that more lanes collect more for the same updates."""
    warmup: int = 5_000
    """Environment steps of random actions before the first update."""
    batch_size: int = 256
    """Transitions of one update."""
    replay_capacity: int = 1_000_000
    """Transitions that the replay memory holds; the oldest are overwritten."""
    n_step: int = 1
    """Rewards that a target sums before it looks at a value, fewer where the episode ends."""
    prioritised: bool = False
    """Draw transitions by their last error (Schaul et al. 2016) instead of evenly."""
    priority_exponent: float = 0.6
    """How much errors count: 0 draws evenly."""
    priority_correction: float = 0.4
    """How much of the bias of drawing by priority is corrected at first; all of it at the end of the run."""
    lr: float = 3e-4
    """Learning rate of Adam."""
    lr_final: float | None = None
    """Learning rate at the end of the run, approached linearly; none keeps it constant."""
    gamma: float = 0.99
    """Discount per step."""
    network: Annotated[str, NETWORK_FLAG] = "auto"
    """What reads observations. For images: nature, impala, or small (for boards); auto chooses by their size, and mlp
    flattens them. Or a network of your own, as package.module:Net (docs/networks.md)."""
    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers, with ReLU."""
    random_shift: int = 0
    """Pixels by which images that are learned from are moved at random, edges repeated (Yarats et al. 2021)."""
    scale_obs: bool = False
    """Divide observations by their root mean square during the warm-up, fixed from then on."""
    reward_scale: float = 1.0
    """What rewards are multiplied by before they are learned from."""
    fast: bool = True
    """Compute updates by hand-written, compiled code where there is some (on the CPU); off keeps to plain torch."""
    compile: bool = False
    """Use torch.compile for networks that run through plain torch, e.g. convolutions; on a GPU with CUDA graphs."""

    def __post_init__(self) -> None:
        _check(self, "be at least 1", "num_steps", "batch_size", "replay_capacity", "n_step")
        _check(self, "lie between 0 and 1", "gamma", "priority_exponent", "priority_correction")
        _check(self, "be above 0", "lr", "updates_per_step", "reward_scale")
        _check(self, "be at least 0", "warmup", "random_shift")
        _check_network(self.network)
        check_hidden(self.hidden, "relu")
        for field in ("batch_size", "n_step"):
            if getattr(self, field) > self.replay_capacity:
                raise ConfigError(
                    f"replay_capacity={self.replay_capacity} is smaller than {field}={getattr(self, field)}. "
                    f"Raise replay_capacity or lower {field}."
                )

    def check_batch(self, num_envs: int) -> None:
        """`ConfigError` if one round of steps would push itself out of the replay memory."""
        if num_envs * self.num_steps > self.replay_capacity:
            raise ConfigError(
                f"replay_capacity={self.replay_capacity} is smaller than what {num_envs} lanes collect in "
                f"num_steps={self.num_steps} steps. Raise replay_capacity to at least {num_envs * self.num_steps}."
            )


@dataclass(frozen=True)
class SACConfig(OffPolicyConfig):
    """Soft actor-critic with twin critics and a learned temperature (Haarnoja et al. 2018)."""

    name: ClassVar[str] = "sac"

    tau: float = 0.005
    """Share of the critics that the target critics take over at every update."""
    temperature: float | None = None
    """Weight of the entropy; none learns it."""
    target_entropy: float | None = None
    """Entropy that the temperature aims at; none is minus the number of continuous actions, or half of what is possible
    for discrete ones."""
    pessimism: float = 1.0
    """What the twin critics' estimates count for together: 1 takes the smaller one, 0 their mean. The smaller one is a
    little too low at every step, which adds up where luck keeps the critics apart and episodes are long."""
    pessimism_final: float | None = None
    """Pessimism at the end of the run, approached linearly; none keeps it constant."""
    noise: Literal["white", "pink", "red"] = "white"
    """How exploration is correlated in time, within each lane: not at all, as 1/f, or over many steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self, "be above 0 and at most 1", "tau")
        if self.temperature is not None and self.temperature < 0.0:
            raise ConfigError(f"temperature must be at least 0, not {self.temperature}. Leave it out to learn it.")
        for field in ("pessimism", "pessimism_final"):
            value = getattr(self, field)
            if value is not None and not 0.0 <= value <= 1.0:
                raise ConfigError(f"{field} must lie between 0 (the mean) and 1 (the smaller), not {value}.")


@dataclass(frozen=True)
class DDDQNConfig(OffPolicyConfig):
    """Duelling double deep Q-learning (Wang et al. 2016, van Hasselt et al. 2016)."""

    name: ClassVar[str] = "dddqn"

    target_every: int = 1_000
    """Updates after which the target network becomes a copy of the other; with tau, not used."""
    tau: float | None = None
    """Share that the target network takes over at every update, instead of whole copies."""
    epsilon: float = 1.0
    """Share of random actions at first."""
    epsilon_final: float = 0.05
    """Share of random actions from the end of exploring on."""
    explore: float = 0.2
    """Share of the run over which random actions become fewer."""
    loss: Literal["huber", "squared"] = "huber"
    """What an error costs."""
    max_grad_norm: float = 10.0
    """Gradients longer than this are shortened to it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self, "lie between 0 and 1", "epsilon", "epsilon_final", "explore")
        _check(self, "be at least 1", "target_every")
        _check(self, "be above 0 and at most 1", "tau")
        _check(self, "be above 0", "max_grad_norm")


def nearest_divisor(number: int, wanted: int) -> int:
    """The divisor of `number` closest to `wanted`, the smaller of two equally close; 1 if there is none near."""
    if wanted >= number:
        return number
    nearby = range(min(wanted, 1_000_000))
    return next((d for k in nearby for d in (wanted - k, wanted + k) if number % d == 0), 1)


def scheduled(start: float, end: float | None, progress: float) -> float:
    """`start` at progress 0, `end` at progress 1 and beyond, linearly; `start` throughout where `end` is None."""
    if end is None:
        return start
    return start + (end - start) * min(max(progress, 0.0), 1.0)


def check_hidden(hidden: Sequence[int], activation: str) -> None:
    """`ConfigError` for layers that cannot be built."""
    if any(not isinstance(width, Integral) or width < 1 for width in hidden):
        raise ConfigError(f"Every width in hidden must be a whole number of at least 1, not {tuple(hidden)}.")
    weights = max(hidden, default=0) + sum(a * b for a, b in pairwise(hidden))
    needed, room = weights * BYTES_PER_WEIGHT, total_memory()
    if room is not None and needed > room:
        raise ConfigError(
            f"hidden={tuple(hidden)} makes {weights:,} weights and needs {needed / 2**30:,.0f} GiB to learn, but "
            f"this machine has {room / 2**30:,.0f} GiB. Use narrower layers."
        )
    if activation not in get_args(Activation):
        raise ConfigError(f"activation={activation!r} is unknown. Use {' or '.join(map(repr, get_args(Activation)))}.")
