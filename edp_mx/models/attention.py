"""GluonNLP's self-attention in two parts: the projection, and the attention to it."""

from __future__ import annotations

from gluonnlp.model.bert import DotProductSelfAttentionCell


class SelfAttention(DotProductSelfAttentionCell):
    """GluonNLP's self-attention, whose projection a subclass may change.

    Shapes: qkv (T, N, C), valid lengths (N, T) → (T, N, C), (N, heads, T, T).
    Source: Vaswani et al. 2017, equation 1.
    """

    def hybrid_forward(
        self, F, qkv, valid_len, query_bias, key_bias, value_bias, query_weight, key_weight,
        value_weight,
    ):  # fmt: skip
        weight = F.concat(query_weight, key_weight, value_weight, dim=0)  # (3C, C)
        bias = F.concat(query_bias, key_bias, value_bias, dim=0)  # (3C,)
        return self.attend(F, self.projected(F, qkv, weight, bias), valid_len)

    def projected(self, F, qkv, weight, bias):
        """Return queries, keys and values, one behind the other. Shapes: → (T, N, 3C)."""
        return F.FullyConnected(qkv, weight, bias, num_hidden=3 * self.units, flatten=False)

    def attend(self, F, projected, valid_len):
        """Return the results of `hybrid_forward`, from queries, keys and values."""
        heads = self._num_heads
        by_head = F.reshape(projected, (0, 0, 3, heads, -1))  # (T, N, 3, heads, c)
        projected = F.reshape(F.transpose(by_head, (0, 1, 3, 2, 4)), (0, 0, -1))  # (T, N, 3C)
        scores = F.contrib.interleaved_matmul_selfatt_qk(projected, heads=heads)  # (N·heads, T, T)
        lengths = F.broadcast_axis(F.expand_dims(valid_len, axis=1), axis=1, size=heads)
        lengths = F.reshape(lengths, (-1, 0), reverse=True)  # (N·heads, T)
        weights = self.dropout_layer(F.softmax(scores, length=lengths, use_length=True, axis=-1))
        context = F.contrib.interleaved_matmul_selfatt_valatt(projected, weights, heads=heads)
        return context, F.reshape(weights, (-1, heads, 0, 0), reverse=True)
