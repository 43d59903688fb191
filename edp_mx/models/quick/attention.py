"""The weights of self-attention: softmax over the valid pieces and dropout, in one operator."""

from __future__ import annotations

from typing import List, Tuple

import mxnet as mx
from gluonnlp.model.bert import DotProductSelfAttentionCell

from edp_mx.models.quick.dropout import USED, Mask, draws_of
from edp_mx.models.quick.operators import Properties, compiled, fill, memory

OPERATOR = "AttentionWeights"


class SelfAttention(DotProductSelfAttentionCell):
    """GluonNLP's self-attention with the same parameters; its softmax and dropout are one.

    Shapes: qkv (T, N, C), valid lengths (N, T) → (T, N, C), (N, heads, T, T).
    Source: Vaswani et al. 2017, equation 1.
    """

    def check(self) -> None:
        """Nothing that it cannot do."""

    def hybrid_forward(
        self, F, qkv, valid_len, query_bias, key_bias, value_bias, query_weight, key_weight,
        value_weight,
    ):  # fmt: skip
        """See the class."""
        heads = {"heads": self._num_heads}
        projected = F.FullyConnected(
            qkv,
            _interleaved(F, (query_weight, key_weight, value_weight), self._num_heads, 0),
            _interleaved(F, (query_bias, key_bias, value_bias), self._num_heads),
            num_hidden=3 * self.units,
            flatten=False,
        )  # (T, N, 3C)
        scores = F.contrib.interleaved_matmul_selfatt_qk(projected, **heads)  # (N·heads, T, T)
        weights = F.Custom(
            scores,
            F.cast(valid_len, "float32"),
            draws_of(F),
            op_type=OPERATOR,
            rate=repr(self.dropout_layer._rate),
            **heads,
        )[0]  # (N·heads, T, T)
        context = F.contrib.interleaved_matmul_selfatt_valatt(projected, weights, **heads)
        return context, weights.reshape(shape=(-1, self._num_heads, 0, 0), reverse=True)


def _interleaved(F, parts: tuple, heads: int, *width: int):
    """Each head's rows for query, key and value one after the other, as MXNet's products want.

    `width` is 0 (in `reshape`: as it was) for weights, nothing for biases.
    """
    split = [part.reshape(shape=(heads, -1, *width), reverse=True) for part in parts]
    return F.concat(*split, dim=1).reshape(shape=(-1, *width), reverse=True)


class _Operator(mx.operator.CustomOp):
    def __init__(self, rate: float, heads: int) -> None:
        super().__init__()
        self._rate, self._heads = rate, heads

    def forward(self, is_train, req, in_data, out_data, aux) -> None:  # noqa: ARG002
        scores, lengths, draws = (memory(array) for array in in_data)
        mask = Mask.drawn(draws, self._rate, is_train=is_train)
        fill(out_data[2], "write", mask.save)
        shares = out_data[1]

        def make(out) -> None:
            fill(
                shares,
                "write",
                lambda place: compiled().attention_weights(
                    scores, lengths, heads=self._heads, mask=mask, out=out, shares=place
                ),
            )

        fill(out_data[0], req[0], make)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux) -> None:  # noqa: ARG002
        heads, shares, used = (memory(array) for array in (out_grad[0], *out_data[1:]))
        mask = Mask.load(used)
        fill(
            in_grad[0],
            req[0],
            lambda out: compiled().attention_weights_backward(heads, shares, mask=mask, out=out),
        )
        for place, request in zip(in_grad[1:], req[1:]):
            fill(place, request, lambda out: out.fill(0))


@mx.operator.register(OPERATOR)
class _Properties(Properties):
    arguments = ("scores", "lengths", "draws")
    outputs = ("output", "shares", USED)

    def __init__(self, rate: str, heads: str) -> None:
        super().__init__()
        self._rate, self._heads = float(rate), int(heads)

    def infer_shape(self, in_shape: List[list]) -> Tuple[List[list], List[list], List[list]]:
        scores = in_shape[0]
        lengths = [scores[0] // self._heads, scores[1]]
        return [scores, lengths, [2]], [scores, scores, [4]], []

    def create_operator(self, ctx, shapes, dtypes) -> _Operator:  # noqa: ARG002
        return _Operator(self._rate, self._heads)
