"""Ghost clipping with products of dense layers in bfloat16: what still holds, and what does not."""

import mxnet as mx
import numpy as np
import pytest
from subjects import paper_model, synthetic_batch
from support.prescribed import taken
from support.refusals import one_sentence

from edp_mx.dp.accounting.clippings import CLIPPINGS
from edp_mx.dp.privacy.build_clipping import clipping_for
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.ghost.check import refuse_wrong_on
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.runtime.blas import Processor
from edp_mx.runtime.precision import FULL, LOW, refuse_imitated
from tests.support.models import part, random_batch, tiny
from tests.support.releases import release_with

LENGTHS = [5, 1, 3, 7, 2, 4]
C = 0.05
HAS = {"avx512_bf16", "amx_bf16"} & Processor.read().flags
needs_bfloat16 = pytest.mark.skipif(not HAS, reason="this processor does not compute in bfloat16")


def both(model):
    """Ghost clipping in float32 and in bfloat16."""
    flat = FlatGradients(layers_of(model))
    release = release_with(max_grad_norm=C, layer_scales=[1.0] * len(flat.layers))
    return [
        clipping_for(kind, release, flat, model, chunk_size=64)
        for kind in ("ghost", "ghost_bfloat16")
    ]


@needs_bfloat16
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_no_clipped_gradient_is_longer_than_c_and_the_sum_is_nearly_that_of_float32(
    family, generator
):
    model, batch = tiny(family), random_batch(generator, LENGTHS, family)
    full, low = both(model)
    expected, found = (taken(each.clip([lambda: model.loss(batch)])) for each in (full, low))
    assert 0 < np.linalg.norm(found - expected) < 0.02 * np.linalg.norm(expected)
    assert low.statistics.norm_sum > 10 * C * len(LENGTHS)  # all of them were clipped
    for row in range(len(LENGTHS)):
        alone = part(batch, [row])
        norm = np.linalg.norm(taken(low.clip([lambda alone=alone: model.loss(alone)])))
        assert C * (1 - 1e-5) < norm < C * (1 + 1e-6)


@needs_bfloat16
def test_norms_are_those_of_the_gradients_that_are_summed(generator):
    """Without clipping the squared norm of a sum of one is the norm: both are of one gradient."""
    model, batch = tiny("bert"), random_batch(generator, LENGTHS, "bert")
    _, low = both(model)
    squares = low.squared_norms(lambda: model.loss(batch))  # (N, L)
    for row, square in enumerate(squares):
        factor = C / np.sqrt(square.sum())
        alone = part(batch, [row])
        found = taken(low.clip([lambda alone=alone: model.loss(alone)]))
        views = low.flat.views(found / factor)
        layers = [np.sqrt(sum(np.sum(views[p.name].astype(float) ** 2) for p in layer.parameters))
                  for layer in low.flat.layers]  # fmt: skip
        np.testing.assert_allclose(layers, np.sqrt(square), rtol=0.02, atol=1e-3 / factor)


@needs_bfloat16
def test_weights_gradients_and_all_that_rules_read_stay_in_float32(generator):
    model, batch = tiny("gpt2"), random_batch(generator, LENGTHS, "gpt2")
    _, low = both(model)
    low.clip([lambda: model.loss(batch)])
    assert {p.data().dtype for p in model.collect_params().values()} == {np.float32}
    finer = 0
    for seen in (seen for block in low._blocks for seen in block.seen()[0]):
        gradients = mx.nd.array(seen.gradients)
        rounded = mx.nd.amp_cast(mx.nd.amp_cast(gradients, dtype=LOW), dtype=FULL).asnumpy()
        finer += seen.tap.rule == "FullyConnected" and (rounded != seen.gradients).any()
        assert {seen.inputs.dtype.name, seen.gradients.dtype.name} <= {"float32", "int32"}
    assert finer >= 8


@needs_bfloat16
def test_its_rules_are_compared_with_the_loop_in_float32(generator):
    model, batch = tiny("bert"), random_batch(generator, LENGTHS, "bert")
    _, low = both(model)
    refuse_wrong_on(low, model.loss, lambda rows: part(batch, rows), num_records=len(LENGTHS))


@needs_bfloat16
def test_what_others_add_moves_a_little_with_an_utterance_that_joins_them():
    """A float32's last place decides which way a product is rounded, and a shape decides that."""
    batch = synthetic_batch("gpt2", examples=16, tokens=12, num_pieces=500)
    model = paper_model("gpt2", dropout=0.0, num_pieces=500)
    full, low = both(model)
    moved = {}
    for name, clipping in (("full", full), ("low", low)):
        together = taken(clipping.clip([lambda: model.loss(batch)]))
        alone = [
            taken(clipping.clip([lambda row=row: model.loss(part(batch, [row]))]))
            for row in range(16)
        ]
        moved[name] = np.linalg.norm(together - np.sum(alone, axis=0)) / C
    assert moved["full"] < 1e-5 and moved["low"] < 0.01


def test_a_processor_that_would_imitate_it_is_refused():
    way = CLIPPINGS["ghost_bfloat16"]
    old = Processor("GenuineIntel", "6 85 7", frozenset({"avx512f", "avx2"}))
    one_sentence("instructions for bfloat16.*privacy.clipping: ghost", refuse_imitated,
                 way.precision, old)  # fmt: skip
    refuse_imitated(CLIPPINGS["ghost"].precision, old)
    refuse_imitated(way.precision, old._replace(flags=old.flags | {"amx_bf16"}))
