"""GELU by the approximation that GPT-2 has."""

from __future__ import annotations

import math

from mxnet import gluon

_WIDTH, _CUBIC = 2 * math.sqrt(2 / math.pi), 0.044715


class TanhGELU(gluon.HybridBlock):
    """x · Φ(x) by the approximation that GPT-2 has, ½ x (1 + tanh √(2/π) (x + 0.044715 x³)).

    Source: Hendrycks & Gimpel 2016, section 2; "gelu_new" of `transformers`. Since (1 + tanh z) / 2
    is the logistic function of 2 z, that is what is computed.
    """

    def hybrid_forward(self, F, values):
        return values * F.sigmoid(values * (_WIDTH + _WIDTH * _CUBIC * F.square(values)))
