"""A BERT encoder as a graph of ONNX."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, List, Tuple

import numpy as np

from edp_mx.models.onnx.graph import Graph, Value
from edp_mx.models.onnx.layers import (
    LOWEST,
    activated,
    affine,
    at_places,
    dense,
    expanded,
    is_inside,
    layer_norm,
    length_of,
    mean,
    steps,
)

if TYPE_CHECKING:
    from edp_mx.models.bert import BERT, BERTConfig
    from edp_mx.models.bert_encoder import BERTEncoder
    from edp_mx.models.infilling import MaskState


def bert_graph(graph: Graph, encoder: BERTEncoder) -> Tuple[Value, Value]:
    """Return the states of tokens and the vectors of utterances.

    Adapters must have been merged into the graph's weights.

    Shapes: inputs pieces (N, P), piece_lengths (N,), firsts (N, T) → (N, T, H), (N, G H).
    """
    pieces = graph.input("pieces", ("N", "P"))
    lengths = graph.input("piece_lengths", ("N",))
    firsts = graph.input("firsts", ("N", "T"))
    own, config = encoder.bert, encoder.bert.config
    vectors = graph.apply("Gather", graph.weight(own.piece_embedding), pieces)  # (N, P, H)
    layers = _layers(graph, vectors, lengths, own)
    pooled = _pooled(graph, layers[-1], lengths, own)  # (N, H)
    if config.reads_all_layers:
        ones = graph.constant(np.ones(config.hidden_size), np.float32)
        below = graph.apply("LayerNormalization", vectors, ones, axis=-1, epsilon=1e-6)
        means = [mean(graph, states, lengths) for states in (below, *layers[:-1])]
        pooled = graph.apply("Concat", pooled, *means, axis=1)  # (N, G H)
    return at_places(graph, layers[(config.token_layer or 0) - 1], firsts), pooled


def _layers(graph: Graph, vectors: Value, lengths: Value, own: BERT) -> List[Value]:
    """Return the states above each layer; those of padding mean nothing. Shapes: (N, P, H)."""
    model, config = own.model, own.config
    count = length_of(graph, vectors, 1)
    kind = graph.apply("Gather", graph.weight(model.token_type_embed[0].weight), graph.constant(0))
    places = graph.weight(model.encoder.position_weight)
    places = graph.apply("Gather", places, steps(graph, count))  # (P, H)
    states = graph.apply("Add", graph.apply("Add", vectors, kind), places)
    states = layer_norm(graph, states, model.encoder.layer_norm, config.layer_norm_epsilon)
    found = []
    for cell in model.encoder.transformer_cells:
        context = _attended(graph, states, lengths, cell.attention_cell, config)
        states = _added(graph, states, dense(graph, context, cell.proj), cell.layer_norm, config)
        inner = activated(graph, dense(graph, states, cell.ffn.ffn_1), config.activation)
        inner = dense(graph, inner, cell.ffn.ffn_2)
        states = _added(graph, states, inner, cell.ffn.layer_norm, config)
        found.append(states)
    return found


def _added(graph: Graph, states: Value, change: Value, norm: Any, config: BERTConfig) -> Value:
    """Return normalised sums. Shapes: (N, P, H) each."""
    return layer_norm(graph, graph.apply("Add", states, change), norm, config.layer_norm_epsilon)


def _attended(graph: Graph, states: Value, lengths: Value, cell: Any, config: BERTConfig) -> Value:
    """Return self-attention over the pieces, and a trained prefix where there is one.

    Shapes: states (N, P, H), lengths (N,) → (N, P, H).
    """
    queries, keys, values = (
        affine(graph, states, *(graph.weight(getattr(cell, f"{name}_{of}")) for of in _AFFINE))
        for name in ("query", "key", "value")
    )  # (N, P, H) each
    if hasattr(cell, "trained_prefix"):
        keys, values = _behind_prefix(graph, keys, values, cell)  # (N, L + P, H) each
        lengths = graph.apply("Add", lengths, graph.constant(cell.length))
    size = config.hidden_size // config.num_heads
    by_head = graph.constant([0, 0, config.num_heads, size])
    queries, keys, values = (
        graph.apply("Transpose", graph.apply("Reshape", each, by_head), perm=order)
        for each, order in ((queries, _FIRST), (keys, [0, 2, 3, 1]), (values, _FIRST))
    )  # (N, heads, P, c), (N, heads, c, P), (N, heads, P, c)
    root = graph.constant(math.sqrt(size), np.float32)
    scores = graph.apply("Div", graph.apply("MatMul", queries, keys), root)  # (N, heads, P, P)
    inside = is_inside(graph, lengths, length_of(graph, keys, 3))  # (N, P)
    lowest = graph.constant(LOWEST, np.float32)
    scores = graph.apply("Where", expanded(graph, inside, 1, 2), scores, lowest)
    context = graph.apply("MatMul", graph.apply("Softmax", scores, axis=-1), values)
    context = graph.apply("Transpose", context, perm=_FIRST)  # (N, P, heads, c)
    return graph.apply("Reshape", context, graph.constant([0, 0, -1]))


_AFFINE = ("weight", "bias")
_FIRST = [0, 2, 1, 3]  # heads before places, and back


def _behind_prefix(graph: Graph, keys: Value, values: Value, cell: Any) -> Tuple[Value, Value]:
    """Put the trained keys and values before those of the pieces; see `models.prefix`."""
    both = graph.weight(cell.trained_prefix.vectors)  # (L, 2H)
    width = cell.units
    found = []
    for own, start in ((keys, 0), (values, width)):
        bounds = (graph.constant([n]) for n in (start, start + width, 1))
        trained = graph.apply("Slice", both, *bounds)  # (L, H)
        count = graph.apply("Shape", own, start=0, end=1)  # (1,)
        shape = graph.apply("Concat", count, graph.constant([cell.length, width]), axis=0)
        found.append(graph.apply("Concat", graph.apply("Expand", trained, shape), own, axis=1))
    return found[0], found[1]


def _pooled(graph: Graph, states: Value, lengths: Value, own: BERT) -> Value:
    """Return the pooled [CLS], the state at [MASK] or the pieces' mean. Shapes: → (N, H)."""
    if own.mask_state is not None:
        return _mask_state(graph, states, lengths, own.mask_state, own.config)
    if own.config.reads_mean:
        return mean(graph, states, lengths)
    first = graph.apply("Gather", states, graph.constant(0), axis=1)  # (N, H)
    return graph.apply("Tanh", dense(graph, first, own.pooler))


def _mask_state(
    graph: Graph, states: Value, lengths: Value, mask: MaskState, config: BERTConfig
) -> Value:
    """Return the transformed state at [MASK]; see `models.infilling`. Shapes: → (N, H)."""
    place = graph.constant(mask.place)
    start = graph.apply("Mul", lengths, graph.constant(int(mask.place < 0)))  # (N,)
    state = at_places(graph, states, graph.apply("Add", start, place))  # (N, H)
    state = activated(graph, dense(graph, state, mask.transform), config.activation)
    return layer_norm(graph, state, mask.norm, config.layer_norm_epsilon)
