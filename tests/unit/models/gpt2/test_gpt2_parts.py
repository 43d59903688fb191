"""The parts of a GPT-2 that are trained: their start, gradients, merging, and cached decoding."""

import mxnet as mx
import numpy as np
import pytest
from support.gpt2 import scorer_of, scores_of
from support.models import random_batch, tiny_gpt2
from support.prescribed import taken

from edp_mx.data.encoding import encode
from edp_mx.dp.privacy.ghost.check import refuse_wrong
from edp_mx.errors import UserError
from edp_mx.models.gpt2.checkpoint import checkpoint_of, read_checkpoint, write_checkpoint
from edp_mx.models.gpt2.config import GPT2Config
from edp_mx.models.lora import LoRA
from edp_mx.models.rgp import RGP, carried_weights
from edp_mx.runtime.settings import SettingError
from edp_mx.tasks.causal_lm.decoding import Decoding, continuations
from tests.support.models import part
from tests.unit.dp.privacy.ghost.test_clipping import assert_same_sum, by_loop, ghost_for
from tests.unit.tasks.test_causal_lm import TOKENIZER, VOCABULARY, gradients_of, model_of, texts

PLACES = ("attention_query", "attention_key", "attention_value", "proj", "ffn_1", "ffn_2")
PARTS = {
    "adapters": {"trained": "lora", "lora_rank": 2, "lora_alpha": 3.0},
    "adapters of the top layer": {"trained": "lora", "lora_rank": 1, "frozen_layers": 1},
    "prefixes": {"trained": "prefix", "prefix_length": 3},
    "a prefix of the top layer": {"trained": "prefix", "prefix_length": 1, "frozen_layers": 1},
    "carriers": {"trained": "rgp", "rgp_rank": 2},
    "carriers of the top layer": {"trained": "rgp", "rgp_rank": 3, "frozen_layers": 1},
    "the top layer": {"is_embedding_trainable": False, "frozen_layers": 1},
}
parts = pytest.mark.parametrize("settings", PARTS.values(), ids=PARTS)


@pytest.fixture
def batch(generator):
    return encode(texts(generator), VOCABULARY, max_pieces=24).batch(range(6))


@parts
@pytest.mark.parametrize("c", [0.5, 1e9])
def test_ghost_clipping_is_the_loop(settings, c, batch):
    model = model_of(**settings)
    ghost, loop, _ = ghost_for(model, max_grad_norm=c)
    losses = lambda: model.loss(batch)  # noqa: E731
    assert_same_sum(taken(ghost.clip([losses])), by_loop(loop, model, batch))
    assert ghost.statistics.norm_sum == pytest.approx(loop.statistics.norm_sum, rel=1e-5)
    alone = [lambda row=row: model.loss(part(batch, [row])) for row in range(6)]
    refuse_wrong(ghost, together=[losses], alone=alone)


@parts
def test_the_same_holds_for_intents_and_labels(settings, generator):
    model, batch = tiny_gpt2(**settings), random_batch(generator, [5, 1, 3, 7], "gpt2")
    ghost, loop, _ = ghost_for(model)
    assert_same_sum(taken(ghost.clip([lambda: model.loss(batch)])), by_loop(loop, model, batch))


@pytest.mark.parametrize("frozen_layers", [0, 1])
def test_adapters_of_the_upper_layers_are_trained(frozen_layers, batch):
    model = model_of(trained="lora", frozen_layers=frozen_layers)
    found = gradients_of(model, batch)
    assert found.keys() == {
        f"gpt2_layer{i}_{place}_lora_{side}_weight"
        for i in range(frozen_layers, 2)
        for place in PLACES
        for side in ("down", "up")
    }
    assert all(np.abs(gradient).max() > 1e-9 for gradient in found.values())


def test_carriers_give_the_projection_of_the_whole_gradient(batch):
    carried, whole = model_of(trained="rgp", rgp_rank=3), model_of()
    ours = carried.collect_params()
    for name, parameter in whole.collect_params().items():
        parameter.set_data(ours[name].data())
    weights = carried_weights(carried.encoder)
    assert len(weights) == 2 * len(PLACES)
    assert all(RGP().trains(name) for name in gradients_of(carried, batch))
    gradients = gradients_of(whole, batch)
    for weight in weights:
        left, right = (carrier.data().asnumpy() for carrier in weight.carriers)  # (p, r), (r, d)
        gradient = gradients[weight.updated.name]
        inside = left @ left.T @ gradient
        weight.reconstruct()
        np.testing.assert_allclose(
            weight.updated.grad().asnumpy(),
            inside + (gradient - inside) @ right.T @ right,
            atol=2e-5 * np.abs(gradient).max(),
        )


