"""The masked language model: its loss and gradients by hand, its masks, and its scores."""

import math

import mxnet as mx
import numpy as np
import pytest
from scipy.special import erf
from support.piece_models import (
    SIZES,
    assert_finite_differences,
    assert_undisturbed,
    drawn_model,
    seeded_loss,
)

from edp_mx.config import ExperimentConfig
from edp_mx.data.encoding import encode, evaluation_batches
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.data.wordpiece import SPECIAL_PIECES, WordPiece
from edp_mx.dp.unit_losses import seed_dropout
from edp_mx.errors import UserError
from edp_mx.models.bert import BERTConfig
from edp_mx.tasks.masked_lm.masking import mask
from edp_mx.tasks.masked_lm.task import MASKED_LM, score_frequencies, score_places

WORDS = [f"word{i}" for i in range(9)]
TOKENIZER = WordPiece((*SPECIAL_PIECES, *WORDS))
VOCABULARY = Vocabulary.of_pieces(
    TOKENIZER, [], word_source="file", labels=ExperimentConfig(task="masked_lm").data.labels
)


def texts(generator, count=6, longest=9):
    lengths = [longest, *generator.integers(1, longest + 1, count - 1)]
    return [Utterance(tuple(generator.choice(WORDS, n)), ("O",) * n, "") for n in lengths]


def model_of(is_hybrid=True, **config):
    model = BERTConfig(**{**SIZES, **config})
    return drawn_model("masked_lm", model, VOCABULARY, is_hybrid=is_hybrid)


@pytest.fixture
def corpus(generator):
    return encode(texts(generator), VOCABULARY, max_pieces=24)


def value_of(parameter):
    return parameter.data().asnumpy().astype(np.float64)


def losses_by_hand(model, batch, generator):
    """The head over BERT's own states, in float64; losses of the texts (N,) and right guesses."""
    maskable = model._maskable
    masked = mask(batch.inputs, maskable, generator=generator)
    bert, head = model.encoder.bert, model.head
    states, _ = bert(mx.nd.array(masked.pieces, dtype="int32"),
                     mx.nd.array(masked.lengths, dtype="float32"))  # fmt: skip
    states = states.asnumpy().astype(np.float64)[tuple(masked.places)]  # (K, H)
    states = states @ value_of(head.transform.weight).T + value_of(head.transform.bias)
    states = 0.5 * states * (1 + erf(states / np.sqrt(2)))
    states = (states - states.mean(1, keepdims=True)) / states.std(1, keepdims=True)
    states = states * value_of(head.norm.gamma) + value_of(head.norm.beta)
    scores = states @ value_of(bert.piece_embedding).T + value_of(head.bias)
    log_probabilities = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    losses = np.zeros(len(batch))
    for row, true, row_of in zip(masked.places[0], masked.targets, log_probabilities):
        losses[row] -= row_of[true]
    return losses, (log_probabilities.argmax(1) == masked.targets).sum()


def drawn(*place):
    """The generator of the masks of a training step."""
    seed_dropout(*place)
    return np.random.default_rng(int(mx.nd.random.randint(0, 2**31 - 1, shape=(1,)).asscalar()))


def test_the_loss_of_each_text_is_that_of_its_masked_pieces_by_hand(corpus):
    model, batch = model_of(), corpus.batch(range(6))
    by_hand, _ = losses_by_hand(model, batch, drawn(0, 1))
    np.testing.assert_allclose(seeded_loss(model, batch, 0, 1).asnumpy(), by_hand, rtol=1e-4)
    assert (by_hand > 0).all()


def test_the_scores_are_those_of_all_places_together(corpus):
    model = model_of()
    batches = list(evaluation_batches(corpus, 4))
    losses, right, places = [], 0, 0
    for batch in batches:
        seed = [0x3B, int(batch.indices[0])]
        found, guessed = losses_by_hand(model, batch, np.random.default_rng(seed))
        losses, right = [*losses, *found], right + guessed
        places += len(mask(batch.inputs, model._maskable, generator=drawn(3)).targets)
    scores = score_places(model.guesses(batches))
    assert scores.perplexity == pytest.approx(math.exp(sum(losses) / places), rel=1e-4)
    assert scores.masked_accuracy == pytest.approx(right / places) and scores.places == places


def test_the_outputs_hold_the_loss_for_an_attack(corpus):
    model = model_of()
    (batch,) = evaluation_batches(corpus, 6)
    ((_, _, scores),) = model.outputs([batch])
    seed = [0x3B, int(batch.indices[0])]
    by_hand, _ = losses_by_hand(model, batch, np.random.default_rng(seed))
    log_shares = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))  # (N, 2)
    np.testing.assert_allclose(-log_shares[:, 0], by_hand, rtol=1e-3)


def test_masks_are_a_function_of_the_place_of_a_step(corpus):
    model, batch = model_of(), corpus.batch(range(6))
    first, again, other = (
        seeded_loss(model, batch, *place).asnumpy() for place in ((0, 1), (0, 1), (0, 2))
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    ((*_, before),), ((*_, after),) = (list(model.outputs([batch])) for _ in range(2))
    np.testing.assert_array_equal(before, after)


def test_every_gradient_is_that_of_finite_differences(corpus, generator):
    """The piece vectors', which lead both in and out, too; the pooler alone has none."""
    model = model_of()
    found = assert_finite_differences(model, corpus.batch(range(4)), generator)
    frozen = sorted(set(model.collect_params()) - set(found))
    assert frozen == ["bert_pooler_bias", "bert_pooler_weight"]


def test_batches_of_changing_shapes_do_not_disturb_each_other(corpus):
    assert_undisturbed(model_of(), model_of(is_hybrid=False), corpus)


def test_guessing_by_frequency_is_that_of_counted_shares(generator):
    test = texts(generator, 30)
    spoken = [word for utterance in test for word in utterance.tokens]
    shares = {word: spoken.count(word) / len(spoken) for word in spoken}
    found = score_frequencies(test, TOKENIZER)
    expected = math.exp(-sum(math.log(shares[word]) for word in spoken) / len(spoken))
    assert found.perplexity == pytest.approx(expected, rel=1e-9)
    assert found.masked_accuracy == pytest.approx(max(shares.values()))


def test_a_text_of_unknown_words_is_refused():
    unknown = [Utterance(("what",), ("O",), "")]
    with pytest.raises(UserError, match="no piece of the text can be masked"):
        score_frequencies(unknown, TOKENIZER)


@pytest.mark.parametrize("perplexity, said", [(120, "above"), (90, "not far below"), (70, None)])
def test_a_model_that_learned_frequencies_alone_is_said(perplexity, said):
    """A rate that is too high ends at their perplexity, and otherwise looks like a run."""
    found = MASKED_LM.shortfall({"perplexity": perplexity}, {"perplexity": 100})
    assert found is None if said is None else f"is {said} 100.0" in found.found
