"""The language model: its loss by `transformers`' scores, its prompts, gradients and baseline."""

import math
from collections import Counter
from dataclasses import replace

import mxnet as mx
import numpy as np
import pytest
from golden.make_gpt2_logits import GOLDEN, PIECES, pieces_of
from hypothesis import given, settings
from hypothesis import strategies as st
from support.gpt2 import MERGES, scorer_of, scores_of, write_folder
from support.piece_models import (
    SIZES,
    assert_finite_differences,
    assert_undisturbed,
    drawn_model,
    gradients_of,
)
from support.prescribed import taken

from edp_mx.config import ExperimentConfig
from edp_mx.data.batching import Batch, PieceInputs
from edp_mx.data.byte_level_bpe import ByteLevelBPE
from edp_mx.data.config import DataConfig
from edp_mx.data.encoding import encode, evaluation_batches
from edp_mx.data.utterance import REPLY, SEPARATOR, Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError
from edp_mx.models.bert import BERTConfig
from edp_mx.models.gpt2.config import GPT2Config
from edp_mx.runs.build import encode_part, model_for
from edp_mx.runtime.files import write_json
from edp_mx.tasks.causal_lm.decoding import Decoding
from edp_mx.tasks.causal_lm.model import CausalLM
from edp_mx.tasks.causal_lm.scores import predicted, score_frequencies, score_pieces
from tests.unit.dp.privacy.ghost.test_clipping import assert_same_sum, by_loop, ghost_for

END = len(PIECES) - 1
TOKENIZER = ByteLevelBPE(PIECES, tuple(tuple(pair.split()) for pair in MERGES))
VOCABULARY = Vocabulary.of_pieces(
    TOKENIZER, [], word_source="file", labels=ExperimentConfig(task="causal_lm").data.labels
)


def batch_of(pieces, lengths):
    """A batch of sequences of pieces, padded with the end of text as GPT-2's are."""
    lengths = np.asarray(lengths, np.int32)
    inside = np.arange(pieces.shape[1]) < lengths[:, None]
    pieces = np.where(inside, pieces, END).astype(np.int32)
    nothing = np.zeros((len(lengths), 1), np.int32)
    inputs = PieceInputs(pieces, lengths, nothing)
    return Batch(inputs, np.ones_like(lengths), nothing, nothing[:, 0], np.arange(len(lengths)))


def texts(generator, count=6, longest=7):
    """Some have a prompt, which may be empty, and one has two texts in it."""
    words = ["ab", "cab", "b", "dada"]
    lengths = [longest, *generator.integers(1, longest + 1, count - 1)]
    made = [generator.choice(words, n).tolist() for n in lengths]
    made[1:4] = [[REPLY, *made[1]], [*made[2], REPLY, "ab"], ["b", SEPARATOR, "ab", REPLY, "cab"]]
    return [Utterance(tuple(tokens), ("O",) * len(tokens), "") for tokens in made]


def model_of(is_hybrid=True, **config):
    model = GPT2Config(**{**SIZES, **config})
    return drawn_model("causal_lm", model, VOCABULARY, is_hybrid=is_hybrid)


@pytest.fixture
def corpus(generator):
    return encode(texts(generator), VOCABULARY, max_pieces=24)


def replies_by_hand(batch):
    """For each sequence the places of its predicted pieces."""
    for row, length in enumerate(batch.inputs.lengths.tolist()):
        pieces, is_cut = batch.inputs.pieces[row], batch.is_cut is not None and batch.is_cut[row]
        inside = [place for place in range(1, length - 1) if pieces[place] == END]
        yield range(max([0, *inside]) + 1, length - is_cut)


@settings(max_examples=50, deadline=None)
@given(rows=st.lists(st.lists(st.sampled_from([0, 1, END]), max_size=6), min_size=1, max_size=4))
def test_what_is_predicted_is_what_stands_behind_the_last_separator(rows):
    lengths = [len(row) + 2 for row in rows]
    filled = [[END, *row, END] + [END] * (max(lengths) - len(row) - 2) for row in rows]
    batch = batch_of(np.array(filled), lengths)
    before, targets = predicted(batch.inputs, end=END)
    for row, places in enumerate(replies_by_hand(batch)):
        is_there = targets[row] >= 0
        assert (before[row][is_there] + 1).tolist() == list(places)
        wanted = [filled[row][place] for place in places]
        assert targets[row][is_there].tolist() == wanted
    assert before.shape[1] == (targets >= 0).sum(axis=1).max()


