"""What kg brings to training: a network that scores the successors of a state, statistics of proofs, a curriculum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.errors import ConfigError
from shoal.options import Values
from shoal.training.lab import Headline, Lab, OwnEvaluation, Preset, Verdict
from shoal.worlds.kg.lab.ranking_options import RankingOptions
from shoal.worlds.kg.world import KGOptions

if TYPE_CHECKING:
    from shoal.training.acting import Player
    from shoal.training.config import TrainConfig
    from shoal.training.hooks import Hooks
    from shoal.worlds.kg.lab.network import ProofNetwork
    from shoal.worlds.kg.lanes.env import KGBatch


@dataclass(frozen=True)
class KGTraining:
    """What else training can be told."""

    curriculum: tuple[int, ...] | None = None
    """Greatest annotated depths of the training queries, e.g. [2,3,6]: each lasts an equal share of the run, and a last
    phase asks every query."""

    def __post_init__(self) -> None:
        if self.curriculum is not None and not self.curriculum:
            raise ConfigError("curriculum has no depths. Write e.g. --curriculum [2,3,6].")


def _network(batch: KGBatch, config: TrainConfig[KGOptions, KGTraining]) -> ProofNetwork:
    from shoal.worlds.kg.lab.network import make_network

    return make_network(batch, config.env, config.algo.hidden)


def _hooks(batch: KGBatch, config: TrainConfig[KGOptions, KGTraining]) -> Hooks:
    from shoal.training.hooks import Hooks
    from shoal.worlds.kg.lab.hooks import DepthCurriculum, ProofStatistics

    if config.runners and config.env.mode in ("eval", "pool"):
        raise ConfigError(
            f"mode={config.env.mode!r} takes queries from one list for all lanes, which runners do not share. Use "
            "--mode train or round_robin, or train without --runners."
        )
    statistics, depths = ProofStatistics(batch.data.kb.vocabulary), config.extra.curriculum
    curriculum = None if depths is None else DepthCurriculum(batch, depths, config.total_steps)
    return Hooks(recorders=(statistics,), callbacks=(statistics,), curriculum=curriculum)


def _evaluate(player: Player[KGOptions], options: RankingOptions, episodes: int | None, seed: int) -> Verdict | None:
    from shoal.worlds.kg.lab.evaluate import evaluate

    return None if options.mode is None else evaluate(player, options, options.config(seed))


# Settings with which knowledge graphs are learned. `ppo` needs no data; the others are to be given with `--data`.

_LEARNING = {
    "num_steps": 32,
    "epochs": 4,
    "minibatches": 4,
    "lr": 1e-3,
    "lr_final": 1e-4,
    "hidden": (64, 64),
    "entropy": 0.05,
    "entropy_final": 0.005,
    "value_clip": 0.2,
    "target_kl": 0.07,
    "normalise_obs": False,
    "normalise_reward": False,
}
# resolving a goal with a constant first keeps states small: the network's cost follows the number of successors
_LANES = {"end_action": True, "state_encoder": "role", "embedding_size": 32, "selection": "bound_first"}
_EAGER = {"minibatches": 8, "lr": 2e-3}


def _preset(about: str, total_steps: int, learning: Values, env: Values) -> Preset:
    algo, env = {**_LEARNING, **learning}, {**_LANES, **env}
    values = {"num_envs": 256, "total_steps": total_steps, "eval_episodes": 200, "env": env, "algo": algo}
    return Preset(about, values)


PRESETS = {
    "ppo": _preset("a generated family tree", 300_000, _EAGER, {"max_states": 64, "max_depth": 10}),
    "countries_s3": _preset(
        "for the data set of that name", 260_000, _EAGER, {"max_states": 20, "max_depth": 10, "corruption": ("tail",)}
    ),
    "family": _preset("for the data set of that name", 160_000, {}, {"max_states": 32, "max_depth": 4}),
    "wn18rr": _preset(
        "for the data set of that name", 66_000, {}, {"max_states": 32, "max_depth": 4, "embedding_size": 16}
    ),
}

LAB: Lab[KGOptions, KGTraining] = Lab(
    options=KGTraining,
    presets=PRESETS,
    headlines=(Headline("proofs/true", "proved", ".1%"), Headline("proofs/corrupted", "proved, false", ".1%")),
    network=_network,
    hooks=_hooks,
    evaluation=OwnEvaluation(RankingOptions, _evaluate),
    search={"ppo": ("embedding_size=32,64,128", "state_encoder=mean,sum,role")},
)
