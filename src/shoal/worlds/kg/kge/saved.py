"""A trained model as a folder: weights, settings, and the digest of the vocabulary it belongs to."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import torch

from shoal.errors import ConfigError
from shoal.worlds.kg.facts import FactIndex
from shoal.worlds.kg.kge.config import KGEConfig
from shoal.worlds.kg.kge.engine import KGE
from shoal.worlds.kg.kge.models import make_model
from shoal.worlds.kg.kge.training import OwnModel
from shoal.worlds.kg.kge.walk_model import WalkModel
from shoal.worlds.kg.kge.walk_training import ScoredByWalks
from shoal.worlds.kg.vocabulary import Vocabulary

FACTS = "facts"  # [F, 3], which walks are made of


def save_kge(kge: KGE, folder: str | Path) -> Path:
    """Write a model of ours to `folder`."""
    from safetensors.torch import save_file

    if not isinstance(kge.model, OwnModel | ScoredByWalks):
        raise ConfigError("Only models that Shoal trained are saved here; save a PyKEEN model with PyKEEN.")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.contiguous() for name, tensor in kge.model.model.state_dict().items()}
    if isinstance(kge.model, ScoredByWalks):
        tensors[FACTS] = torch.from_numpy(kge.model.facts.triples)
    save_file(tensors, folder / "kge.safetensors")
    about = {
        "config": asdict(kge.model.config),
        "scale": kge.scale,
        "shift": kge.shift,
        "vocabulary": kge.vocabulary.digest(),
    }
    (folder / "kge.json").write_text(json.dumps(about, indent=1) + "\n")
    return folder


def load_kge(folder: str | Path, vocabulary: Vocabulary) -> KGE:
    """Read a model back; it must have been trained on the same vocabulary."""
    from safetensors.torch import load_file

    folder = Path(folder)
    try:
        about = json.loads((folder / "kge.json").read_text())
    except (OSError, ValueError):
        raise ConfigError(f"{folder} holds no KGE model: there is no readable kge.json in it.") from None
    if about["vocabulary"] != vocabulary.digest():
        raise ConfigError(
            f"The KGE model in {folder} was trained on another vocabulary than these data have. Train it anew."
        )
    model = _model(KGEConfig(**about["config"]), load_file(folder / "kge.safetensors"), vocabulary)
    return KGE(model, vocabulary, about["scale"], about["shift"])


def _model(config: KGEConfig, tensors: dict[str, torch.Tensor], vocabulary: Vocabulary) -> OwnModel | ScoredByWalks:
    n, P = vocabulary.num_constants, vocabulary.num_regular
    if config.model == "walks":
        facts = FactIndex(tensors.pop(FACTS).numpy(), P, n)
        walks = WalkModel(facts, config.rank, config.walk_length)
        walks.load_state_dict(tensors)
        return ScoredByWalks(walks.eval(), facts, config)
    model = make_model(config.model, n, P, config.rank)
    model.load_state_dict(tensors)
    return OwnModel(model.eval(), config)
