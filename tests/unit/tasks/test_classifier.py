"""The classifier by closed forms, what a frozen encoder keeps for it, and texts in pairs."""

import mxnet as mx
import numpy as np
import pytest
from scipy.special import log_softmax
from support.jsonl import write_records
from support.models import random_batch, tiny
from support.refusals import one_sentence

from edp_mx.config import load_config
from edp_mx.data.corpus import load_corpus
from edp_mx.data.encoding import encode
from edp_mx.data.labels import LabelsConfig, labels_of
from edp_mx.data.readers import read_utterances
from edp_mx.data.readers.columns_config import NONE, ColumnsConfig
from edp_mx.data.stored_states import StoredStates
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.data.wordpiece import WordPiece
from edp_mx.models.encoder import ModelConfig
from edp_mx.models.frozen import freeze, frozen_part
from edp_mx.models.initialization import initialize
from edp_mx.runs.build import vocabulary_for
from edp_mx.tasks.classification.model import Classifier
from edp_mx.tasks.classification.task import CLASSIFICATION, score_labels

NUM_LABELS = 3


def classifier(family, **config):
    model = Classifier.upon_labels(tiny(family, **config).encoder, num_labels=NUM_LABELS)
    initialize(model.label_head, seed=3, context=mx.cpu())
    return model


@pytest.mark.parametrize("family", ["clc", "bert"])
def test_the_loss_is_the_cross_entropy_of_a_dense_layer_on_the_pooled_vector(family, generator):
    model, batch = classifier(family), random_batch(generator, [3, 1, 2], family)
    _, pooled = model.encoded(batch)
    head = model.label_head
    weight, bias = (each.data().asnumpy().astype(np.float64) for each in (head.weight, head.bias))
    scores = pooled.asnumpy().astype(np.float64) @ weight.T + bias  # (N, I)
    expected = -log_softmax(scores, axis=1)[np.arange(3), batch.intents]
    np.testing.assert_allclose(model.loss(batch).asnumpy(), expected, rtol=1e-5)
    ((indices, guessed),) = model.guesses([batch])
    np.testing.assert_array_equal(guessed, scores.argmax(axis=1))
    np.testing.assert_array_equal(indices, batch.indices)


@pytest.mark.parametrize("family", ["clc", "bert"])
def test_a_frozen_encoder_keeps_its_pooled_vectors_alone_and_the_loss_is_the_same(
    family, generator
):
    model, batch = classifier(family), random_batch(generator, [3, 1, 2], family)
    freeze(model.encoder, ModelConfig(trained="heads"))
    frozen = frozen_part(model.encoder, reads_tokens=model.reads_tokens)
    rows, counts = frozen.states(batch)  # (N, G, H), (N,)
    assert rows.shape[1] == model.encoder.num_pooled and set(counts) == {model.encoder.num_pooled}
    stored = StoredStates.write([(np.arange(3), counts, rows)], num_utterances=3)
    above = model.upon(frozen.rest)
    mine = type(batch)(
        stored.inputs(np.arange(3), batch.inputs),
        batch.lengths, batch.slots, batch.intents, batch.indices,
    )  # fmt: skip
    np.testing.assert_allclose(
        above.loss(mine).asnumpy(), model.loss(batch).asnumpy(), rtol=1e-5, atol=1e-6
    )


def test_macro_f1_by_hand():
    """a: 2 right of 3 found and 2 true; b: 1 of 1 and 2; c is guessed and never true."""
    found = score_labels(["a", "a", "b", "b"], ["a", "a", "a", "b"])
    assert found.accuracy == 0.75 and found.correct == 3
    assert found.macro_f1 == pytest.approx((0.8 + 2 / 3) / 2)
    assert score_labels(["a", "b"], ["a", "c"]).macro_f1 == pytest.approx(1 / 3)


def test_the_constant_answer_is_the_commonest_label():
    said = [Utterance(("x",), ("O",), label) for label in "babba"]
    assert CLASSIFICATION.constant_answer(said) == {
        "label": "b", "accuracy": 0.6, "macro_f1": 0.375
    }  # fmt: skip


def test_two_texts_stand_side_by_side_with_a_separator_between(tmp_path):
    rows = [{"premise": "it rains", "hypothesis": "dry", "label": "no"},
            {"premise": "dry", "hypothesis": "it rains", "label": "no"}]  # fmt: skip
    path = write_records(tmp_path / "pairs.jsonl", rows)
    columns = ColumnsConfig(text="premise", second="hypothesis", slots=NONE)
    pairs = read_utterances(path, columns=columns)
    assert [each.tokens for each in pairs] == [
        ("it", "rains", "[SEP]", "dry"), ("dry", "[SEP]", "it", "rains")
    ]  # fmt: skip
    assert {tag for each in pairs for tag in each.slots} == {"O"}
    pieces = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "it", "rains", "dry")
    vocabulary = Vocabulary.of_pieces(WordPiece(pieces, True), pairs, word_source="file")
    found = encode(pairs, vocabulary).batch([0, 1]).inputs.pieces
    assert found.tolist() == [[2, 5, 6, 3, 7, 3], [2, 7, 3, 5, 6, 3]]


def test_a_corpus_is_read_without_its_slots_in_any_layout(tmp_path):
    for name, text in (("seq.in", "to bonn\n"), ("seq.out", "O B-city\n"), ("label", "fly\n")):
        (tmp_path / name).write_text(text)
    (read,) = read_utterances(tmp_path, columns=ColumnsConfig(slots=NONE))
    assert read == Utterance(("to", "bonn"), ("O", "O"), "fly")


def test_a_public_list_of_labels_needs_no_slots(tmp_path):
    path = tmp_path / "labels.json"
    path.write_text('{"intents": ["good", "bad"]}')
    train = [Utterance(("x",), ("O",), "bad")]
    assert labels_of(train, LabelsConfig("file", str(path)), ()) == (("O",), ("good", "bad"))


def test_a_corpus_with_a_single_label_is_refused(tmp_path):
    rows = "".join(f"call {i},call\n" for i in range(60))
    (tmp_path / "one.csv").write_text(f"text,label\n{rows}")
    (tmp_path / "one.yaml").write_text(
        f"data: {{corpus: mine, path: {tmp_path / 'one.csv'}}}\ntask: classification\n"
    )
    config = load_config(tmp_path / "one.yaml")
    one_sentence(
        "all of mine has the label 'call'", vocabulary_for, config, load_corpus(config.data)
    )