@pytest.mark.parametrize("more", [0, 3])
def test_the_loss_is_that_of_transformers_scores(more, tmp_path):
    """Of a sequence with a prompt and a shorter one; more padding changes nothing."""
    model = CausalLM(scorer_of(write_folder(tmp_path, "heads")), TOKENIZER)
    pieces, lengths = pieces_of("heads")[:, : 20 + more], np.array([20, 11])  # (2, P)
    pieces[[0, 1], lengths - 1] = END
    with np.load(GOLDEN) as golden:
        scores = golden["heads_logits"].astype(np.float64)  # (2, P, V)
    shares = scores - np.log(np.exp(scores).sum(axis=2, keepdims=True))
    batch = batch_of(pieces, lengths)
    replies = list(replies_by_hand(batch))
    assert [len(places) for places in replies] == [14, 10]
    wanted = [-sum(shares[row, place - 1, pieces[row, place]] for place in places)
              for row, places in enumerate(replies)]  # fmt: skip
    np.testing.assert_allclose(model.loss(batch).asnumpy(), wanted, rtol=1e-5)


def test_a_text_is_read_from_end_to_end_and_its_reply_alone_is_predicted():
    """The words of both are spelled as if each were a text."""
    (batch,) = (encode([Utterance(("b", "ab", REPLY, "ab", "b"), ("O",) * 5, "")], VOCABULARY)
                .batch([0]) for _ in range(1))  # fmt: skip
    spelled = [PIECES[i] for i in batch.inputs.pieces[0]]
    end = PIECES[END]
    assert spelled == [end, "b", "Ġab", end, "ab", "Ġ", "b", end]
    _, targets = predicted(batch.inputs, end=END)
    assert [PIECES[i] for i in targets[0]] == ["ab", "Ġ", "b", end]


def test_where_a_text_is_cut_its_end_is_not_predicted():
    said = [Utterance((*prompt, *["ab"] * 9), ("O",) * (9 + len(prompt)), "")
            for prompt in ((), ("b", REPLY))]  # fmt: skip
    said.append(Utterance(("ab",), ("O",), ""))
    batch = encode(said, VOCABULARY, max_pieces=8).batch(range(3))
    assert batch.is_cut.tolist() == [True, True, False]
    _, targets = predicted(batch.inputs, end=END, is_cut=batch.is_cut)
    assert [END in row for row in targets] == [False, False, True]
    length = batch.inputs.lengths[0]
    assert targets[0][targets[0] >= 0].tolist() == batch.inputs.pieces[0, 1 : length - 1].tolist()
    lost = model_of().loss(batch).asnumpy()
    scored = sum(counts[2] for counts in model_of().guesses([batch]))
    assert (lost > 0).all() and scored == (targets >= 0).sum()


def test_the_scores_are_those_of_all_predicted_pieces_together(corpus):
    model = model_of()
    batches = list(evaluation_batches(corpus, 4))
    losses = sum(model.loss(batch).sum().asscalar() for batch in batches)
    count = sum(len(places) for batch in batches for places in replies_by_hand(batch))
    right = 0
    for batch in batches:
        best = scores_of(model.encoder, batch.inputs.pieces).argmax(axis=2)  # (N, P)
        for row, replies in enumerate(replies_by_hand(batch)):
            right += sum(best[row, p - 1] == batch.inputs.pieces[row, p] for p in replies)
    scores = score_pieces(model.guesses(batches))
    assert scores.pieces == count and scores.piece_accuracy == pytest.approx(right / count)
    assert scores.perplexity == pytest.approx(math.exp(losses / count), rel=1e-5)


def test_the_outputs_hold_the_loss_for_an_attack(corpus):
    model = model_of()
    (batch,) = evaluation_batches(corpus, 6)
    ((_, _, scores),) = model.outputs([batch])
    log_shares = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))  # (N, 2)
    np.testing.assert_allclose(-log_shares[:, 0], model.loss(batch).asnumpy(), rtol=1e-3)


def test_every_gradient_is_that_of_finite_differences(corpus, generator):
    """The piece vectors', which lead both in and out, too."""
    model = model_of()
    found = assert_finite_differences(model, corpus.batch(range(4)), generator)
    assert found == model.collect_params().keys()


def test_batches_of_changing_shapes_do_not_disturb_each_other(corpus):
    assert_undisturbed(model_of(), model_of(is_hybrid=False), corpus)


@pytest.mark.parametrize("c", [0.5, 1e9])
@pytest.mark.parametrize("rows", [1, 2])
def test_ghost_clipping_is_the_loop(rows, c, corpus):
    """Of texts with and without prompts, one or two to a unit."""
    model, batch = model_of(), corpus.batch(range(6))
    ghost, loop, _ = ghost_for(model, max_grad_norm=c)
    expected = by_loop(loop, model, batch, rows)
    losses = lambda: model.loss(batch).reshape((-1, rows)).sum(axis=1)  # noqa: E731
    assert_same_sum(taken(ghost.clip([losses])), expected)
    assert ghost.statistics.norm_sum == pytest.approx(loop.statistics.norm_sum, rel=1e-5)


