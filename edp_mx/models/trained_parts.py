"""The values of `model.trained`; a new one is a file of its own and its entries here."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any, Dict, Iterable, Optional, Tuple

import numpy as np
from mxnet import gluon

from edp_mx.models.biases import Biases
from edp_mx.models.lora import LoRA, LoRASettings
from edp_mx.models.prefix import PrefixSettings, TrainedPrefix
from edp_mx.models.rgp import RGP, RGPSettings
from edp_mx.models.trained_part import TrainedPart
from edp_mx.runtime.files import path_field
from edp_mx.runtime.limits import MOST_LAYERS, MOST_WIDE
from edp_mx.runtime.settings import SettingError, setting


class Whole(TrainedPart):
    """All parameters, except the ones that the settings of a family freeze."""

    name, endings = "all", ("",)


class Heads(TrainedPart):
    """The heads alone: no parameter of the encoder."""

    name = "heads"


OF_EVERY_FAMILY = (Whole(), Heads(), Biases())
PARTS: Dict[str, TrainedPart] = {
    part.name: part for part in (*OF_EVERY_FAMILY, LoRA(), TrainedPrefix(), RGP())
}


@dataclass(frozen=True)
class TransformerSettings(LoRASettings, PrefixSettings, RGPSettings):
    """What the settings of all transformers have in common, beside their sizes.

    Attributes:
        trained: all, heads or biases, as for a CLC; lora (low-rank adapters of all layers above
            `frozen_layers` and of a BERT's pooler, and the heads), rgp (the weights of those layers
            from gradients of low rank, and the heads) or prefix (keys and values in all layers
            above `frozen_layers` that come before those of an utterance, and the heads).
        num_heads: of each layer's attention.
        dropout: on embeddings, attention and layer outputs, and before the heads.
        is_embedding_trainable: false freezes the embeddings; in a GPT-2, the vectors of the pieces
            are also the output layer.
        frozen_layers: how many of the lowest layers are frozen.
    """

    trained: str = setting("all", one_of=tuple(PARTS))
    num_heads: int = setting(12, at_least=1, at_most=MOST_WIDE)
    dropout: float = setting(0.1, at_least=0, below=1)
    checkpoint: Optional[str] = path_field()
    is_embedding_trainable: bool = True
    frozen_layers: int = setting(0, at_least=0, at_most=MOST_LAYERS)

    def __post_init__(self) -> None:
        super().__post_init__()
        PARTS[self.trained].check(self)
        config: Any = self  # with the sizes and the start of its family
        if self.checkpoint is not None and config.start_from is not None:
            raise SettingError("start_from", "excludes checkpoint; leave one out")
        if config.hidden_size % self.num_heads:
            raise SettingError(
                "hidden_size",
                f"must be a multiple of the {self.num_heads} heads, not {config.hidden_size}",
            )
        if self.frozen_layers > config.num_layers:
            raise SettingError(
                "frozen_layers",
                f"must be at most {config.num_layers} (num_layers), not {self.frozen_layers}",
            )


def freeze_lowest(
    config: TransformerSettings,
    embeddings: Iterable[gluon.Parameter],
    layers: Iterable[gluon.Block],
) -> None:
    """Take the gradient from the embeddings and the lowest layers, as the settings say."""
    frozen = [] if config.is_embedding_trainable else [*embeddings]
    for layer in islice(layers, config.frozen_layers):
        frozen += layer.collect_params().values()
    for parameter in frozen:
        parameter.grad_req = "null"


def settled_values(
    name: str, shape: Tuple[int, ...], generator: np.random.Generator
) -> Optional[np.ndarray]:
    """Return first values that no family of transformers draws by itself; None for others.

    What a part adds is drawn as it likes, offsets are 0, and layer norms are the identity.
    """
    for part in PARTS.values():
        if (added := part.initial_values(name, shape, generator)) is not None:
            return added
    if name.endswith(("bias", "beta")):
        return np.zeros(shape)
    return np.ones(shape) if name.endswith("gamma") else None
