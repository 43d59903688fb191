"""The values of `model.trained`; a new one is a file of its own and its entries here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict

from edp_mx.models.biases import Biases
from edp_mx.models.lora import LoRA, LoRASettings
from edp_mx.models.prefix import PrefixSettings, TrainedPrefix
from edp_mx.models.rgp import RGP, RGPSettings
from edp_mx.models.trained_part import TrainedPart


class Whole(TrainedPart):
    """All parameters, except the ones that the settings of a family freeze."""

    name, endings = "all", ("",)


class Heads(TrainedPart):
    """The heads alone: no parameter of the encoder."""

    name = "heads"


@dataclass(frozen=True)
class AdapterSettings(LoRASettings, PrefixSettings, RGPSettings):
    """The settings of all parts that are added to a BERT."""


OF_EVERY_FAMILY = (Whole(), Heads(), Biases())
PARTS: Dict[str, TrainedPart] = {
    part.name: part for part in (*OF_EVERY_FAMILY, LoRA(), TrainedPrefix(), RGP())
}