@pytest.mark.parametrize(
    "settings", [{"is_embedding_trainable": False}, {"frozen_layers": 1}, {"trained": "biases"}]
)
def test_what_is_frozen_is_left_out_of_ghost_clipping_as_well(settings, corpus):
    model, batch = model_of(**settings), corpus.batch(range(6))
    ghost, loop, _ = ghost_for(model)
    assert len(gradients_of(model, batch)) < len(list(model.collect_params()))
    assert_same_sum(taken(ghost.clip([lambda: model.loss(batch)])), by_loop(loop, model, batch))


def test_guessing_by_frequency_is_that_of_counted_shares(generator):
    """Of the pieces behind prompts, and of the one that closes a text."""
    test = texts(generator, 20)
    encoded, spoken = encode(test, VOCABULARY).batch(range(len(test))), []
    for row, places in enumerate(replies_by_hand(encoded)):
        spoken += encoded.inputs.pieces[row, list(places)].tolist()
    shares = {piece: count / len(spoken) for piece, count in Counter(spoken).items()}
    found = score_frequencies(test, TOKENIZER)
    expected = math.exp(-sum(math.log(shares[piece]) for piece in spoken) / len(spoken))
    assert found.perplexity == pytest.approx(expected, rel=1e-9)
    assert found.piece_accuracy == pytest.approx(max(shares.values()))
    assert found.pieces == len(spoken)
    words = sum(1 + len(" ".join(one.tokens).replace(SEPARATOR, REPLY).split(REPLY)[-1].split())
                for one in test)  # fmt: skip
    assert found.word_perplexity == pytest.approx(expected ** (len(spoken) / words))
    ours = model_of().guesses([encode(test, VOCABULARY, max_pieces=99).batch(range(len(test)))])
    assert sum(each[3] for each in ours) == words


@pytest.mark.parametrize(("beams", "most"), [(1, 1), (1, 5), (3, 5)])
def test_what_is_told_while_it_is_written_ends_with_all_of_it(beams, most):
    model, said = model_of(), []
    model.answering, model.heard = Decoding(beams=beams, max_pieces=most), said.append
    asked = [Utterance(("ab", "cab"), ("O", "O"), "")]
    batches = evaluation_batches(encode(asked, VOCABULARY, max_pieces=24), 1)
    ((_, answer),) = model.answers(batches, asked, VOCABULARY)
    assert said[-1] == answer and answer.text
    assert all(answer.text.startswith(part.text.rstrip("\ufffd")) for part in said)


@pytest.mark.parametrize(("most", "room"), [(5, 5), (64, 10)])
def test_a_long_prompt_leaves_room_for_its_reply(most, room, caplog):
    """For what is asked for, or half of the positions; it loses its beginning, and that is told."""
    model, positions = model_of(), 20
    assert model.encoder.max_positions >= positions
    model.encoder.decoder.config = replace(model.encoder.decoder.config, max_positions=positions)
    model.answering = Decoding(max_pieces=most)
    prompt = Utterance((*["ab"] * 30, "b", REPLY), ("O",) * 32, "")
    config = ExperimentConfig(task="causal_lm", data=DataConfig(max_pieces=positions - 1))
    encoded = encode_part(
        config, [prompt], VOCABULARY, "given", most_continued=model.most_continued
    )
    ids = encoded.batch([0]).inputs.pieces[0]
    assert positions - (len(ids) - 1) == room  # as `answers` counts
    assert [PIECES[i] for i in ids[-4:-1]] == ["Ġ", "b", PIECES[END]]
    assert "1 of 1 given utterances have a prompt, or a text to continue, that is too long" in (
        caplog.text
    )
    assert "ends are cut off" not in caplog.text


@pytest.mark.parametrize("task", ["causal_lm", "intent_slot"])
def test_slots_that_are_cut_off_are_missed_where_there_are_any(task, caplog):
    config = ExperimentConfig(task=task, data=DataConfig(max_pieces=3))
    encode_part(config, [Utterance(("ab",) * 9, ("O",) * 9, "")], VOCABULARY, "given")
    assert "their ends are cut off" in caplog.text
    assert ("slots" in caplog.text) == (task == "intent_slot")


def test_a_model_that_reads_both_ways_is_refused():
    config = ExperimentConfig(task="causal_lm", model=BERTConfig())
    with pytest.raises(UserError, match="model.family is bert: set it to gpt2"):
        model_for(config, VOCABULARY, mx.cpu())


def test_without_heads_there_is_nothing_to_train_but_the_network():
    with pytest.raises(UserError, match="has no heads; set it to all, biases, lora, prefix or rgp"):
        model_of(trained="heads")


def test_a_perplexity_beyond_all_numbers_can_be_written_and_printed(tmp_path):
    scores = score_pieces([np.array([8000.0, 0, 4, 2])])  # exp(2,000) a piece, exp(4,000) a word
    assert scores.perplexity == pytest.approx(1e15) == scores.word_perplexity
    write_json(tmp_path / "scores.json", scores.to_dict())
    exact = score_pieces([np.array([4 * math.log(5.0), 0, 4, 2])])
    assert (exact.perplexity, exact.word_perplexity) == pytest.approx((5.0, 25.0))
