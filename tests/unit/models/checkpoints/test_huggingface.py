"""BERTs of Hugging Face's: hidden states against `transformers`, loading, writing."""

import json
from dataclasses import replace

import mxnet as mx
import numpy as np
import pytest
from golden.make_bert_hidden_states import CASES, GOLDEN, PIECES, draw, pieces_of
from safetensors.numpy import load_file
from support.huggingface import (
    SHAPES,
    TINY,
    WORDS,
    assert_same,
    broken,
    drawn,
    new_bert,
    scores_of_masked_lm,
    write_folder,
)
from support.refusals import one_sentence

from edp_mx.data.wordpiece import WordPiece
from edp_mx.errors import UserError
from edp_mx.models.bert import BERTConfig
from edp_mx.models.checkpoints.huggingface import (
    FILES,
    bert_tensors,
    load_bert,
    read_checkpoint,
    write_checkpoint,
)
from edp_mx.models.checkpoints.names import MASKED_LM, POOLER, shapes_of
from edp_mx.models.registry import read_start


def hidden_states(bert, case):
    """What passes through the production model, caught on the way; shaped as the golden states."""
    caught = []
    encoder = bert.model.encoder
    for block in (encoder.layer_norm, *encoder.transformer_cells):
        block.register_forward_hook(
            lambda _, __, output: caught.append(output[0] if isinstance(output, tuple) else output)
        )
    pieces, lengths = pieces_of(case)
    last, pooled = bert(mx.nd.array(pieces, dtype="int32"), mx.nd.array(lengths))
    mask = np.arange(pieces.shape[1]) < lengths[:, None]  # (N, P)
    states = [array.asnumpy().transpose(1, 0, 2)[mask] for array in caught]
    np.testing.assert_array_equal(last.asnumpy()[mask], states[-1])
    return np.stack(states), pooled.asnumpy()


@pytest.mark.parametrize("case", CASES)
def test_all_hidden_states_agree_with_transformers(case, tmp_path):
    sizes = CASES[case]
    config = BERTConfig(
        num_layers=sizes["num_hidden_layers"],
        num_heads=sizes["num_attention_heads"],
        hidden_size=sizes["hidden_size"],
        intermediate_size=sizes["intermediate_size"],
        max_positions=sizes["max_position_embeddings"],
        activation=sizes.get("hidden_act", "gelu"),
        layer_norm_epsilon=sizes.get("layer_norm_eps", 1e-12),
    )
    shapes = shapes_of(config, num_pieces=len(PIECES))
    folder = write_folder(tmp_path / case, drawn(shapes), settings=sizes)
    checkpoint = read_checkpoint(folder)
    assert checkpoint.config == config
    bert = new_bert(config)
    load_bert(bert, checkpoint)
    states, pooled = hidden_states(bert, case)
    with np.load(GOLDEN) as golden:
        assert states.shape == golden[f"{case}_states"].shape
        np.testing.assert_allclose(states, golden[f"{case}_states"], atol=3e-5, rtol=0)
        np.testing.assert_allclose(pooled, golden[f"{case}_pooled"], atol=3e-5, rtol=0)


def test_the_masked_lm_head_agrees_with_transformers(tmp_path):
    tensors = read_checkpoint(write_folder(tmp_path)).tensors
    with np.load(GOLDEN) as golden:
        last, wanted = golden["tiny_states"][-1], golden["tiny_scores"]
    scores = scores_of_masked_lm(TINY, tensors, last)
    np.testing.assert_allclose(scores, wanted, atol=3e-5, rtol=1e-5)


