"""`make_kg`: the world as `shoal.make("kg", ...)` and the command line make it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError
from shoal.worlds.kg.dataset import Dataset, Filters, load_dataset
from shoal.worlds.kg.env import KGBatch
from shoal.worlds.kg.options import KGOptions

_NETWORK = ("atom_encoder", "state_encoder", "embedding_size", "logit_bias")
_BATCH = ("mode", "engine", "device", "num_threads", "fact_cap", "autoreset_mode", "copy")


def make_kg(
    num_envs: int,
    *,
    data: str | Path | Dataset = "families",
    rules: str | Path | None = None,
    soft_facts: str | Path | None = None,
    split: str = "train",
    mode: str = "train",
    depths: list[int] | None = None,
    depth_weights: dict[int, float] | None = None,
    require_rule: bool = True,
    limit: int | None = None,
    max_states: int = 64,
    max_atoms: int = 6,
    max_depth: int = 20,
    memory: bool = True,
    skip_unary: bool = False,
    end_action: bool = False,
    end_true_action: bool = False,
    kge_action: bool = False,
    selection: str = "leftmost",
    cut: str = "first",
    reward_type: int = 4,
    negative_ratio: int = 1,
    corruption: list[str] | tuple[str, ...] = ("head", "tail"),
    shaping: float = 0.0,
    shaping_gamma: float = 0.99,
    kge: Any = None,
    atom_encoder: str = "transe",
    state_encoder: str = "mean",
    embedding_size: int = 64,
    logit_bias: float = 0.0,
    engine: str = "compiled",
    device: str = "cpu",
    num_threads: int | str = 1,
    fact_cap: int | None = None,
    autoreset_mode: str = "same_step",
    copy: bool = True,
) -> KGBatch:
    """Lanes that prove queries of a knowledge graph.

    Args:
        data: a folder, "pykeen:nations", "families" or "families:SEED" (generated), or a `Dataset`.
        rules, soft_facts: files beside or instead of those of the folder.
        split, mode: which queries, and how lanes take them: see `queries`.
        depths, require_rule, limit: filters: annotated depths to keep, drop training queries without a rule, first k.
        depth_weights: how often training queries of an annotated depth are drawn.
        kge: a trained KGE model, or the folder of a saved one.
        atom_encoder, state_encoder, embedding_size, logit_bias: of the network that trains here: see `network`.
        engine, device, num_threads, fact_cap: see `KGBatch`.

    The rest are fields of `KGOptions`.
    """
    given = dict(locals())  # every setting by its name
    filters = Filters({split: limit} if limit is not None else {}, depths, require_rule)
    dataset = load_dataset(data, rules=rules, soft_facts=soft_facts, filters=filters)
    options = {field.name: given[field.name] for field in fields(KGOptions)} | {"corruption": tuple(corruption)}
    return KGBatch(
        num_envs,
        dataset,
        KGOptions(**options),
        queries=dataset.split(split),
        depth_weights=_as_numbers(depth_weights),
        kge=_load_kge(kge, dataset),
        network={name: given[name] for name in _NETWORK},
        **{name: given[name] for name in _BATCH},
    )


def _as_numbers(weights: dict[Any, float] | None) -> dict[int, float] | None:
    """JSON has no numbers as keys."""
    try:
        return None if weights is None else {int(depth): float(weight) for depth, weight in weights.items()}
    except (AttributeError, ValueError):
        raise ConfigError(f"depth_weights={weights!r} must map depths to weights, e.g. {{2: 1.0, 3: 0.5}}.") from None


def _load_kge(kge: Any, dataset: Dataset) -> Any:
    if not isinstance(kge, str | Path):
        return kge
    from shoal.worlds.kg.kge.saved import load_kge

    return load_kge(kge, dataset.kb.vocabulary)
