"""The encoders that `model.family` chooses from; a new one is a file of its own and a line here."""

from __future__ import annotations

from typing import Dict

from edp_mx.models import bert_encoder, clc
from edp_mx.models.encoder import Family, ModelConfig
from edp_mx.models.gpt2 import encoder as gpt2

FAMILIES: Dict[str, Family] = {
    family.name: family for family in (clc.FAMILY, bert_encoder.FAMILY, gpt2.FAMILY)
}


def family_of(config: ModelConfig) -> Family:
    """Return the family that a model's settings belong to."""
    return FAMILIES[config.family]
