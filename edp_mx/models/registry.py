"""The encoders that `model.family` chooses from; a new one is a file of its own and a line here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Optional, Tuple

from edp_mx.data.tokenizer import read_object
from edp_mx.errors import UserError
from edp_mx.models import bert_encoder, clc
from edp_mx.models.checkpoints.files import CONFIG
from edp_mx.models.encoder import Family, ModelConfig
from edp_mx.models.gpt2 import encoder as gpt2

FAMILIES: Dict[str, Family] = {
    family.name: family for family in (clc.FAMILY, bert_encoder.FAMILY, gpt2.FAMILY)
}


def family_in(folder: Path) -> Family:
    """Return the family that a folder in Hugging Face's layout names; any other is a BERT's."""
    path = folder / CONFIG
    kind = read_object(path).get("model_type") if path.is_file() else None
    return gpt2.FAMILY if kind == gpt2.FAMILY.name else bert_encoder.FAMILY


def read_folder(folder: Path) -> Tuple[Family, Any]:
    """Return `family_in` a folder, and its weights as the family's `read_checkpoint` gives them."""
    family = family_in(folder)
    assert family.read_checkpoint is not None
    return family, family.read_checkpoint(str(folder))


def read_start(config: ModelConfig) -> Optional[Any]:
    """Read the pre-trained weights that a model starts from; None where it starts from none.

    Raises:
        UserError: they have other sizes, or there must be some and there are none.
    """
    family = FAMILIES[config.family]
    folder = getattr(config, "checkpoint", None) or config.start_from
    if folder is None and config.intents == "infilling":
        raise UserError(
            "model.intents: infilling needs a masked-LM head to start from: set model.checkpoint "
            "or model.start_from"
        )
    if folder is None:
        return None
    key = "checkpoint" if getattr(config, "checkpoint", None) else "start_from"
    if family.read_checkpoint is None:
        raise UserError(
            f"model.{key}: {folder} is a checkpoint in Hugging Face's layout, from which no "
            f"{config.family} can start; name a finished run, or another model.family"
        )
    checkpoint = family.read_checkpoint(folder)
    theirs = {key: getattr(checkpoint.config, key) for key in family.sizes}
    differing = {key: value for key, value in theirs.items() if value != getattr(config, key)}
    if differing:
        told = " and ".join(f"{key} {value}" for key, value in differing.items())
        wanted = ", ".join(f"model.{key}" for key in differing)
        raise UserError(
            f"model.{key}: {checkpoint.folder} is a {family.title} with {told}; leave out {wanted}"
        )
    return checkpoint
