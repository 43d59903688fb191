"""Low-rank adapters of a transformer, which are trained instead of its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple, Type

import numpy as np
from mxnet import gluon
from mxnet.gluon import nn

from edp_mx.models.attention import SelfAttention
from edp_mx.models.trained_part import TrainedPart
from edp_mx.runtime.limits import MOST_NORM, MOST_WIDE
from edp_mx.runtime.npz import Arrays
from edp_mx.runtime.settings import SettingError, Settings, setting

DOWN, UP = "lora_down_weight", "lora_up_weight"  # how the adapters' parameters end
PROJECTIONS = ("query", "key", "value")


class LowRank(gluon.HybridBlock):
    """Scale · B A x, the change of a frozen layer's output.

    Both matrices are one layer of Algorithm 1: at the start the gradient of A is 0 (B is), and an
    α_k of A alone would be 0 too.

    Args:
        rank: r.
        scale: alpha / r.

    Shapes: (…, d) → (…, p); A (r, d), B (p, r).
    Source: Hu et al. 2021 ("LoRA"), section 4.1; for private training Yu et al. 2022.
    Departs: no dropout on the input.
    """

    MARK = "lora_"  # in the names of its parameters, behind that of the layer

    def __init__(self, num_in: int, num_out: int, *, rank: int, scale: float, prefix: str) -> None:
        super().__init__(prefix=prefix)
        self._scale, self._rank, self._num_out = scale, rank, num_out
        with self.name_scope():
            self.down_weight = self.params.get("down_weight", shape=(rank, num_in))
            self.up_weight = self.params.get("up_weight", shape=(num_out, rank))

    def hybrid_forward(self, F, x, down_weight, up_weight):
        low = F.FullyConnected(
            x, down_weight, num_hidden=self._rank, no_bias=True, flatten=False
        )  # (…, r)
        return F.FullyConnected(
            low * self._scale, up_weight, num_hidden=self._num_out, no_bias=True, flatten=False
        )  # (…, p)


class AdaptedDense(nn.Dense):
    """Gluon's Dense with an adapter, whose change comes before the activation."""

    adapter: LowRank

    def hybrid_forward(self, F, x, weight, bias):
        out = F.FullyConnected(x, weight, bias, num_hidden=self._units, flatten=self._flatten)
        out = out + self.adapter(x)
        return out if self.act is None else self.act(out)


class AdaptedSelfAttention(SelfAttention):
    """`SelfAttention` with adapters of query, key and value."""

    query_adapter: LowRank
    key_adapter: LowRank
    value_adapter: LowRank

    def projected(self, F, qkv, weight, bias):
        adapters = (self.query_adapter, self.key_adapter, self.value_adapter)
        changes = F.concat(*[adapter(qkv) for adapter in adapters], dim=2)  # (T, N, 3C)
        return super().projected(F, qkv, weight, bias) + changes


@dataclass(frozen=True)
class LoRASettings(Settings):
    """Settings of low-rank adapters.

    Attributes:
        lora_rank: rank of an adapter.
        lora_alpha: an adapter's change is scaled by lora_alpha / lora_rank; by default by 1.
    """

    lora_rank: int = setting(8, at_least=1, at_most=MOST_WIDE)
    lora_alpha: Optional[float] = setting(None, above=0, at_most=MOST_NORM)

    @property
    def lora_scale(self) -> float:
        """The factor of an adapter's change."""
        return 1.0 if self.lora_alpha is None else self.lora_alpha / self.lora_rank


class LowRankPart(TrainedPart):
    """Pairs of matrices beside the weights of a transformer's upper layers and of its pooler."""

    kind: Type[LowRank] = LowRank

    def sizes(self, config: Any) -> Dict[str, Any]:
        """Return `rank` and `scale` of a pair."""
        raise NotImplementedError

    def change(self, encoder: gluon.Block, config: Any) -> None:
        """Put pairs on the layers from `frozen_layers` on, and on the pooler where there is one.

        In a layer, they are for query, key, value, the attention's output and both feed-forward
        layers.
        """
        adaptable, sizes = encoder.adaptable(config.frozen_layers), self.sizes(config)
        for attention in adaptable.attentions:
            attention.__class__ = AdaptedSelfAttention
            width = attention.units
            with attention.name_scope():
                for name in PROJECTIONS:
                    adapter = self.kind(width, width, prefix=f"{name}_{self.kind.MARK}", **sizes)
                    setattr(attention, f"{name}_adapter", adapter)
        for dense in adaptable.dense:
            dense.__class__ = AdaptedDense
            num_out, num_in = dense.weight.shape
            with dense.name_scope():
                dense.adapter = self.kind(num_in, num_out, prefix=self.kind.MARK, **sizes)


class LoRA(LowRankPart):
    """Adapters of a transformer's upper layers and of its pooler."""

    name, settings, endings = "lora", LoRASettings, (DOWN, UP)

    def check(self, config: Any) -> None:
        if config.lora_rank > config.hidden_size:
            raise SettingError(
                "lora_rank",
                f"must be at most {config.hidden_size} (hidden_size), not {config.lora_rank}",
            )

    def sizes(self, config: Any) -> Dict[str, Any]:
        return {"rank": config.lora_rank, "scale": config.lora_scale}

    def initial_values(
        self, name: str, shape: Tuple[int, ...], generator: np.random.Generator
    ) -> Optional[np.ndarray]:
        """Draw A uniformly from ±1/√d; B is 0, so that the first model is the frozen one.

        Source: Hu et al. 2021, their published code.
        """
        if name.endswith(UP):
            return np.zeros(shape)
        is_down = name.endswith(DOWN)
        return generator.uniform(-1.0, 1.0, shape) / np.sqrt(shape[1]) if is_down else None

    def plain(self, weights: Arrays, config: Any) -> Arrays:
        return merged(weights, scale=config.lora_scale)


def merged(weights: Mapping[str, np.ndarray], *, scale: float) -> Dict[str, np.ndarray]:
    """Return the weights of the same model without adapters: W + scale · B A for each W.

    Args:
        weights: by name, adapters' too; they are left as they are.
        scale: alpha / rank.
    """
    plain = {name: values for name, values in weights.items() if not name.endswith((DOWN, UP))}
    for name in weights:
        if name.endswith(DOWN):
            stem = name[: -len(DOWN)]
            change = weights[stem + UP].astype(np.float64) @ weights[name]
            weight = plain[stem + "weight"]
            plain[stem + "weight"] = (weight + scale * change).astype(weight.dtype)
    return plain
