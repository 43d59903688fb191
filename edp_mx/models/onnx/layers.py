"""Layers that several encoders and heads have, as operators of ONNX."""

from __future__ import annotations

import math

import numpy as np
from mxnet.gluon import nn

from edp_mx.models.onnx.graph import Graph, Value

LOWEST = -3.0e38  # in place of −∞, as in `clc_layers.Pooling`
FLOAT, INT32 = 1, 6  # the numbers that ONNX has for types


def dense(graph: Graph, x: Value, layer: nn.Dense) -> Value:
    """Return W x + b, without the layer's activation. Shapes: (…, d) → (…, p)."""
    return affine(graph, x, graph.weight(layer.weight), graph.weight(layer.bias))


def affine(graph: Graph, x: Value, weight: Value, bias: Value) -> Value:
    """Return W x + b. Shapes: (…, d), (p, d), (p,) → (…, p)."""
    columns = graph.apply("Transpose", weight, perm=[1, 0])  # (d, p)
    return graph.apply("Add", graph.apply("MatMul", x, columns), bias)


def activated(graph: Graph, x: Value, name: str) -> Value:
    """Return gelu (with the error function) or relu of values."""
    if name == "relu":
        return graph.apply("Relu", x)
    root, half, one = (graph.constant(v, np.float32) for v in (math.sqrt(2), 0.5, 1.0))
    share = graph.apply("Add", graph.apply("Erf", graph.apply("Div", x, root)), one)
    return graph.apply("Mul", graph.apply("Mul", x, half), share)


def layer_norm(graph: Graph, x: Value, norm: nn.LayerNorm, epsilon: float) -> Value:
    """Return values of mean 0 and variance 1 over the last axis, scaled and shifted."""
    scale, offset = graph.weight(norm.gamma), graph.weight(norm.beta)
    return graph.apply("LayerNormalization", x, scale, offset, axis=-1, epsilon=epsilon)


def expanded(graph: Graph, x: Value, *axes: int) -> Value:
    """Return values with further axes of length 1."""
    return graph.apply("Unsqueeze", x, graph.constant(axes))


def length_of(graph: Graph, x: Value, axis: int) -> Value:
    """Return the length of an axis. Shapes: → ()."""
    length = graph.apply("Shape", x, start=axis, end=axis + 1)  # (1,)
    return graph.apply("Squeeze", length, graph.constant([0]))


def steps(graph: Graph, count: Value) -> Value:
    """Return 0, 1, … below a count. Shapes: () → (count,)."""
    return graph.apply("Range", graph.constant(0), count, graph.constant(1))


def is_inside(graph: Graph, lengths: Value, count: Value) -> Value:
    """Return which of so many places are below the lengths. Shapes: (N,), () → (N, count)."""
    return graph.apply("Less", steps(graph, count), expanded(graph, lengths, 1))


def mean(graph: Graph, x: Value, lengths: Value) -> Value:
    """Return the means over the places without padding. Shapes: (N, T, H), (N,) → (N, H)."""
    inside = is_inside(graph, lengths, length_of(graph, x, 1))  # (N, T)
    mask = graph.apply("Cast", expanded(graph, inside, 2), to=FLOAT)  # (N, T, 1)
    total = graph.apply(
        "ReduceSum", graph.apply("Mul", x, mask), graph.constant([1]), keepdims=0
    )  # (N, H)
    counts = graph.apply("Cast", expanded(graph, lengths, 1), to=FLOAT)  # (N, 1)
    return graph.apply("Div", total, counts)


def at_places(graph: Graph, x: Value, places: Value) -> Value:
    """Return the rows at places of each example. Shapes: (N, P, H), (N, …) → (N, …, H)."""
    return graph.apply("GatherND", x, expanded(graph, places, -1), batch_dims=1)
