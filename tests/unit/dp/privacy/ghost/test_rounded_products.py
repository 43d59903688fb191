"""Ghost clipping with products of dense layers in bfloat16: what still holds, and what does not."""

import mxnet as mx
import numpy as np
import pytest
from subjects import paper_model, synthetic_batch
from support.own_networks import mlp, ready, training, vectors
from support.prescribed import taken
from support.refusals import one_sentence

from edp_mx.config import ExperimentConfig
from edp_mx.dp.accounting.clippings import CLIPPINGS
from edp_mx.dp.accounting.config import PrivacyConfig
from edp_mx.dp.privacy.build_clipping import clipping_for
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.ghost.check import refuse_wrong_on
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.runs.check import check_files
from edp_mx.runtime.blas import Processor
from edp_mx.runtime.precision import FULL, LOW, why_imitated
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
@pytest.mark.parametrize("size", [16, 48])
def test_what_others_add_moves_a_little_with_an_utterance_that_joins_them(size):
    """A float32's last place decides which way a product is rounded, and a shape decides that."""
    batch = synthetic_batch("gpt2", examples=size, tokens=12, num_pieces=500)
    model = paper_model("gpt2", dropout=0.0, num_pieces=500)
    parts = [part(batch, rows) for rows in (np.arange(size), np.arange(1, size), [0])]
    moved = {}
    for name, clipping in zip(("full", "low"), both(model)):
        whole, others, alone = (
            taken(clipping.clip([lambda given=given: model.loss(given)])) for given in parts
        )
        moved[name] = np.linalg.norm(whole - others - alone) / C
    assert moved["full"] < 1e-5 and moved["low"] < 0.01


OLD = Processor("GenuineIntel", "6 85 7", frozenset({"avx512f", "avx2"}))


def test_a_processor_that_would_imitate_it_is_told():
    way = CLIPPINGS["ghost_bfloat16"]
    assert "none of the instructions for bfloat16" in why_imitated(way.precision, OLD)
    assert why_imitated(CLIPPINGS["ghost"].precision, OLD) == ""
    assert why_imitated(way.precision, OLD._replace(flags=OLD.flags | {"amx_bf16"})) == ""


def test_such_a_processor_is_refused_before_anything_is_trained(generator, monkeypatch, tmp_path):
    monkeypatch.setattr(Processor, "read", classmethod(lambda cls: OLD))
    private = training(mlp_of(generator), folder=tmp_path, clipping="ghost_bfloat16")
    one_sentence('bfloat16.*give make_plan clipping="ghost"', next,
                 private.batches(vectors(generator)))  # fmt: skip
    assert not any(tmp_path.iterdir())
    config = ExperimentConfig(privacy=PrivacyConfig(mechanism="dp_sgd", clipping="ghost_bfloat16"))
    one_sentence("privacy.clipping: .*bfloat16.*; set it to ghost", check_files, config, 1)


@needs_bfloat16
def test_a_folder_of_rounded_products_is_no_folder_of_another_way(generator, tmp_path):
    settings = {"folder": tmp_path, "noise_multiplier": 1.0}
    private = training(mlp_of(generator), clipping="ghost_bfloat16", **settings)
    for batch in private.batches(vectors(generator)):
        private.step(batch)
    assert any("bfloat16" in text for text in private.guarantee.not_covered)
    one_sentence("begun with clipping ghost_bfloat16", training, mlp_of(generator), **settings)


def mlp_of(generator):
    return ready(mlp(), generator)
