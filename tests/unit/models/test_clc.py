"""The CLC encoder and its settings."""

from __future__ import annotations

import mxnet as mx
import numpy as np
from support.models import padded, random_batch, tiny_model


def test_states_and_pooled():
    batch = random_batch(np.random.default_rng(0), [4, 1, 3])
    for pooling in ("mean", "max", "first", "last"):
        encoder = tiny_model(intent_pooling=pooling).encoder
        states, pooled = (out.asnumpy() for out in encoder(*encoder.inputs(batch, mx.cpu())))
        assert states.shape == (3, 4, encoder.output_size) == (3, 4, 12)
        assert pooled.shape == (3, 12)
        if pooling == "last":
            np.testing.assert_array_equal(pooled, states[np.arange(3), batch.lengths - 1])
        wide = [out.asnumpy() for out in encoder(*encoder.inputs(padded(batch), mx.cpu()))]
        np.testing.assert_allclose(wide[0][:, :4], states, atol=1e-6)
        np.testing.assert_allclose(wide[1], pooled, atol=1e-6)
        assert not wide[0][1, 1:].any()
