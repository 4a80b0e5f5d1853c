"""A trained policy as plain arrays: small to store, quick to load, and acting needs no torch.

One safetensors file a policy. Its metadata are two JSON objects: `policy`, the settings, and `about`, where it comes
from (`command`, `step`, and what its world has to say).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.agents.blocks import Layer, as_layer, padded, times
from shoal.agents.eyes import Eye
from shoal.errors import ConfigError, missing_extra
from shoal.reading import is_number, parse_json, shortened

if TYPE_CHECKING:
    from shoal.agents.agent import Agent

Json = dict[str, Any]
_ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"relu": lambda x: np.maximum(x, 0.0), "tanh": np.tanh}
_HEADS = ("tanh", "clip", "choice", "choices")
_ARRAYS = ("mean", "scale", "low", "high")
_SETTINGS = ("activation", "num_actions", "nvec", "start", "memory", "hold", "seats")
_CELL = ("cell_weight", "cell_bias", "cell_state_weight", "cell_state_bias")
_LARGEST_WEIGHT = 1e9
"""Beyond it products overflow after a few layers, and actions are no longer numbers."""


@dataclass
class FrozenPolicy:
    """The best action of an actor: layers, then what `head` makes of the outputs.

    Heads: "tanh" (means, squashed) and "clip" (means, clipped), both onto [low, high]; "choice" (the number of the
    largest), which `table` [K, A], if there is one, turns into the action that it stands for; "choices" (one of each
    group of `nvec` outputs). Outputs beyond the actions, such as standard deviations, do not count.
    """

    layers: Sequence[Layer]
    """(weight [in, out], bias [out]) in order; `activation` after all but the last."""
    head: str
    activation: str = "relu"
    mean: np.ndarray | float = 0.0
    scale: np.ndarray | float = 1.0
    """Observations become (obs - mean) * scale first."""
    clip: np.ndarray | float | None = None
    """Then they are limited to [-clip, clip], all of them or each by its own."""
    eyes: Sequence[Eye] = ()
    """What makes features of the images in a row; the other numbers stand behind them, after their own layers."""
    numbers: Sequence[Layer] = ()
    """Layers for numbers beside images, `activation` after each of them."""
    low: np.ndarray | float = -1.0
    high: np.ndarray | float = 1.0
    num_actions: int | None = None
    """How many of the outputs count; all of them if it is left out."""
    table: np.ndarray | None = None
    nvec: Sequence[int] = ()
    start: Sequence[int] | int = 0
    """What the first choice is called: one number, or one of each group."""
    memory: str = "none"
    """A "gru" or "lstm" cell before the last layer, or "none"."""
    cell: tuple[Layer, Layer] | None = None
    """What the cell makes of its input and of its state: weights [in, gates * S] and [S, gates * S] with their biases,
    the gates in torch's order."""
    hold: int = 1
    """For the caller: an action is meant to be kept for this many steps."""
    seats: int = 0
    """In games: so many of the numbers, the last ones, say in which seat of the lane it sits; 0 if none do."""
    about: Json = field(default_factory=dict)
    """Where the policy comes from."""

    def __post_init__(self) -> None:
        self.layers, self.numbers = ([as_layer(layer) for layer in layers] for layers in (self.layers, self.numbers))
        self.cell = None if self.cell is None else (as_layer(self.cell[0]), as_layer(self.cell[1]))
        for name in ("low", "high", "table"):
            if getattr(self, name) is not None:
                setattr(self, name, np.asarray(getattr(self, name), np.float32))
        for name in ("mean", "scale"):  # statistics may need all their digits: a mean can be large beside its spread
            array = np.asarray(getattr(self, name))
            setattr(self, name, array if array.dtype == np.float64 and array.ndim else array.astype(np.float32))

    @cached_property
    def num_features(self) -> int:
        """Numbers per observation."""
        inputs = (self.cell or self.layers)[0] if len(self.layers) == 1 else self.layers[0]
        width = self.numbers[0][0].shape[0] if self.numbers else inputs[0].shape[0] - sum(eye.size for eye in self.eyes)
        return width + sum(eye.pixels for eye in self.eyes)

    @property
    def action_width(self) -> int:
        """Numbers per action, or how many choices there are."""
        if self.table is not None:
            return self.table.shape[1]
        return self.num_actions or len(self.nvec) or self.layers[-1][0].shape[1]

    @property
    def state_size(self) -> int:
        """Numbers that it remembers between two steps of an episode; 0 without memory."""
        return 0 if self.cell is None else self.cell[1][0].shape[0] * (2 if self.memory == "lstm" else 1)

    def __call__(
        self, obs: np.ndarray, action_mask: np.ndarray | None = None, seat: np.ndarray | None = None
    ) -> np.ndarray:
        """obs [N, D] -> actions [N, A] float32, or [N] int64 for choices without a table; [N, G] for groups of them.

        `action_mask` [N, K] is for choices: True where one is allowed. With memory, every row begins an episode. Where
        `seat` [N] is given, observations are those of a game, to which what `seats` speaks of is yet to be added.
        """
        if self.seats and seat is not None:
            obs = np.concatenate([obs, np.eye(self.seats, dtype=np.float32)[seat]], 1)
        return self.step(obs, action_mask, None)[0]

    def step(
        self, obs: np.ndarray, action_mask: np.ndarray | None, state: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """As `__call__`, from `state` [N, S] (None: the beginning of an episode), with the state after it."""
        x: np.ndarray = np.asarray(obs, np.float32)
        if x.ndim != 2 or x.shape[1] != self.num_features:
            raise ConfigError(f"This policy reads observations [lanes, {self.num_features}], not {list(x.shape)}.")
        count, x = len(x), ((x - self.mean) * self.scale).astype(np.float32, copy=False)
        if self.clip is not None:
            x = np.minimum(np.maximum(x, -self.clip), self.clip)  # np.clip takes twice as long for one row
        x = self._through(self._look(x) if self.eyes else padded(x), self.layers[:-1])
        if self.cell is not None:
            x, state = self._remember(x, None if state is None else padded(state))
            state = state[:count]
        x = (times(x, self.layers[-1][0]) + self.layers[-1][1])[:count, : self.num_actions]
        return self._act(x, action_mask), state

    def _through(self, x: np.ndarray, layers: Sequence[Layer]) -> np.ndarray:
        activate = _ACTIVATIONS[self.activation]
        for weight, bias in layers:
            x = times(x, weight)
            x += bias
            x = activate(x)
        return x

    def _look(self, rows: np.ndarray) -> np.ndarray:
        """Rows [N, D] with images -> features [M, F], N rounded up to whole blocks."""
        beside = np.ones(rows.shape[1], bool)
        for eye in self.eyes:
            beside[eye.start : eye.start + eye.pixels] = False
        features = [eye(rows) for eye in self.eyes]
        return np.concatenate([*features, self._through(padded(rows[:, beside]), self.numbers)], 1)

    def _act(self, x: np.ndarray, action_mask: np.ndarray | None) -> np.ndarray:
        """From outputs [N, K] to actions."""
        if self.head == "choice":
            chosen = self._allowed(x, action_mask).argmax(1)
            return chosen + self.start if self.table is None else self.table[chosen]
        if self.head == "choices":
            groups = np.split(self._allowed(x, action_mask), np.cumsum(self.nvec)[:-1], axis=1)
            return np.stack([group.argmax(1) for group in groups], 1) + np.asarray(self.start)
        if self.head == "tanh":
            x = (self.high + self.low) / 2 + (self.high - self.low) / 2 * np.tanh(x)
        return np.clip(x, self.low, self.high)

    def _remember(self, x: np.ndarray, state: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """What the cell makes of x [N, in] and its state [N, S]: [N, H], and the state after it."""
        assert self.cell is not None
        (weight, bias), (state_weight, state_bias) = self.cell
        before = np.zeros((len(x), self.state_size), np.float32) if state is None else state
        if self.memory == "gru":
            reset, update, new = np.split(times(x, weight) + bias, 3, axis=1)
            old_reset, old_update, old_new = np.split(times(before, state_weight) + state_bias, 3, axis=1)
            share = _sigmoid(update + old_update)
            hidden = (1 - share) * np.tanh(new + _sigmoid(reset + old_reset) * old_new) + share * before
            return hidden, hidden
        hidden, kept = np.split(before, 2, axis=1)
        gates = times(x, weight) + bias + times(hidden, state_weight) + state_bias
        enter, forget, new, leave = np.split(gates, 4, axis=1)
        kept = _sigmoid(forget) * kept + _sigmoid(enter) * np.tanh(new)
        hidden = _sigmoid(leave) * np.tanh(kept)
        return hidden, np.concatenate([hidden, kept], axis=1)

    def _allowed(self, scores: np.ndarray, action_mask: np.ndarray | None) -> np.ndarray:
        if action_mask is None:
            return scores
        if action_mask.shape != scores.shape:
            raise ConfigError(f"action_mask must be {list(scores.shape)}, not {list(action_mask.shape)}.")
        return np.where(action_mask, scores, -np.inf)

    def check_fits(self, obs_width: int, action_width: int, who: str, remedy: str = "") -> None:
        """`ConfigError`, ending with `remedy`, unless it reads and writes as many numbers as that."""
        if (self.num_features, self.action_width) != (obs_width, action_width):
            raise ConfigError(
                f"{who} was made for observations of {self.num_features} numbers and actions of {self.action_width}, "
                f"but here they have {obs_width} and {action_width}.{' ' if remedy else ''}{remedy}"
            )

    # ------------------------------------------------------------------ storage

    def tensors(self) -> dict[str, np.ndarray]:
        """All arrays by name, those apart that are as `FrozenPolicy` assumes; `settings` has the rest."""
        plain = {name: getattr(FrozenPolicy, name) for name in _ARRAYS}  # a dataclass keeps its defaults there
        named = {name: getattr(self, name) for name in _ARRAYS if np.any(getattr(self, name) != plain[name])}
        for i, (weight, bias) in enumerate(self.layers):
            named |= {f"weight_{i}": weight, f"bias_{i}": bias}
        for i, (weight, bias) in enumerate(self.numbers):
            named |= {f"numbers_{i}_weight": weight, f"numbers_{i}_bias": bias}
        for i, eye in enumerate(self.eyes):
            named |= {f"eye_{i}_{name}": array for name, array in eye.tensors().items()}
        if isinstance(self.clip, np.ndarray):
            named["clip"] = self.clip
        if self.table is not None:
            named["table"] = self.table
        if self.cell is not None:
            named |= dict(zip(_CELL, (*self.cell[0], *self.cell[1]), strict=True))
        return {name: np.ascontiguousarray(array) for name, array in named.items()}

    @property
    def settings(self) -> Json:
        """What is not an array, as far as it is not as `FrozenPolicy` assumes."""
        changed = [name for name in _SETTINGS if getattr(self, name) != getattr(FrozenPolicy, name)]
        settings = {name: getattr(self, name) for name in ("head", *changed)}
        if self.clip is not None and not isinstance(self.clip, np.ndarray):
            settings["clip"] = self.clip
        return {**settings, "eyes": [eye.settings for eye in self.eyes]} if self.eyes else settings

    @classmethod
    def from_tensors(cls, tensors: dict[str, np.ndarray], settings: Json, about: Json | None = None) -> FrozenPolicy:
        """What `tensors` and `settings` describe."""
        count = sum(name.startswith("weight_") for name in tensors)
        layers = [(tensors[f"weight_{i}"], tensors[f"bias_{i}"]) for i in range(count)]
        count = sum(name.startswith("numbers_") for name in tensors) // 2
        numbers = [(tensors[f"numbers_{i}_weight"], tensors[f"numbers_{i}_bias"]) for i in range(count)]
        options = {**settings, **{name: tensors[name] for name in (*_ARRAYS, "clip", "table") if name in tensors}}
        eyes = [Eye.from_tensors(eye, _under(f"eye_{i}_", tensors)) for i, eye in enumerate(options.pop("eyes", ()))]
        if _CELL[0] in tensors:
            weight, bias, state_weight, state_bias = (tensors[name] for name in _CELL)
            options["cell"] = (weight, bias), (state_weight, state_bias)
        return cls(layers, **options, eyes=eyes, numbers=numbers, about=about or {})

    def save(self, path: Path, about: Json | None = None, half: bool = False) -> None:
        """One safetensors file; with `half` the layers take half the room, and lose the digits that do not fit."""
        from safetensors.numpy import save_file

        tensors = self.tensors()
        if half:
            layers = [name for name in tensors if name.startswith(("weight", "bias", "cell", "eye", "numbers"))]
            tensors |= {name: tensors[name].astype(np.float16) for name in layers}
        notes = {"policy": self.settings, "about": self.about if about is None else about}
        save_file(tensors, path, {name: json.dumps(note, separators=(",", ":")) for name, note in notes.items()})

    @classmethod
    def load(cls, path: str | Path) -> FrozenPolicy:
        """Read what `save` wrote."""
        try:
            from safetensors import SafetensorError, safe_open
        except ImportError:
            raise missing_extra("safetensors", "train", "A stored policy") from None
        try:
            with safe_open(path, "numpy") as file:
                notes = file.metadata() or {}
                about = parse_json(notes["about"]) if notes["about"].startswith("{") else {"command": notes["about"]}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                policy = cls.from_tensors(tensors, parse_json(notes["policy"]), about)
            policy._check()
        except (OSError, SafetensorError, LookupError, ValueError, TypeError, MemoryError) as error:
            raise ConfigError(f"{path} is not a stored policy: {error}.") from error
        return policy

    def _check(self) -> None:
        """`ValueError` unless everything fits together, so that it can act."""
        if self.head not in _HEADS or self.activation not in [*_ACTIVATIONS]:
            raise ValueError(f"there is no head {shortened(self.head)} or no activation {shortened(self.activation)}")
        if not self.layers or any(
            weight.ndim != 2 or bias.shape != weight.shape[1:] for weight, bias in (*self.layers, *self.numbers)
        ):
            raise ValueError("its layers are not weights [inputs, outputs] and biases [outputs]")
        if (self.cell is None) != (self.memory == "none") or self.memory not in ("none", "gru", "lstm"):
            raise ValueError(f"its cell does not fit memory={shortened(self.memory)}")
        if not isinstance(self.about, dict):
            raise ValueError("what is noted about it is not a table")
        sizes = [value for value in (self.hold, self.num_actions) if value is not None]
        if any(not isinstance(size, int) or isinstance(size, bool) or size < 1 for size in sizes):
            raise ValueError("hold and num_actions must be whole numbers of at least 1")
        if not isinstance(self.seats, int) or isinstance(self.seats, bool) or not 0 <= self.seats < self.num_features:
            raise ValueError(f"seats={shortened(self.seats)} is not a number of its inputs")
        if self.clip is not None and not isinstance(self.clip, np.ndarray) and not is_number(self.clip):
            raise ValueError(f"clip={shortened(self.clip)} is not a number")
        seeing = [layer for eye in self.eyes for layer in (*eye.convs, eye.last)]
        layers = [*self.layers, *self.numbers, *seeing, *(self.cell or ())]
        if not all((np.abs(array) <= _LARGEST_WEIGHT).all() for layer in layers for array in layer):
            raise ValueError(f"some of its weights are not numbers of at most {_LARGEST_WEIGHT:g}")
        if self.table is not None and (self.table.ndim != 2 or len(self.table) < self.layers[-1][0].shape[1]):
            raise ValueError("its table of actions has fewer rows than there are choices")
        if not all(np.isfinite(array).all() for array in (self.mean, self.scale)):
            raise ValueError("its mean or scale holds NaN or infinity")
        action = self(np.zeros((1, self.num_features), np.float32))  # a `ValueError` where shapes do not fit
        if not np.isfinite(action).all():
            raise ValueError("its actions are not finite")


def stored_policies(folder: Path) -> dict[str, Path]:
    """The policies stored in `folder`, by name. A folder without any is an error: an installation lost its files."""
    paths = {path.stem: path for path in sorted(folder.glob("*.safetensors"))}
    if not paths:
        raise ConfigError(f"There are no stored policies in {folder}. Install Shoal again: its files are missing.")
    return paths


def freeze(agent: Agent, table: np.ndarray | None = None) -> FrozenPolicy:
    """The best actions of SAC, DDDQN or PPO with a standard network; `table` [K, A] if choices stand for actions."""
    from shoal.agents.freezing import frozen_ppo, frozen_towers
    from shoal.agents.offpolicy import OffPolicyAgent
    from shoal.agents.ppo import PPO

    if isinstance(agent, PPO):
        return frozen_ppo(agent, table)
    if isinstance(agent, OffPolicyAgent):
        return frozen_towers(agent, table)
    raise ConfigError(f"A {type(agent).__name__} cannot be frozen. PPO, SAC and DDDQN can.")


def _under(prefix: str, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * x))  # which cannot overflow
