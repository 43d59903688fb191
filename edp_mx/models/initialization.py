"""Initial values of all parameters, drawn by NumPy: the same in every process."""

from __future__ import annotations

import zlib
from typing import Callable, Tuple

import mxnet as mx
import numpy as np
from mxnet import gluon

Rule = Callable[[str, Tuple[int, ...], np.random.Generator], np.ndarray]


def initialize(
    block: gluon.Block, *, seed: int, context: mx.Context, rule: Rule | None = None
) -> None:
    """Allocate and fill every parameter.

    A parameter's values depend only on the seed, its name and its shape, so that another layer
    changes none of the rest. MXNet's generator would depend on what ran before.
    """
    block.initialize(mx.init.Zero(), ctx=context)
    for name, parameter in block.collect_params().items():
        generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
        values = (rule or initial_values)(name, parameter.shape, generator)
        parameter.set_data(mx.nd.array(values, ctx=context, dtype="float32"))


def initial_values(name: str, shape: Tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Draw values by the kind of parameter, which its name tells.

    Embeddings: uniform with variance 1/dimension, and 0 for padding (Ma & Hovy 2016). Matrices and
    filters: Xavier uniform, gate by gate for an LSTM. Biases and CRF scores: 0, except 1 for an
    LSTM's forget gate (Jozefowicz et al. 2015).
    """
    if name.endswith(("words_weight", "embedding_weight")):
        values = generator.uniform(-1.0, 1.0, shape) * np.sqrt(3.0 / shape[1])
        values[0] = 0.0
        return values
    if name.endswith("i2h_bias"):
        return np.repeat([0.0, 1.0, 0.0, 0.0], shape[0] // 4)  # gates: input, forget, cell, output
    if name.endswith("weight"):
        gates = 4 if name.endswith(("i2h_weight", "h2h_weight")) else 1
        window = int(np.prod(shape[2:]))
        fan_out, fan_in = shape[0] // gates * window, shape[1] * window
        return generator.uniform(-1.0, 1.0, shape) * np.sqrt(6.0 / (fan_in + fan_out))
    return np.zeros(shape)
