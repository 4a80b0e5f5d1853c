"""What a ranking can be told, as flags and as `rank_queries` reads it. Cheap to import."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal

from shoal.errors import ConfigError
from shoal.options import Flag, fit

Mode = Literal["rl_only", "kge_only", "hybrid", "hybrid_bonus", "symbolic"]


@dataclass(frozen=True)
class ScoreOptions:
    """How candidates are scored, and ties counted."""

    kge_weight: float = 2.0
    """Of the log KGE score, in mode hybrid."""
    rl_weight: float = 1.0
    """Of the log-probability of a proof, in mode hybrid."""
    fail_penalty: float = 100.0
    """Taken from the score of what was not proved."""
    walk_weight: float = 1.0
    """Of the score by walks, where such a model is given beside the KGE model."""
    prove_top: int | None = None
    """Give only this many candidates, the best by KGE score, to the prover; the others count as not proved."""
    ties: Literal["realistic", "optimistic", "pessimistic"] = "realistic"
    """How many of the tied candidates count as better: half of them, none, or all."""


@dataclass(frozen=True)
class EvalConfig(ScoreOptions):
    """What is ranked, by what."""

    mode: Mode = "rl_only"
    corruptions: int | None = 100
    """Per triple and side; none ranks against all admissible constants."""
    sides: tuple[str, ...] = ("head", "tail")
    seed: int = 0

    def __post_init__(self) -> None:
        fit(self.mode, Mode, "mode")
        if not self.sides or any(side not in ("head", "tail") for side in self.sides):
            raise ConfigError(f"Invalid value for sides: {self.sides!r}. Use head, tail or both.")

    @property
    def needs_proofs(self) -> bool:
        return self.mode != "kge_only"

    @property
    def needs_kge(self) -> bool:
        return self.mode in ("kge_only", "hybrid", "hybrid_bonus") or self.prove_top is not None


@dataclass(frozen=True)
class RankingOptions(ScoreOptions):
    """Rank the true triples of a split against corruptions of them. `--max-depth` and `--kge`, options of the world,
    count here too."""

    mode: Mode | None = None
    """Rank by the policy's proofs, by a KGE model, by both, or by exact search; none reports the mean return."""
    split: Literal["train", "valid", "test"] = "test"
    """Which triples are ranked."""
    corruptions: int | Literal["all"] = 100
    """Per triple and side, a number or all."""
    side: Literal["both", "head", "tail"] = "both"
    """Which argument is replaced."""
    decode: Literal["greedy", "sample", "beam"] = "greedy"
    """How the policy looks for a proof."""
    beam_width: int = 16
    """Derivations that a beam follows at once."""
    walks: Annotated[str | None, Flag("FOLDER")] = None
    """A model of walks, whose score hybrid adds."""
    fit_weights: bool = False
    """Choose the weights of hybrid on the validation split first."""
    num_queries: int | None = None
    """Only the first triples of the split."""
    pool_size: int = 512
    """Candidates at work at once."""

    def __post_init__(self) -> None:
        for name in ("corruptions", "beam_width", "pool_size"):
            value = getattr(self, name)
            if value != "all" and value < 1:
                raise ConfigError(f"{name} must be at least 1, not {value}.")
        if self.walks is not None and self.mode != "hybrid":
            raise ConfigError(
                f"walks enter mode hybrid, not {self.mode}. To rank by them alone: --mode kge_only --kge {self.walks}."
            )
        if self.fit_weights and (self.mode != "hybrid" or self.split == "valid"):
            raise ConfigError(
                "fit_weights fits mode hybrid on the validation split to rank another one, "
                f"not mode {self.mode} of {self.split}."
            )

    def config(self, seed: int) -> EvalConfig:
        """The same for `rank_queries`, where a mode is given."""
        assert self.mode is not None
        return EvalConfig(
            **{f.name: getattr(self, f.name) for f in fields(ScoreOptions)},
            mode=self.mode,
            corruptions=None if self.corruptions == "all" else self.corruptions,
            sides=("head", "tail") if self.side == "both" else (self.side,),
            seed=seed,
        )
