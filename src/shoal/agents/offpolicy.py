"""What agents with a replay memory share: remembering steps, counting updates, drawing batches, saving it all.

`update` reads top to bottom. How much is learned follows from environment steps, so the number of lanes changes speed
and not the algorithm; with `update_rule="batch"` it follows from steps of the batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from shoal.agents.adam import FlatAdam
from shoal.agents.checks import check_device, check_parts, take_over
from shoal.agents.config import OffPolicyConfig, scheduled
from shoal.agents.encoders import encoder_for, shifted_images
from shoal.agents.frames import Allocate, Frames
from shoal.agents.n_step import EpisodeWindow, Judge, NStepWindow, Steps, Transitions
from shoal.agents.networks import Encoder, FlattenObs
from shoal.agents.replay import PrioritisedReplay, Replay, check_room, columns
from shoal.agents.rollout import Rollout
from shoal.agents.share import Share
from shoal.errors import ConfigError, LaneFault
from shoal.platform import total_memory
from shoal.trees import Tree, map_tree

Source = Callable[[Rollout], Steps]
"""From the rollout just collected to steps to learn from, as many every time."""


class Mirror(NamedTuple):
    """A symmetry of the world: what an observation and an action become in the mirror."""

    obs: np.ndarray  # [D] signs
    action: np.ndarray  # [A] signs of continuous actions, or [number of actions] which one each becomes
    order: np.ndarray | None = None  # [D] the place from which each number of the image comes, if not its own


class Seen(NamedTuple):
    """Observations of transitions, in their own types. N of them."""

    obs: Tree  # [N, *obs]
    next_obs: Tree  # [N, *obs]


class OffPolicyAgent(ABC):
    """Base of SAC and DDDQN, which add networks, `act_batch` and `learn`."""

    raw_shape: tuple[int, ...]
    raw_dtype: torch.dtype
    state_size = 0
    METRICS: tuple[str, ...] = ()
    """Names of what `learn` adds to `self.sums`."""
    ACTOR = ""
    """The name of the network that acts."""

    def __init__(
        self, observation_space: gym.Space, config: OffPolicyConfig, network: nn.Module | None, device: str, seed: int
    ) -> None:
        self.config, self.device = config, check_device(device)
        self.generator = torch.Generator().manual_seed(seed)
        self.flatten = FlattenObs(observation_space)
        self.encoder = encoder_for(observation_space, network, config, self.generator, self.device)
        self.frames = None if self.encoder is None else Frames(observation_space, config.replay_capacity)
        self.num_steps = config.num_steps
        self.num_features = self.flatten.size if self.encoder is None else self.encoder.size
        self.scale = torch.ones(self.num_features if self.encoder is None else 1)
        self.num_env_steps = self.num_updates = 0
        self.owed = 0.0  # updates that steps have earned and that were not made yet
        self.experienced = False  # whether the networks come from another run
        self.lr, self.correction = config.lr, config.priority_correction
        self.sources: list[Source] = [self.steps_of]
        self.windows = [self._window()]
        self.mirror: Mirror | None = None
        self.share: Share | None = None
        self._saved_pending: dict[int, Steps] = {}  # of sources that a resumed run has not named yet

    def _make_replay(self, num_choices: int, keep_masks: bool = False) -> None:
        """Called by subclasses once they know their actions; `num_choices` is 0 for continuous ones.

        What next_obs allows is always remembered, what obs allows only with `keep_masks`.
        """
        config, width = self.config, self.raw_shape[0] if self.raw_shape else 1
        self.num_choices, self.keeps_masks = num_choices, keep_masks
        # of an observation that is kept elsewhere, a row has the numbers, each as wide as two of its own
        obs_width = self.num_features if self.frames is None else 2 * self.frames.width
        self.columns = columns(obs_width, width, num_choices, num_choices if keep_masks else 0)
        if config.prioritised:
            exponent = config.priority_exponent
            self.replay: Replay = PrioritisedReplay(config.replay_capacity, self.columns.width, exponent)
        else:
            self.replay = Replay(config.replay_capacity, self.columns.width)
        self.rows = torch.zeros(config.batch_size, self.columns.width)
        self.sums = torch.zeros(len(self.METRICS), dtype=torch.float64)

    def keep_memory_in(self, allocate: Allocate, spare: int) -> None:
        """Use memory from `allocate` for transitions and frames, with places for `spare` more than the capacity."""
        self.replay.keep_in(lambda shape: allocate("rows", shape, np.dtype(np.float32)), spare)
        if self.frames is not None:
            self.frames.keep_in(allocate, spare)

    def check_room(self, free: int, spare: int, where: str) -> None:
        """`ConfigError` with what would fit, unless the memory with `spare` more places has room in `free` bytes."""
        of_frames = 0 if self.frames is None else self.frames.bytes_per_transition
        check_room(self.config.replay_capacity, spare, 4 * self.columns.width + of_frames, free, where)

    # ------------------------------------------------------------------ for hooks

    def learn_also_from(self, source: Source) -> None:
        """Remember more steps than the rollout's, e.g. those of the other player."""
        if self.frames is not None:
            raise ConfigError(
                "With images or a network of your own, only steps of the lanes themselves can be learned from."
            )
        self.sources.append(source)
        self.windows.append(self._window())
        self.windows[-1].pending = self._saved_pending.pop(len(self.windows) - 1, None)

    def hold_episodes(self, judge: Judge | None) -> None:
        """From now on remember steps only when their episode is over and `judge` has seen it; None ends that.

        Called between episodes, e.g. when all lanes have just been cut: what is pending is not carried over.
        """
        self.windows = [self._window(judge) for _ in self.sources]

    def _window(self, judge: Judge | None = None) -> NStepWindow:
        n, gamma = self.config.n_step, self.config.gamma
        return NStepWindow(n, gamma) if judge is None else EpisodeWindow(n, gamma, judge)

    def cut_episodes(self, lanes: slice = slice(None)) -> None:
        """These lanes are reset from outside: their next steps do not continue what they have done so far."""
        for window in self.windows:
            window.cut(lanes)

    # ------------------------------------------------------------------ learning

    @abstractmethod
    def learn(self, rows: Tensor, weights: Tensor | None, seen: Seen | None = None) -> Tensor:
        """One update from `self.rows` [N, width] on the device; `weights` [N]: what each counts. Returns errors [N].

        `seen` are the observations where they are not in the rows.
        """

    def update(self, rollout: Rollout, progress: float = 0.0) -> dict[str, float]:
        """Remember what was collected, then make the updates that it earned."""
        config = self.config
        for source, window in zip(self.sources, self.windows, strict=True):
            self._remember(window.push(source(rollout)))
        self.num_env_steps += rollout.num_steps * rollout.num_envs
        self.lr = scheduled(config.lr, config.lr_final, progress)
        self.correction = scheduled(config.priority_correction, 1.0, progress)
        metrics = {"train/replay_size": float(self.replay.count)}
        if not self.warm:
            return metrics
        counted = rollout.num_envs if config.update_rule == "step" else 1
        self.owed += config.updates_per_step * rollout.num_steps * counted
        # short episodes may leave a memory of frames with fewer transitions than its capacity
        wanted = 0 if self.frames is not None else min(config.warmup, config.replay_capacity)
        if self.replay.count < max(config.batch_size, wanted):
            return metrics  # what these steps have earned is made up for once there is enough to draw from
        if config.scale_obs and not self.num_updates and not self.experienced:
            self._fix_scale()
        due = int(self.owed)
        self.owed -= due
        self.sums.zero_()
        for _ in range(due):
            self._update_once()
        return {**metrics, **self._means(due)}

    @property
    def warm(self) -> bool:
        """Whether the warm-up is over."""
        return self.num_env_steps >= self.config.warmup

    @property
    def ready(self) -> bool:
        """Whether actions are the networks' own: until then they are random."""
        return self.warm or self.experienced

    def _update_once(self) -> None:
        drawn = self.replay.draw(self.config.batch_size, self.generator, self.correction)
        rows = self.replay.read(drawn.numbers, out=self.rows)
        if self.mirror is not None:
            self._reflect(rows[::2], self.mirror)
        seen = None if self.frames is None else self._look_up(rows, self.frames)
        if self.config.scale_obs:
            rows[:, self.columns.obs] *= self.scale
            rows[:, self.columns.next_obs] *= self.scale
        rows = rows.to(self.device)
        errors = self.learn(rows, None if drawn.weights is None else drawn.weights.to(self.device), seen)
        self.num_updates += 1
        if self.config.prioritised:
            self.replay.update_priorities(drawn.numbers, errors.cpu().numpy())

    def _look_up(self, rows: Tensor, frames: Frames) -> Seen:
        """The observations whose frames rows [N, width] name, on the device, moved at random if that is asked for."""
        both = torch.stack([rows[:, self.columns.obs], rows[:, self.columns.next_obs]]).view(torch.int64)
        seen = frames.read(both.flatten(0, 1).numpy())
        seen = shifted_images(seen, self.flatten, self.config.random_shift, self.generator)
        obs, next_obs = (
            map_tree(lambda leaf, half=half: leaf.chunk(2)[half].to(self.device), seen) for half in range(2)
        )
        return Seen(obs, next_obs)

    def encode(self, seen: Tree) -> Tensor:
        """What actors and critics read of observations that `look` or a draw returned: [N, F]."""
        return seen if self.encoder is None else self.encoder(seen)

    def _reflect(self, rows: Tensor, mirror: Mirror) -> None:
        """Turn rows [N, width] into what a mirror shows."""
        if self.frames is not None:
            raise ConfigError("With images or a network of your own, transitions cannot be mirrored. Leave mirror out.")
        at, signs = self.columns, torch.from_numpy(mirror.obs)
        for seen in (at.obs, at.next_obs):
            if mirror.order is not None:
                rows[:, seen] = rows[:, seen][:, torch.from_numpy(mirror.order)]
            rows[:, seen] *= signs
        action, becomes = rows[:, at.action], torch.from_numpy(mirror.action)
        if self.num_choices:
            action.copy_(becomes[action.long()])
            rows[:, at.next_mask] = rows[:, at.next_mask][:, becomes]
            if self.keeps_masks:
                rows[:, at.mask] = rows[:, at.mask][:, becomes]
        else:
            action *= becomes

    def _means(self, count: int) -> dict[str, float]:
        if not count:
            return {}
        means = (self.sums / count).tolist()
        if not np.isfinite(means).all():
            raise LaneFault(
                f"The loss is not finite after {self.num_updates:,} updates. Rewards may be too large or the learning "
                "rate too high: start a new run with a smaller reward_scale or a lower lr."
            )
        return {
            **dict(zip(self.METRICS, means, strict=True)),
            "train/n_updates": float(self.num_updates),
            "train/learning_rate": self.lr,
        }

    # ------------------------------------------------------------------ remembering

    def steps_of(self, rollout: Rollout) -> Steps:
        """The rollout as steps with their true successors."""
        T, B = rollout.num_steps, rollout.num_envs
        if self.frames is None:
            obs = self.flattened(rollout.obs, 2)
            obs, next_obs = obs[:T], obs[1:].copy()
            for ended in rollout.ended:
                next_obs[ended.t, ended.lanes] = self.flattened(ended.obs, 1)
        else:
            obs, next_obs = self.frames.remember(rollout.obs, rollout.ended)
        mask, next_mask = self.all_allowed(T, B)
        if rollout.action_mask is not None:
            next_mask[:] = rollout.action_mask[1:]
            mask[:] = rollout.action_mask[:T, :, : mask.shape[-1]]
        for ended in rollout.ended:
            next_mask[ended.t, ended.lanes] = 1.0  # what final_obs allows is not known
        return Steps(
            obs,
            rollout.action.reshape(T, B, -1).astype(np.float32),
            rollout.reward * np.float32(self.config.reward_scale),
            rollout.terminated.copy(),
            rollout.truncated.copy(),
            next_obs,
            mask,
            next_mask,
            np.ones((T, B), np.bool_),
        )

    def all_allowed(self, num_steps: int, num_envs: int) -> tuple[np.ndarray, np.ndarray]:
        """`Steps.mask` and `Steps.next_mask` for T steps of B lanes where nothing is forbidden."""
        widths = (part.stop - part.start for part in (self.columns.mask, self.columns.next_mask))
        mask, next_mask = (np.ones((num_steps, num_envs, width), np.float32) for width in widths)
        return mask, next_mask

    def flattened(self, obs: Tree, leading: int) -> np.ndarray:
        """[*leading, *obs] -> [*leading, D] float32, not scaled."""
        return self.flatten(map_tree(_to_cpu, obs), leading).numpy()

    def look(self, obs: Tree) -> Tree:
        """What `encode` takes of obs [N, *obs], on the device: numbers [N, D], or for an encoder all as it is."""
        if isinstance(self.flatten.space, gym.spaces.Dict | gym.spaces.Tuple):
            check_parts(obs, self.flatten.space)
        if self.encoder is not None:
            return map_tree(partial(torch.as_tensor, device=self.device), obs)
        flat = self.flatten(map_tree(_to_cpu, obs))
        return (flat * self.scale if self.config.scale_obs else flat).to(self.device)

    def _remember(self, transitions: Transitions) -> None:
        obs, action, reward, discount, next_obs, mask, next_mask = transitions
        if not self.replay.total and not self.replay.outside and (memory := total_memory()) is not None:
            self.check_room(memory, 0, "this machine")
        if self.frames is not None:
            self.frames.note(self.replay.total, np.concatenate([obs, next_obs]))
            obs, next_obs = obs.view(np.float32), next_obs.view(np.float32)  # the bits, not the numbers
        self.replay.add(np.column_stack([obs, action, reward, discount, next_obs, next_mask, mask]))  # as `Columns` say
        if self.frames is not None:
            self.replay.forget_before(self.frames.first_row(self.replay.first, self.replay.total))

    def _fix_scale(self) -> None:
        """From now on features are divided by their root mean square so far, where that is not zero."""
        seen = self.replay.window()[:, self.columns.obs]
        mean_square = (seen.astype(np.float64) ** 2).mean(0)
        self.scale = torch.from_numpy(np.where(mean_square > 1e-12, mean_square, 1.0) ** -0.5).float()

    # ------------------------------------------------------------------ persistence

    @abstractmethod
    def networks(self) -> dict[str, nn.Module]:
        """Every network by name, targets included."""

    def encoders(self, target: Encoder | None) -> dict[str, nn.Module]:
        """The encoder and its target by name, where there are any."""
        named = {"encoder": self.encoder, "target_encoder": target}
        return {name: encoder for name, encoder in named.items() if encoder is not None}

    @abstractmethod
    def optimizers(self) -> dict[str, FlatAdam]:
        """What trains them, by name."""

    def _fixed(self) -> dict[str, Tensor]:
        """Tensors (not copies) whose sizes never change."""
        named = {"scale": self.scale}
        for name, network in self.networks().items():
            named |= {f"{name}.{key}": tensor for key, tensor in network.state_dict(keep_vars=True).items()}
        for name, optimizer in self.optimizers().items():
            named |= {f"{name}.adam.{key}": tensor for key, tensor in optimizer.tensors().items()}
        return named

    def _acting_tensors(self) -> dict[str, Tensor]:
        parts = ("scale", f"{self.ACTOR}.", "encoder.")
        return {name: t for name, t in self._fixed().items() if name.startswith(parts) and ".adam." not in name}

    def acting_state(self) -> dict[str, Tensor]:
        """The part of `state_dict` that acting depends on: a network, its inputs' scale, counters, random generator."""
        acting = {name: tensor.detach().cpu() for name, tensor in self._acting_tensors().items()}
        return {**acting, "counters": self._counters(), "generator": self.generator.get_state()}

    def load_acting_state(self, state: dict[str, Tensor]) -> None:
        """Act as the agent whose `acting_state` this is."""
        mine = self._acting_tensors()
        take_over(mine, {name: state[name] for name in mine})
        self._set_counters(state["counters"])
        self.generator.set_state(state["generator"])

    def _counters(self) -> Tensor:
        return torch.tensor([self.num_env_steps, self.num_updates, int(self.experienced)])

    def _set_counters(self, counters: Tensor) -> None:
        self.num_env_steps, self.num_updates, experienced = counters.tolist()
        self.experienced = bool(experienced)

    def begin_from(self, state: dict[str, Tensor]) -> None:
        """Take over the networks in another agent's `state_dict`, and nothing else of it."""
        kept = {name: tensor for name, tensor in self._fixed().items() if ".adam." not in name}
        take_over(kept, {name: state[name] for name in kept if name in state})
        self.experienced = True

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that must persist, flat: copies."""
        state = {name: tensor.detach().cpu().clone() for name, tensor in self._fixed().items()}
        state |= {f"replay.{name}": tensor.clone() for name, tensor in self.replay.tensors().items()}
        if self.frames is not None:
            state |= {f"frames.{name}": tensor for name, tensor in self.frames.tensors().items()}
        for i, window in enumerate(self.windows):
            if window.pending is not None and window.pending.num_steps:
                for name, part in window.pending._asdict().items():
                    state[f"pending.{i}.{name}"] = torch.from_numpy(part.copy())
        state["counters"] = self._counters()
        state["owed"] = torch.tensor(self.owed, dtype=torch.float64)
        return {**state, "generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go back to what `state_dict` returned, exactly."""
        varying = ("replay.", "frames.", "pending.", "counters", "owed", "generator")
        take_over(self._fixed(), {k: t for k, t in state.items() if not k.startswith(varying)})
        self.replay.load({k.removeprefix("replay."): t for k, t in state.items() if k.startswith("replay.")})
        if self.frames is not None:
            self.frames.load({k.removeprefix("frames."): t for k, t in state.items() if k.startswith("frames.")})
            self.replay.forget_before(self.frames.first_row(self.replay.first, self.replay.total))
        for i in {int(name.split(".")[1]) for name in state if name.startswith("pending.")}:
            pending = Steps(*(state[f"pending.{i}.{name}"].numpy().copy() for name in Steps._fields))
            if i < len(self.windows):
                self.windows[i].pending = pending
            else:
                self._saved_pending[i] = pending
        self._set_counters(state["counters"])
        self.owed = float(state["owed"])
        self.generator.set_state(state["generator"])


def _to_cpu(leaf: np.ndarray | Tensor) -> Tensor:
    return torch.as_tensor(leaf, device="cpu")


def together(towers: nn.Module, encoder: Encoder | None) -> nn.Module:
    """Both as one network, or the towers alone where there is nothing to look at images."""
    return towers if encoder is None else nn.ModuleList([encoder, towers])
