"""A trained model as a folder: weights, settings, and the digest of the vocabulary it belongs to."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from shoal.errors import ConfigError
from shoal.worlds.kg.kge.engine import KGE
from shoal.worlds.kg.kge.models import make_model
from shoal.worlds.kg.kge.training import KGEConfig, OwnModel
from shoal.worlds.kg.vocabulary import Vocabulary


def save_kge(kge: KGE, folder: str | Path) -> Path:
    """Write a model of ours to `folder`."""
    from safetensors.torch import save_file

    if not isinstance(kge.model, OwnModel):
        raise ConfigError("Only models that Shoal trained are saved here; save a PyKEEN model with PyKEEN.")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(
        {name: tensor.contiguous() for name, tensor in kge.model.model.state_dict().items()}, folder / "kge.safetensors"
    )
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
    config = KGEConfig(**about["config"])
    model = make_model(config.model, vocabulary.num_constants, vocabulary.num_regular, config.rank)
    model.load_state_dict(load_file(folder / "kge.safetensors"))
    return KGE(OwnModel(model.eval(), config), vocabulary, about["scale"], about["shift"])
