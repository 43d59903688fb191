"""Learning rates by group of parameters."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Dict, Optional

from edp_mx.errors import UserError
from edp_mx.models.intent_slot import IntentSlotModel


@dataclass(frozen=True)
class LearningRates:
    """Learning rates that differ from `training.learning_rate`; left out, a group has that one.

    Attributes:
        embeddings: a CLC's word vectors; a BERT's pieces, positions and token types.
        heads: intent layer, slot layer and CRF, which a pre-trained encoder lacks.
    """

    embeddings: Optional[float] = None
    heads: Optional[float] = None

    def __post_init__(self) -> None:
        for group in fields(self):
            rate = getattr(self, group.name)
            if rate is not None and not 0 < rate < float("inf"):
                raise UserError(f"{group.name} is {rate}; it must be above 0")


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
