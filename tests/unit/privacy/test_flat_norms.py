"""Layers larger than one thread's chunk: their norms, whatever the number of threads."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import gluon

from edp_mx.privacy import flat as module
from edp_mx.privacy.flat import CHUNK, FlatGradients
from edp_mx.privacy.layers import Layer

SIZES = ((5,), (2 * CHUNK + 77, 3), (CHUNK,), (1, 100))


@pytest.fixture(scope="module")
def flat():
    layers = []
    for k, sizes in enumerate(SIZES):
        parameters = [gluon.Parameter(f"p{k}_{i}", shape=(n,)) for i, n in enumerate(sizes)]
        for parameter in parameters:
            parameter.initialize(mx.init.Zero())
        layers.append(Layer(f"layer{k}", tuple(parameters)))
    return FlatGradients(layers)


@pytest.mark.parametrize("is_constant", [False, True])
def test_the_norms_are_those_of_float64_and_do_not_depend_on_threads(
    monkeypatch, generator, flat, is_constant
):
    values = generator.normal(size=flat.size).astype(np.float32)
    if is_constant:
        values.fill(0.1)
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(module, "allowed_threads", lambda threads=threads: threads)
        found.append(flat.squared_norms(values))
    expected = [
        sum(
            np.square(flat.views(values)[parameter.name].astype(np.float64)).sum()
            for parameter in layer.parameters
        )
        for layer in flat.layers
    ]
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)
    assert (found[1] == found[0]).all() and (found[2] == found[0]).all()


def test_what_lies_between_parameters_does_not_count(flat):
    values = np.full(flat.size, np.inf, np.float32)
    for view in flat.views(values).values():
        view.fill(1)
    np.testing.assert_allclose(flat.squared_norms(values), [sum(sizes) for sizes in SIZES])
