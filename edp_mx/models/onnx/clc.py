"""A CLC encoder as a graph of ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Tuple

import numpy as np
from mxnet.gluon import rnn

from edp_mx.models.onnx.graph import Graph, Value
from edp_mx.models.onnx.layers import (
    FLOAT,
    INT32,
    LOWEST,
    at_places,
    expanded,
    is_inside,
    length_of,
    mean,
)

if TYPE_CHECKING:
    from edp_mx.models.clc import CLCEncoder
    from edp_mx.models.clc_layers import BiLSTM, CharCNN

# Where ONNX's gates (input, output, forget, cell) are among MXNet's (input, forget, cell, output).
_GATES = (0, 3, 1, 2)


def clc_graph(graph: Graph, encoder: CLCEncoder) -> Tuple[Value, Value]:
    """Return the states of tokens and the vectors of utterances.

    Shapes: inputs words (N, T), characters (N, T, C), lengths (N,) → (N, T, 2H), (N, 2H).
    """
    words = graph.input("words", ("N", "T"))
    characters = graph.input("characters", ("N", "T", "C"))
    lengths = graph.input("lengths", ("N",))
    known = graph.apply("Gather", graph.weight(encoder.words.weight), words)  # (N, T, E)
    spelled = _spelled(graph, characters, encoder.characters)  # (N, T, F)
    tokens = graph.apply("Concat", known, spelled, axis=2)  # (N, T, E+F)
    tokens = graph.apply("Transpose", tokens, perm=[1, 0, 2])  # (T, N, E+F)
    states = _bilstm(graph, tokens, lengths, encoder.lstm)  # (T, N, 2H)
    states = graph.apply("Transpose", states, perm=[1, 0, 2])  # (N, T, 2H)
    return states, _pooled(graph, states, lengths, encoder.pooling.kind)


def _spelled(graph: Graph, characters: Value, cnn: CharCNN) -> Value:
    """Return the features of tokens. Shapes: (N, T, C) → (N, T, F)."""
    (width,) = cnn.convolution.weight.shape[2:]
    is_character = graph.apply("Greater", characters, graph.constant(0))  # (N, T, C)
    mask = graph.apply("Cast", is_character, to=FLOAT)
    vectors = graph.apply("Gather", graph.weight(cnn.embedding.weight), characters)
    vectors = graph.apply("Mul", vectors, expanded(graph, mask, 3))  # (N, T, C, D)
    vectors = graph.apply("Transpose", vectors, perm=[0, 3, 1, 2])  # (N, D, T, C)
    kernel = expanded(graph, graph.weight(cnn.convolution.weight), 2)  # (F, D, 1, width)
    features = graph.apply(
        "Conv", vectors, kernel, graph.weight(cnn.convolution.bias),
        pads=[0, width // 2, 0, width // 2],
    )  # fmt: skip
    features = graph.apply("Mul", graph.apply("Relu", features), expanded(graph, mask, 1))
    peaks = graph.apply("ReduceMax", features, axes=[3], keepdims=0)  # (N, F, T)
    return graph.apply("Transpose", peaks, perm=[0, 2, 1])


def _bilstm(graph: Graph, tokens: Value, lengths: Value, lstm: BiLSTM) -> Value:
    """Return the states of the last layer, 0 at padding. Shapes: (T, N, I) → (T, N, 2H)."""
    counts = graph.apply("Cast", lengths, to=INT32)  # (N,)
    for layer in range(lstm.num_layers):
        lstms = getattr(lstm, f"forward{layer}"), getattr(lstm, f"backward{layer}")
        given = [
            _of_both(graph, lstms, names)
            for names in (["l0_i2h_weight"], ["l0_h2h_weight"], ["l0_i2h_bias", "l0_h2h_bias"])
        ]  # (2, 4H, I), (2, 4H, H), (2, 8H)
        both = graph.apply(
            "LSTM", tokens, *given, counts, direction="bidirectional",
            hidden_size=lstms[0].l0_h2h_weight.shape[1],
        )  # (T, 2, N, H)  # fmt: skip
        both = graph.apply("Transpose", both, perm=[0, 2, 1, 3])  # (T, N, 2, H)
        tokens = graph.apply("Reshape", both, graph.constant([0, 0, -1]))  # (T, N, 2H)
    return tokens


def _of_both(graph: Graph, lstms: Tuple[rnn.LSTM, rnn.LSTM], names: list) -> Value:
    """Return parameters of both directions with ONNX's order of the gates, (2, …)."""
    found = []
    for lstm in lstms:
        gates = np.arange(lstm.l0_h2h_weight.shape[0]).reshape(4, -1)[[*_GATES]]  # (4, H)
        rows = graph.constant(gates.ravel())  # (4H,)
        parts = [graph.apply("Gather", graph.weight(getattr(lstm, n)), rows) for n in names]
        found.append(expanded(graph, graph.apply("Concat", *parts, axis=0), 0))
    return graph.apply("Concat", *found, axis=0)


def _pooled(graph: Graph, states: Value, lengths: Value, kind: str) -> Value:
    """Return a vector per utterance, as `clc_layers.Pooling`. Shapes: (N, T, H), (N,) → (N, H)."""
    if kind == "first":
        return graph.apply("Gather", states, graph.constant(0), axis=1)
    if kind == "last":
        return at_places(graph, states, graph.apply("Sub", lengths, graph.constant(1)))
    if kind == "mean":
        return mean(graph, states, lengths)
    inside = is_inside(graph, lengths, length_of(graph, states, 1))  # (N, T)
    lowest = graph.constant(LOWEST, np.float32)
    spoken = graph.apply("Where", expanded(graph, inside, 2), states, lowest)  # (N, T, H)
    return graph.apply("ReduceMax", spoken, axes=[1], keepdims=0)