def test_what_the_top_layer_leaves_frozen_has_no_gradient(batch):
    """The output layer is the pieces' vectors."""
    found = gradients_of(model_of(**PARTS["the top layer"]), batch)
    assert all(name.startswith(("gpt2_layer1_", "gpt2_norm_")) for name in found)
    assert len(found) == 16 + 2 and all(np.abs(each).max() > 1e-9 for each in found.values())


def test_adapters_start_as_the_frozen_model(generator):
    """With the names and the drawn values of the model without them."""
    plain, adapted = tiny_gpt2(), tiny_gpt2(trained="lora")
    ours = adapted.collect_params()
    for name, parameter in plain.collect_params().items():
        np.testing.assert_array_equal(ours[name].data().asnumpy(), parameter.data().asnumpy())
    assert all(LoRA().trains(name) for name in ours if name not in plain.collect_params())
    batch = random_batch(generator, [3, 1, 5], "gpt2")
    np.testing.assert_array_equal(adapted.loss(batch).asnumpy(), plain.loss(batch).asnumpy())


@pytest.mark.parametrize("alpha", [None, 3.0])
def test_merged_adapters_give_the_same_scores(alpha, batch, tmp_path):
    model = model_of(trained="lora", lora_rank=2, lora_alpha=alpha)
    made = checkpoint_of(model.encoder.decoder, TOKENIZER)
    write_checkpoint(tmp_path, config=made.config, tokenizer=TOKENIZER, tensors=made.tensors)
    assert read_checkpoint(tmp_path).config.trained == "all"
    pieces = batch.inputs.pieces
    found, wanted = scores_of(scorer_of(tmp_path), pieces), scores_of(model.encoder, pieces)
    np.testing.assert_allclose(found, wanted, atol=1e-5, rtol=1e-5)
    for name, parameter in model.collect_params().items():
        if LoRA().trains(name):
            parameter.set_data(mx.nd.zeros(parameter.shape))
    assert np.abs(scores_of(model.encoder, pieces) - wanted).max() > 0.1


@parts
def test_cached_steps_score_as_the_whole_does(settings, batch):
    model, pieces = model_of(**settings), batch.inputs.pieces
    wanted, past, at = scores_of(model.encoder, pieces), None, 0
    for size in (2, 1, 3, 1):
        given = mx.nd.array(pieces[:, at : at + size], dtype="int32")
        scores, past = model.encoder.step(given, past)
        at += size
        np.testing.assert_allclose(scores.asnumpy(), wanted[:, at - 1], atol=1e-4)


@parts
def test_beams_go_the_same_ways_without_a_cache(settings, batch):
    """Where each step reads all pieces so far by the whole network."""
    scorer, prompts = model_of(**settings).encoder, batch.inputs.pieces[:, :3]

    def uncached(pieces, past):
        seen = pieces if past is None else mx.nd.concat(past[0], pieces, dim=1)  # (N, S)
        return mx.nd.array(scores_of(scorer, seen.asnumpy())[:, -1]), [seen]

    decoding = Decoding(max_pieces=8, beams=3)
    found, wanted = (
        continuations(step, prompts, decoding, end=TOKENIZER.special_ids.sep, room=20)
        for step in (scorer.step, uncached)
    )
    assert found == wanted and any(len(pieces) > 2 for pieces in found)


def test_impossible_settings_are_refused_by_name():
    with pytest.raises(SettingError, match="lora_rank must be at most 8"):
        GPT2Config(num_heads=2, hidden_size=8, trained="lora", lora_rank=9)
    with pytest.raises(SettingError, match="rgp_rank must be at most 6"):
        GPT2Config(num_heads=2, hidden_size=8, intermediate_size=6, trained="rgp", rgp_rank=7)
    with pytest.raises(UserError, match="model.trained: lora leaves nothing to train.*frozen_laye"):
        model_of(trained="lora", frozen_layers=2)
    with pytest.raises(UserError, match="nothing to train.* has no heads; set it to all, biases,"):
        model_of(trained="heads")
