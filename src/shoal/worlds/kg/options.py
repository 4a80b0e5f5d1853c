"""Options of the environment, checked, and as the numbers that the engines read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shoal.errors import ConfigError
from shoal.worlds.kg.engine.lanes import CUT_FIRST, CUT_KGE, CUT_RANDOM, Settings
from shoal.worlds.kg.vocabulary import SPECIAL, Vocabulary

_CUTS = {"first": CUT_FIRST, "random": CUT_RANDOM, "kge": CUT_KGE}
_SIDES = (("head", "tail"), ("head",), ("tail",))


@dataclass(frozen=True)
class KGOptions:
    """How queries are proved, and what a proof is worth."""

    max_states: int = 64
    """S: actions per state, at most."""
    max_atoms: int = 6
    """A: goals per state, at most; longer successors are rejected."""
    max_depth: int = 20
    """D: steps after which an episode is truncated."""
    memory: bool = True
    """Drop successors that the episode has visited."""
    skip_unary: bool = False
    """Take forced moves without asking the policy."""
    end_action: bool = False
    """Offer to give up: `End`, not proven."""
    end_true_action: bool = False
    """Offer to declare the query proven: `EndTrue`."""
    kge_action: bool = False
    """Offer to take a ground goal as proved by the KGE model."""
    selection: Literal["leftmost", "bound_first"] = "leftmost"
    """Which goal is resolved: the leftmost, or the leftmost with a constant."""
    cut: Literal["first", "random", "kge"] = "first"
    """Which successors survive when there are more than S."""
    reward_type: int = 4
    """0 sparse, 1 avoid false proofs, 2 classification, 3 asymmetric, 4 balanced, 5 balanced with early stop."""
    negative_ratio: int = 1
    """Corrupted queries per true one."""
    corruption: tuple[str, ...] = ("head", "tail")
    """Which argument of a corrupted query is replaced; both take turns."""
    shaping: float = 0.0
    """Weight of the KGE potential in the reward; 0 is none."""
    shaping_gamma: float = 0.99
    """Discount of the potential: that of the agent."""

    def __post_init__(self) -> None:
        for name, least in (("max_atoms", 1), ("max_depth", 1), ("negative_ratio", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name}={getattr(self, name)} is too small. It must be at least {least}.")
        extra = self.num_extra
        if self.max_states < extra + 1:
            raise ConfigError(
                f"max_states={self.max_states} leaves no room for a successor beside {extra} other action(s). "
                f"It must be at least {extra + 1}."
            )
        if self.reward_type not in range(6):
            raise ConfigError(f"reward_type={self.reward_type} is unknown. Use 0 to 5.")
        if tuple(self.corruption) not in _SIDES:
            raise ConfigError(
                f"corruption={self.corruption!r} is unknown. Use ('head', 'tail'), ('head',) or ('tail',)."
            )
        if self.cut not in _CUTS:
            raise ConfigError(f"cut={self.cut!r} is unknown. Use 'first', 'random' or 'kge'.")
        if self.selection not in ("leftmost", "bound_first"):
            raise ConfigError(f"selection={self.selection!r} is unknown. Use 'leftmost' or 'bound_first'.")

    @property
    def num_extra(self) -> int:
        """Actions beside the successors."""
        return int(self.end_action) + int(self.end_true_action) + int(self.kge_action)

    @property
    def needs_kge(self) -> bool:
        """Does the environment itself ask a KGE model?"""
        return self.shaping != 0.0 or self.cut == "kge"

    def settings(self, vocabulary: Vocabulary) -> Settings:
        """The numbers that the engines read."""
        return Settings(
            max_states=self.max_states,
            max_depth=self.max_depth,
            memory=self.memory,
            skip_unary=self.skip_unary,
            end_action=self.end_action,
            end_true_action=self.end_true_action,
            kge_action=self.kge_action,
            bound_first=self.selection == "bound_first",
            cut=_CUTS[self.cut],
            reward_type=self.reward_type,
            reject_weight=1.0 / self.negative_ratio if self.negative_ratio else 1.0,
            true=vocabulary.true,
            false=vocabulary.false,
            end=vocabulary.end,
            end_true=vocabulary.end_true,
            twin_shift=vocabulary.num_regular + len(SPECIAL),
        )
