"""Intents that fill a template's [MASK]: the checkpoint's masked-LM head is the reference."""

import json
from dataclasses import replace

import mxnet as mx
import numpy as np
import pytest
from golden.make_bert_hidden_states import PIECES
from support.huggingface import TINY, drawn, masked_lm_head, new_bert, write_folder
from support.models import leave_run
from support.refusals import one_sentence

from edp_mx.attacks.training import train_prepared
from edp_mx.config import load_config
from edp_mx.data.corpus import load_corpus
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.weights import load_weights, save_weights, weights_of
from edp_mx.errors import UserError
from edp_mx.models.checkpoints.huggingface import load_bert, read_checkpoint
from edp_mx.models.checkpoints.names import MASKED_LM, shapes_of
from edp_mx.models.label_names import label_pieces, label_words
from edp_mx.runs.build import model_for
from edp_mx.runs.prepare import prepare_corpus
from edp_mx.runtime.distributed import start

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SPELLING = (*PIECES, *(f"##{letter}" for letter in LETTERS), "9", ".", "call", "message", "it")
SIZES = replace(TINY, max_positions=128)
SETTINGS = """
data:
  {{corpus: {corpus}, size: 60, max_pieces: 128, vocabulary: {{source: checkpoint}},
   labels: {{source: sample}}}}
model:
  {{family: bert, num_layers: 4, num_heads: 12, hidden_size: 24, intermediate_size: 40,
   max_positions: 128, dropout: 0, {model}}}
privacy: {{mechanism: dp_sgd, noise_multiplier: 0.5, insecure_fixed_seed: 1, chunk_size: 8}}
training: {{epochs: 1, batch_size: 9, learning_rate: 0.02}}
"""
TEMPLATES = ["{} . it is about [MASK] .", "[MASK] : {}"]


@pytest.fixture
def folder(tmp_path):
    """A checkpoint with a masked-LM head."""
    tensors = drawn(shapes_of(SIZES, num_pieces=len(SPELLING)))
    sizes = {"max_position_embeddings": 128, "vocab_size": len(SPELLING)}
    return write_folder(tmp_path / "checkpoint", tensors, settings=sizes, pieces=SPELLING)


def configured(tmp_path, model, corpus="communication"):
    (tmp_path / "run.yaml").write_text(SETTINGS.format(model=model, corpus=corpus))
    return load_config(tmp_path / "run.yaml")


def prepared(tmp_path, model, corpus="communication"):
    config = configured(tmp_path, model, corpus)
    return prepare_corpus(load_corpus(config.data), config, start())


def written(folder, more=""):
    return f"intents: infilling, checkpoint: {folder}{more}"


def scores_of_masked_lm(folder, batch):
    """The scores of all pieces at [MASK], (N, V), as pre-training computes them."""
    checkpoint = read_checkpoint(folder)
    head = masked_lm_head(SIZES, checkpoint.tensors, len(SPELLING))
    bert = new_bert(SIZES, num_pieces=len(SPELLING))
    load_bert(bert, checkpoint)
    pieces, lengths, _ = batch.inputs
    rows, places = np.nonzero(pieces == SPELLING.index("[MASK]"))
    assert rows.tolist() == [*range(len(pieces))]  # one in each utterance
    states, _ = bert(mx.nd.array(pieces, dtype="int32"), mx.nd.array(lengths))
    vectors = bert.piece_embedding.data()
    return head(states, mx.nd.array([rows, places], dtype="int32"), vectors).asnumpy()


# Not a prefix, which changes the states.
TRAINED = ["", ", trained: heads", ", trained: heads, features: all_layers", ", trained: lora",
           ", trained: rgp", ", trained: biases"]  # fmt: skip


@pytest.mark.parametrize(
    "template, more",
    [(TEMPLATES[1], ""), *((TEMPLATES[i % 2], more) for i, more in enumerate(TRAINED))],
)
def test_an_intent_s_first_score_is_the_mean_of_its_words(tmp_path, folder, template, more):
    found = prepared(tmp_path, written(folder, f", template: '{template}'{more}"))
    batch = found.train.batch(range(7))
    expected = scores_of_masked_lm(folder, batch)
    _, scores = found.model(batch)
    intents = found.vocabulary.intents
    assert len(intents) > 3
    for i, intent in enumerate(intents):
        words = "".join(c if c.isalnum() else " " for c in intent).lower().split()
        pieces = [p for word in words for p in found.vocabulary.tokenizer.ids(word)]
        wanted = expected[:, pieces].mean(axis=1)
        np.testing.assert_allclose(scores.asnumpy()[:, i], wanted, atol=2e-4, err_msg=intent)


