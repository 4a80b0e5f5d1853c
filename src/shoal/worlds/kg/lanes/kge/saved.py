"""A trained model as a folder: weights, settings, and the digest of the vocabulary it belongs to."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from shoal.errors import ConfigError, naming
from shoal.options import build
from shoal.reading import parse_json
from shoal.worlds.kg.lanes.data.knowledge import FactIndex
from shoal.worlds.kg.lanes.data.vocabulary import Vocabulary
from shoal.worlds.kg.lanes.kge.models import KGEConfig, OwnModel, make_model
from shoal.worlds.kg.lanes.kge.scoring import KGE
from shoal.worlds.kg.lanes.kge.walk_model import ScoredByWalks, WalkModel

FACTS = "facts"  # [F, 3], which walks are made of


@dataclass(frozen=True)
class _About:
    """What kge.json holds."""

    config: dict[str, object]
    scale: float
    shift: float
    vocabulary: str


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
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    try:
        values = parse_json((folder / "kge.json").read_bytes())
    except (OSError, ValueError):
        raise ConfigError(f"There is no KGE model in {folder}: it has no readable kge.json.") from None
    source = str(folder / "kge.json")
    with naming(source):
        about = build(_About, values, f"in {source}", "The documentation")
        config = build(KGEConfig, about.config, f"in {source}", "The documentation")
    if about.vocabulary != vocabulary.digest():
        raise ConfigError(
            f"The KGE model of {source} was trained on another vocabulary than these data have. Train it anew."
        )
    path = folder / "kge.safetensors"
    try:
        model = _model(config, load_file(path), vocabulary)
    except (OSError, SafetensorError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[-1].strip().removesuffix(".")
        raise ConfigError(f"{path} does not fit {source}: {reason}.") from error
    return KGE(model, vocabulary, about.scale, about.shift)


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
