"""Losses whose gradient is whatever a test wants."""

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.layers import Layer


def flat_of(shapes):
    """Flat gradients of layers of one parameter each, which are zero."""
    layers = []
    for k, shape in enumerate(shapes):
        parameter = gluon.Parameter(f"layer{k}_weight", shape=shape)
        parameter.initialize(mx.init.Zero())
        layers.append(Layer(f"layer{k}", (parameter,)))
    return FlatGradients(layers)


def taken(clipped):
    """The whole clipped sum (P,) in float64, with the factor that is due."""
    values, factor = clipped.take()
    return factor * values.astype(np.float64)


def losses_with(flat, *gradients):
    """What makes one loss per gradient: Σ_k ⟨w_k, g_k⟩ of a unit is linear, its gradient is g.

    `gradients`: flat arrays (P,); what lies between the parameters is left out.
    """
    views = [flat.views(np.asarray(gradient)) for gradient in gradients]

    def losses():
        made = [
            mx.nd.add_n(
                *(
                    (p.data() * mx.nd.array(view[p.name])).sum().reshape((1,))
                    for layer in flat.layers
                    for p in layer.parameters
                )
            )
            for view in views
        ]
        return mx.nd.concat(*made, dim=0) if len(made) > 1 else made[0]

    return losses