@pytest.mark.parametrize(
    "more", ["trained: heads", "is_embedding_trainable: false, frozen_layers: 3"]
)
def test_stored_states_give_the_losses_of_the_whole_model(tmp_path, folder, more):
    found = prepared(tmp_path, written(folder, f", {more}"))
    above, rows = found.above_frozen(tmp_path), [7, 0, 3, 11]
    assert above.frozen is not None
    whole, stored = (p.model.loss(p.train.batch(rows)).asnumpy() for p in (found, above))
    np.testing.assert_allclose(stored, whole, rtol=1e-4)


def test_a_private_step_moves_the_intents_and_the_model_is_known_again(tmp_path, folder):
    found = prepared(tmp_path, written(folder, ", trained: heads"))
    before = found.model.label_head.weight.data().asnumpy()
    config = configured(tmp_path, written(folder, ", trained: heads"))
    train_prepared(found, config, start(), tmp_path / "run", lambda steps, *_: steps)
    assert (found.model.label_head.weight.data().asnumpy() != before).all()
    save_weights(found.model, tmp_path / "weights.npz")
    vocabulary = Vocabulary.from_json(json.loads(json.dumps(found.vocabulary.to_json())))
    again = model_for(config, vocabulary, mx.cpu())
    load_weights(again, tmp_path / "weights.npz")
    batch = found.encode(found.corpus.test[:5]).batch(range(5))
    for one, other in zip(found.model(batch), again(batch)):
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


def finished(tmp_path, model, name="first"):
    """The folder of a finished run, and what was prepared for it."""
    found = prepared(tmp_path, model)
    return leave_run(found, tmp_path / "run.yaml", tmp_path / name), found


def test_a_run_is_gone_on_with_and_new_labels_start_from_their_words(tmp_path, folder):
    run, first = finished(tmp_path, written(folder))
    again = f"intents: infilling, start_from: {run}"
    same = prepared(tmp_path, again)
    old = weights_of(first.model)
    for name, parameter in same.model.collect_params().items():
        np.testing.assert_array_equal(parameter.data().asnumpy(), old[name], err_msg=name)
    other = prepared(tmp_path, again, corpus="video")
    vectors = other.model.encoder.bert.piece_embedding.data().asnumpy()
    pieces = label_pieces(label_words(other.vocabulary.intents, None), other.vocabulary.tokenizer)
    expected = [vectors[row].mean(axis=0) for row in pieces]
    np.testing.assert_allclose(other.model.label_head.weight.data().asnumpy(), expected, rtol=1e-5)


def test_a_pooled_intent_head_is_neither_taken_nor_given(tmp_path, folder):
    pooled, _ = finished(tmp_path, f"checkpoint: {folder}", "pooled")
    with pytest.raises(UserError, match="needs a masked-LM head, and the run .* has none"):
        prepared(tmp_path, f"intents: infilling, start_from: {pooled}")
    filled, first = finished(tmp_path, written(folder), "filled")
    found = prepared(tmp_path, f"start_from: {filled}")
    drawn_head = (
        prepared(tmp_path, f"checkpoint: {folder}").model.label_head.weight.data().asnumpy()
    )
    np.testing.assert_array_equal(found.model.label_head.weight.data().asnumpy(), drawn_head)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("intents: infilling", "needs a masked-LM head to start from: set model.checkpoint"),
        ("intents: infilling, template: '{} [MASK].'", "template must have {} and .MASK. once"),
        ("label_words: words.yaml", "label_words must be left out unless intents is infilling"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path, model, told):
    one_sentence(told, prepared, tmp_path, model)


def test_a_checkpoint_without_the_head_is_refused(tmp_path):
    tensors = drawn(shapes_of(SIZES, num_pieces=len(SPELLING)))
    for name in MASKED_LM:
        del tensors[name]
    sizes = {"max_position_embeddings": 128, "vocab_size": len(SPELLING)}
    bare = write_folder(tmp_path / "bare", tensors, settings=sizes, pieces=SPELLING)
    one_sentence("needs a masked-LM head, and .*bare has none", prepared, tmp_path, written(bare))
