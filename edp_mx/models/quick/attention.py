"""Self-attention in one operator, from the projections of its input to the heads' results."""

from __future__ import annotations

from gluonnlp.model.bert import DotProductSelfAttentionCell

from edp_mx.models.quick.dropout import draws_of


class SelfAttention(DotProductSelfAttentionCell):
    """GluonNLP's self-attention with the same parameters, in the time of its matrix products.

    Shapes: qkv (T, N, C), valid lengths (N, T) → (T, N, C), (N·heads, T, ≥ T).
    Source: Vaswani et al. 2017, equation 1.
    Departs: the second result, which nobody reads, are the weights before dropout, with a minus
    where it took them, and zeros behind the last column.
    """

    def check(self) -> None:
        """Nothing that it cannot do."""

    def hybrid_forward(
        self, F, qkv, valid_len, query_bias, key_bias, value_bias, query_weight, key_weight,
        value_weight,
    ):  # fmt: skip
        """See the class."""
        projected = F.FullyConnected(
            qkv,
            F.concat(query_weight, key_weight, value_weight, dim=0),
            F.concat(query_bias, key_bias, value_bias, dim=0),
            num_hidden=3 * self.units,
            flatten=False,
        )  # (T, N, 3C)
        return F.edp_attention(
            projected,
            F.cast(valid_len, "float32"),
            draws_of(F),
            heads=str(self._num_heads),
            rate=repr(self.dropout_layer._rate),
        )
