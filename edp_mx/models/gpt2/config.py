"""The settings of a GPT-2."""

from __future__ import annotations

from dataclasses import dataclass

from edp_mx.models.encoder import ModelConfig
from edp_mx.models.trained_parts import TransformerSettings
from edp_mx.runtime.limits import MOST_LAYERS, MOST_WIDE
from edp_mx.runtime.settings import setting


@dataclass(frozen=True)
class GPT2Config(TransformerSettings, ModelConfig):
    """Sizes of a GPT-2; the defaults are those of the smallest published one.

    Attributes:
        family: gpt2.
        num_layers, hidden_size, intermediate_size: sizes of the transformer.
        max_positions: length of the longest sequence of pieces, with the end-of-text around them.
        layer_norm_epsilon: added to the variance in each layer norm.
        checkpoint: a folder in Hugging Face's layout to start from (GPT-2, DistilGPT-2, DialoGPT),
            which also brings the sizes; by default weights are drawn at random.

    Source: Radford et al. 2019, and their published sizes.
    """

    family: str = setting("gpt2", one_of=["gpt2"])
    num_layers: int = setting(12, at_least=1, at_most=MOST_LAYERS)
    hidden_size: int = setting(768, at_least=1, at_most=MOST_WIDE)
    intermediate_size: int = setting(3072, at_least=1, at_most=MOST_WIDE)
    max_positions: int = setting(1024, at_least=3, at_most=MOST_WIDE)
    layer_norm_epsilon: float = setting(1e-5, above=0, at_most=1)
