"""What a folder of Hugging Face's may hold: old names, padding, tokenizers, other models."""

import json
import logging

import numpy as np
import pytest
from golden.make_bert_hidden_states import PIECES, draw
from support.huggingface import WORDS, assert_same, broken, drawn, write_folder
from support.refusals import one_sentence

from edp_mx.data.tokenizer import load_tokenizer
from edp_mx.data.wordpiece import WordPiece
from edp_mx.errors import UserError
from edp_mx.models.checkpoints.huggingface import read_checkpoint
from edp_mx.models.checkpoints.names import MASKED_LM


def test_old_names_prefixes_and_buffers(tmp_path, caplog):
    old = {
        f"bert.{name}".replace("bert.cls", "cls")
        .replace("LayerNorm.weight", "LayerNorm.gamma")
        .replace("LayerNorm.bias", "LayerNorm.beta"): values
        for name, values in drawn().items()
    }
    old["bert.embeddings.position_ids"] = np.arange(16)[None]
    old["cls.seq_relationship.weight"] = np.ones((2, 24), np.float32)
    old["fit_denses.0.bias"] = np.ones(3, np.float32)
    old["cls.predictions.decoder.weight"] = old["bert.embeddings.word_embeddings.weight"]
    old["cls.predictions.decoder.bias"] = old.pop("cls.predictions.bias")
    with caplog.at_level(logging.INFO, "edp_mx"):
        checkpoint = read_checkpoint(write_folder(tmp_path, old))
    assert_same(checkpoint.tensors, {**drawn(), "cls.predictions.bias": draw(
        "cls.predictions.bias", (len(PIECES),))})  # fmt: skip
    (record,) = caplog.records
    assert record.getMessage().endswith(": cls.seq_relationship.weight, fit_denses.0.bias")


def test_vectors_beyond_the_last_piece_are_cut_off(tmp_path):
    whole = drawn()
    for name in (WORDS, "cls.predictions.bias"):
        more = np.full((3, *whole[name].shape[1:]), 7.0, np.float32)
        whole[name] = np.concatenate([whole[name], more])
    folder = write_folder(tmp_path, whole, settings={"vocab_size": len(PIECES) + 3})
    assert_same(read_checkpoint(folder).tensors, drawn())


def test_more_pieces_than_vectors_are_refused(tmp_path):
    with pytest.raises(UserError, match="41 pieces, but vocab_size in config.json is 40"):
        read_checkpoint(write_folder(tmp_path, pieces=(*PIECES, "more")))


@pytest.mark.parametrize("read", [read_checkpoint, load_tokenizer])
def test_a_vocabulary_that_was_cut_is_refused(tmp_path, read):
    folder = write_folder(tmp_path, settings={"vocab_size": len(PIECES) + 1024})
    one_sentence("has 40 pieces, but vocab_size .* is 1064: it was cut", read, folder)


@pytest.mark.parametrize("fault", ["incomplete", "not tied"])
def test_a_masked_lm_head_that_cannot_be_ours_is_left_aside(tmp_path, caplog, fault):
    tensors = drawn()
    if fault == "incomplete":
        del tensors["cls.predictions.transform.dense.bias"]
    else:
        tensors["cls.predictions.decoder.weight"] = tensors[WORDS] + 1
    checkpoint = read_checkpoint(write_folder(tmp_path, tensors))
    assert f"masked-LM head is {fault}" in caplog.text
    assert_same(
        checkpoint.tensors, {name: v for name, v in drawn().items() if name not in MASKED_LM}
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.pop(WORDS), f"lacks the tensor {WORDS}"),
        (lambda t: t[WORDS].__setitem__((3, 3), np.nan), f"{WORDS} holds a value that is not"),
        (lambda t: t.update({WORDS: np.ones((40, 24), int)}), f"{WORDS} holds I64"),
        (lambda t: t.update({f"bert.{WORDS}": t[WORDS]}), f"{WORDS} twice"),
        (lambda t: t.update({"encoder.layer.0.new.bias": t[WORDS]}), "layer.0.new.bias"),
    ],
)
def test_broken_tensors_are_refused_by_name(tmp_path, change, told):
    said = one_sentence(told, read_checkpoint, write_folder(tmp_path, broken(change)))
    assert str(tmp_path) in said


@pytest.mark.parametrize(("tokenizer", "lowercase"), [
    (None, True), ({}, True), ({"do_lower_case": False}, False), ({"do_lower_case": True}, True),
])  # fmt: skip
def test_case_of_the_pieces(tmp_path, tokenizer, lowercase):
    checkpoint = read_checkpoint(write_folder(tmp_path, tokenizer=tokenizer))
    assert checkpoint.tokenizer == WordPiece(PIECES, lowercase)


def test_accents_that_are_kept_in_lower_case_are_warned_of(tmp_path, caplog):
    read_checkpoint(write_folder(tmp_path, tokenizer={"strip_accents": False}))
    assert "strip_accents False is not followed" in caplog.text


def test_pieces_of_a_tokenizer_json(tmp_path):
    write_folder(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    ids = {piece: i for i, piece in enumerate(PIECES)}
    backwards = {piece: ids[piece] for piece in reversed(PIECES)}
    settings = {
        "model": {"type": "WordPiece", "vocab": backwards},
        "normalizer": {"lowercase": False},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(settings))
    assert read_checkpoint(tmp_path).tokenizer == WordPiece(PIECES, lowercase=False)


def test_exact_gelu_is_known_by_its_other_name(tmp_path):
    folder = write_folder(tmp_path, settings={"hidden_act": "gelu_python"})
    assert read_checkpoint(folder).config.activation == "gelu"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"hidden_act": "gelu_new"}, "'gelu_new'; it must be one of gelu, gelu_python, relu"),
        ({"is_decoder": True}, "is_decoder is True"),
        ({"type_vocab_size": 1}, "type_vocab_size is 1, but it can be read only with 2"),
        ({"model_type": "gpt2"}, "model_type is 'gpt2'; only bert, roberta, distilbert"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"num_attention_heads": 7}, "must be a multiple of the 7 heads"),
        ({"num_hidden_layers": "4"}, "num_hidden_layers is '4'"),
        ({"layer_norm_eps": "1e-12"}, "layer_norm_eps is '1e-12'"),
        ({"hidden_dropout_prob": 1.0}, "dropout must be"),
        ({"num_hidden_layers": 3}, "has no tensor encoder.layer.3.attention.output.LayerNorm.bias"),
        ({"num_hidden_layers": 5}, "lacks the tensor encoder.layer.4.attention.self.query.weight"),
        (
            {"intermediate_size": 41},
            r"layer.0.intermediate.dense.weight has shape \(40, 24\), .* make it \(41, 24\)",
        ),
    ],
)
def test_other_models_are_refused_by_name(tmp_path, settings, told):
    said = one_sentence(told, read_checkpoint, write_folder(tmp_path, settings=settings))
    assert str(tmp_path) in said