def test_writing_and_reading_gives_the_same_weights_pieces_and_sizes(tmp_path):
    config = BERTConfig(
        num_layers=2, num_heads=3, hidden_size=6, intermediate_size=5, max_positions=7,
        activation="relu", layer_norm_epsilon=1e-5, dropout=0.25,
    )  # fmt: skip
    wordpiece = WordPiece((*PIECES, "é", "##s"), lowercase=False)
    tensors = bert_tensors(new_bert(config, num_pieces=len(wordpiece)))
    write_checkpoint(tmp_path / "a", config=config, tokenizer=wordpiece, tensors=tensors)
    assert {path.name for path in (tmp_path / "a").iterdir()} == set(FILES) - {"tokenizer.json"}
    checkpoint = read_checkpoint(tmp_path / "a")
    assert checkpoint.config == config and checkpoint.tokenizer == wordpiece
    assert checkpoint.has_pooler and not checkpoint.has_masked_lm
    assert_same(checkpoint.tensors, tensors)
    other = new_bert(config, num_pieces=len(wordpiece))
    for parameter in other.collect_params().values():
        parameter.set_data(mx.nd.zeros(parameter.shape))
    load_bert(other, checkpoint)
    assert_same(bert_tensors(other), tensors)


def test_a_masked_lm_head_is_kept_and_told_to_transformers(tmp_path):
    arguments = {"config": TINY, "tokenizer": WordPiece(PIECES), "tensors": drawn()}
    write_checkpoint(tmp_path, **arguments, more_tensors={"intent_bias": np.ones(2)},
                     more_settings={"intents": ["a", "b"]})  # fmt: skip
    settings = json.loads((tmp_path / "config.json").read_text())
    assert settings["architectures"] == ["BertForMaskedLM"] and settings["intents"] == ["a", "b"]
    assert settings["vocab_size"] == len(PIECES) and settings["num_attention_heads"] == 12
    stored = load_file(tmp_path / "model.safetensors")
    assert set(stored) == {"intent_bias"} | {
        name if name.startswith("cls.") else f"bert.{name}" for name in SHAPES
    }
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.has_masked_lm and set(MASKED_LM) < set(checkpoint.tensors)
    assert_same(checkpoint.tensors, drawn())
    assert checkpoint.num_parameters == sum(int(np.prod(shape)) for shape in SHAPES.values())


def test_without_pooler_the_drawn_one_stays(tmp_path, caplog):
    tensors = {name: values for name, values in drawn().items() if name not in POOLER}
    checkpoint = read_checkpoint(write_folder(tmp_path, tensors))
    assert not checkpoint.has_pooler
    bert = new_bert(TINY)
    before = bert_tensors(bert)
    load_bert(bert, checkpoint)
    assert "has no pooler" in caplog.text
    bare = {name: values for name, values in tensors.items() if name not in MASKED_LM}
    assert_same(bert_tensors(bert), {**bare, **{name: before[name] for name in POOLER}})


def test_frozen_parameters_are_loaded_too(tmp_path):
    config = BERTConfig(**{**vars(TINY), "is_embedding_trainable": False, "frozen_layers": 4})
    bert = new_bert(config)
    load_bert(bert, read_checkpoint(write_folder(tmp_path)))
    found = bert_tensors(bert)
    assert_same(found, {name: draw(name, SHAPES[name]) for name in found})


def test_all_sizes_that_differ_are_named_in_one_sentence(tmp_path):
    folder = str(write_folder(tmp_path))
    told = "is a BERT with hidden_size 24 and .*; leave out model.hidden_size, .*max_positions$"
    one_sentence(told, read_start, BERTConfig(checkpoint=folder))
    assert read_start(replace(TINY, checkpoint=folder, frozen_layers=1, dropout=0.3)) is not None


def test_a_bert_that_the_tensors_do_not_fit_stays_as_it_was(tmp_path):
    checkpoint = read_checkpoint(write_folder(tmp_path))
    bert = new_bert(TINY, num_pieces=41)
    before = bert_tensors(bert)
    one_sentence(r"word_embeddings.weight has shape \(40, 24\)", load_bert, bert, checkpoint)
    assert_same(bert_tensors(bert), before)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.pop(WORDS), f"lacks the tensor {WORDS}"),
        (lambda t: t[WORDS].fill(np.nan), "not finite"),
        (lambda t: t.update(unknown=t[WORDS]), "no place for the tensor unknown"),
    ],
)
def test_nothing_is_written_that_could_not_be_read(tmp_path, change, told):
    folder = tmp_path / "a"
    with pytest.raises(UserError, match=told):
        write_checkpoint(folder, config=TINY, tokenizer=WordPiece(PIECES), tensors=broken(change))
    assert not folder.exists()
