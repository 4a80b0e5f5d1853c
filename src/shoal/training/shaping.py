"""Shaping: infos of the world, by name and weight, added to the reward that is learned from.

Returns that are logged and evaluated stay those of the world. With potentials the best policies stay the best ones (Ng,
Harada & Russell 1999): what is added is then gamma * phi(after) - phi(before), and phi of nothing, after an end, is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from shoal.errors import ConfigError
from shoal.training.hooks import Reads
from shoal.trees import Tree

if TYPE_CHECKING:
    from shoal.agents.rollout import Rollout
    from shoal.training.loop import Loop


@dataclass(frozen=True)
class Term:
    """One info, and its weight at the beginning and at the end of the run."""

    name: str
    start: float
    final: float

    def weight(self, progress: float) -> float:
        """At this share of the run."""
        return self.start + (self.final - self.start) * min(max(progress, 0.0), 1.0)


def terms_of(words: tuple[str, ...]) -> list[Term]:
    """Terms from words as "touch=0.5" and "touch=0.5..0"."""
    terms: list[Term] = []
    for word in words:
        name, is_given, numbers = word.partition("=")
        start, has_final, final = numbers.partition("..")
        try:
            weights = float(start), float(final if has_final else start)
        except ValueError:
            weights = np.nan, np.nan
        if not is_given or not name or not np.isfinite(weights).all():
            raise ConfigError(f"Invalid value for shape: {word!r}. Write an info and its weight, e.g. touch=0.5..0.")
        if name in [term.name for term in terms]:
            raise ConfigError(f"Invalid value for shape: {name!r} is named twice. Add its weights up.")
        terms.append(Term(name, *weights))
    return terms


class Shaping:
    """Recorder: adds to the rewards of every step. Callback: moves the weights and logs them."""

    def __init__(self, words: tuple[str, ...], potential: bool, gamma: float) -> None:
        self._potential, self._gamma = potential, gamma
        self.reads = Reads()
        self._progress = 0.0
        self._before: np.ndarray | None = None  # [terms, B] potentials of the states before the step
        self.announce(words)
        self.use(words)

    def announce(self, words: tuple[str, ...]) -> None:
        """These terms are used sooner or later, so their infos are wanted."""
        names = tuple(dict.fromkeys((*self.reads.step, *(term.name for term in terms_of(words)))))
        self.reads = Reads(step=names, final=names)

    def use(self, words: tuple[str, ...]) -> None:
        """From now on these terms, in place of those before."""
        self.terms, self._before = terms_of(words), None

    def begin(self, loop: Loop) -> None:
        self._progress = loop.step / loop.config.total_steps

    def after_step(self, t: int, rollout: Rollout, info: dict[str, Tree]) -> None:
        if not self.terms:
            return
        ended = rollout.terminated[t] | rollout.truncated[t]
        standing = np.stack([self._of(info, term.name) for term in self.terms])
        after = standing
        if ended.any():
            final = np.stack([self._of(info.get("final_info", info), term.name) for term in self.terms])
            after = np.where(ended, final, standing)
        weights = np.array([term.weight(self._progress) for term in self.terms])
        if self._potential:
            beyond = np.where(rollout.terminated[t], 0.0, after)
            before = self._gamma * beyond if self._before is None else self._before
            self._before = standing.astype(np.float64)
            after = self._gamma * beyond - before
        rollout.reward[t] += (weights @ after).astype(np.float32)

    def after_iteration(self, loop: Loop) -> dict[str, float]:
        self._progress = loop.step / loop.config.total_steps
        return {f"shaping/{term.name}": term.weight(self._progress) for term in self.terms}

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The potentials of the states in which the lanes are."""
        return {} if self._before is None else {"before": torch.from_numpy(self._before)}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Go back to what `state_dict` returned."""
        self._before = state["before"].numpy().copy() if "before" in state else None

    def _of(self, info: dict[str, Tree], name: str) -> np.ndarray:
        """An info as numbers [B]."""
        values = info.get(name)
        if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "biuf":
            known = [key for key, value in info.items() if isinstance(value, np.ndarray) and value.ndim == 1]
            listed = ", ".join(key for key in known if not key.startswith("_")) or "none"
            raise ConfigError(f"shape names the info {name!r}, which these lanes do not have as one number: {listed}.")
        return values.astype(np.float64)
