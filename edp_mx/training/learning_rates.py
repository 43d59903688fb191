"""Learning rates by group of parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional

from edp_mx.models.intent_slot import IntentSlotModel
from edp_mx.runtime.settings import Settings, setting


@dataclass(frozen=True)
class LearningRates(Settings):
    """Learning rates that differ from `training.learning_rate`; left out, a group has that one.

    Attributes:
        embeddings: a CLC's word vectors; a BERT's pieces, positions and token types.
        heads: intent layer, slot layer and CRF, which a pre-trained encoder lacks.
    """

    embeddings: Optional[float] = setting(None, above=0)
    heads: Optional[float] = setting(None, above=0)


def set_learning_rates(model: IntentSlotModel, base: float, rates: LearningRates) -> None:
    """Gives each parameter of a group its rate, as a multiple of the base."""
    groups: Dict[str, list] = {
        "embeddings": model.encoder.embedding_parameters(),
        "heads": [p for head in (model.intent, model.slot) for p in head.collect_params().values()],
    }
    for group, parameters in groups.items():
        rate = getattr(rates, group)
        for parameter in parameters:
            parameter.lr_mult = 1.0 if rate is None else rate / base
