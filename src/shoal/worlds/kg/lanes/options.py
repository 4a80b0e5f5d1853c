"""What the lanes can be told: how queries are proved and rewarded, and by which engine. Cheap to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from shoal.errors import ConfigError
from shoal.options import Flag, fit, hints_of

_SIDES = (("head", "tail"), ("head",), ("tail",))


@dataclass(frozen=True)
class ProofOptions:
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
    reward_type: Literal[0, 1, 2, 3, 4, 5] = 4
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
                raise ConfigError(f"{name} must be at least {least}, not {getattr(self, name)}.")
        if self.max_states < self.num_extra + 1:
            raise ConfigError(
                f"max_states={self.max_states} leaves no room for a successor besides {self.num_extra} other actions. "
                f"It must be at least {self.num_extra + 1}."
            )
        if tuple(self.corruption) not in _SIDES:
            raise ConfigError(
                f"Invalid value for corruption: {self.corruption!r}. Use ('head', 'tail'), ('head',) or ('tail',)."
            )
        for name in ("selection", "cut", "reward_type"):
            fit(getattr(self, name), hints_of(ProofOptions)[name], name)

    @property
    def num_extra(self) -> int:
        """Actions besides the successors."""
        return int(self.end_action) + int(self.end_true_action) + int(self.kge_action)

    @property
    def needs_kge(self) -> bool:
        """Does the environment itself ask a KGE model?"""
        return self.shaping != 0.0 or self.cut == "kge"


@dataclass(frozen=True)
class EngineOptions:
    """What lists the actions of lanes."""

    engine: Literal["compiled", "tensor"] = "compiled"
    """compiled, or tensor for static shapes on a device of your choice."""
    engine_device: str = "cpu"
    """Where the tensor engine runs, e.g. cpu or cuda."""
    fact_cap: int | None = None
    """Facts per goal that the tensor engine looks at; none is all of them."""
    keep_expansions: Annotated[bool, Flag(hidden=True)] = False
    """The compiled engine expands a state that comes again only once: for rankings and searches."""

    def __post_init__(self) -> None:
        fit(self.engine, hints_of(EngineOptions)["engine"], "engine")
