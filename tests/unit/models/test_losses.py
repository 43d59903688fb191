"""The sum of the two losses."""

from __future__ import annotations

import mxnet as mx
import numpy as np
from crf_oracle import enumerated_loss, random_chain

from edp_mx.models.crf import CRF
from edp_mx.models.losses import cross_entropy, intent_slot_loss


def test_cross_entropy_is_exact_and_finite():
    scores = np.array([[1.0, 2.0, -1.0], [1e4, -1e4, 0.0]])
    found = cross_entropy(mx.nd.array(scores), np.array([2, 1])).asnumpy()
    expected = np.log(np.exp(scores[0]).sum()) - scores[0, 2]
    # oneDNN's logarithm for processors without AVX2 errs by 1.3e-6
    np.testing.assert_allclose(found, [expected, 2e4], rtol=1e-5)


def test_sum_of_slots_and_intent():
    rng = np.random.default_rng(1)
    crf, chain = CRF(3, prefix="crf_"), random_chain(rng, 3)
    crf.initialize()
    for name, values in chain._asdict().items():
        getattr(crf.scores, name).set_data(mx.nd.array(values))
    emissions, slots = rng.normal(size=(2, 3, 3)), rng.integers(0, 3, (2, 3))
    scores, lengths, intents = rng.normal(size=(2, 4)), np.array([3, 2]), np.array([3, 0])
    found = intent_slot_loss(
        crf,
        emissions=mx.nd.array(emissions),
        slots=slots,
        lengths=lengths,
        intent_scores=mx.nd.array(scores),
        intents=intents,
    ).asnumpy()
    for row, length in enumerate(lengths):
        slot_loss, _ = enumerated_loss(emissions[row, :length], slots[row, :length], chain)
        intent_loss = np.log(np.exp(scores[row]).sum()) - scores[row, intents[row]]
        np.testing.assert_allclose(found[row], slot_loss + intent_loss, rtol=1e-5)
