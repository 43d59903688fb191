"""Predictions for a corpus: those of each utterance alone, whoever predicts which batch."""

from dataclasses import dataclass, field, replace
from typing import Any, List

import mxnet as mx
import numpy as np
import pytest
from support.models import predictions_of

from edp_mx.config import ExperimentConfig
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.data.wordpiece import WordPiece
from edp_mx.data.wordpiece_learning import learn_pieces
from edp_mx.models.bert import BERTConfig
from edp_mx.models.clc import CLCConfig
from edp_mx.runs.build import encode_part, model_for
from edp_mx.tasks.intent_slot.task import IntentSlot
from edp_mx.training.evaluate import score_corpus

MODELS = {
    "clc": CLCConfig(hidden_size=8, character_filters=4, character_dimension=4),
    "bert": BERTConfig(num_layers=2, num_heads=2, hidden_size=8, intermediate_size=16),
}


@dataclass
class Worker:
    """One of several, that takes its turn in this process: `gather` gives what is there by then."""

    rank: int
    size: int
    shares: List[Any] = field(default_factory=list)

    def gather(self, value: Any) -> List[Any]:
        if len(self.shares) < self.size:
            self.shares.append(value)
        return self.shares


@pytest.fixture(scope="module", params=list(MODELS))
def parts(request):
    """A model with drawn weights, utterances (some cut to 9 tokens), their encoding."""
    config = ExperimentConfig(model=MODELS[request.param])
    data = replace(config.data, max_tokens=9)
    config = replace(config, data=data)
    utterances = list(make_utterances("communication", size=120, seed=5))
    if request.param == "bert":
        pieces = learn_pieces((" ".join(u.tokens) for u in utterances), size=200)
        vocabulary = Vocabulary.of_pieces(WordPiece(pieces, True), utterances, word_source="train")
    else:
        vocabulary = Vocabulary.build(utterances)
    model = model_for(config, vocabulary, mx.cpu())
    generator = np.random.default_rng(0)
    for parameter in model.collect_params().values():  # surer than drawn weights
        noise = generator.normal(0, 0.3, parameter.shape)
        parameter.set_data(parameter.data() + mx.nd.array(noise))
    return model, encode_part(config, utterances, vocabulary, "some"), utterances, vocabulary


class Labelling(IntentSlot):
    """The task, which returns the utterances as the model labels them in place of their scores."""

    score = IntentSlot.labelled


def predicted(parts, *, batch_size, workers=None, **settings):
    return score_corpus(
        Labelling(), *parts, batch_size=batch_size, workers=workers or Worker(0, 1), **settings
    )


def one_by_one(model, encoded, utterances, vocabulary):
    """Tags and intent of each utterance by a batch of its own."""
    for i, utterance in enumerate(utterances):
        found = predictions_of(model, encoded.batch([i]))
        tags = [vocabulary.slots[tag] for tag in found.slots[0]]
        yield tags + ["O"] * (len(utterance.tokens) - len(tags)), found.intents[0]


@pytest.mark.parametrize("batch_size", [1, 7, 256])
def test_as_each_utterance_alone(parts, batch_size):
    _, encoded, utterances, vocabulary = parts
    assert encoded.num_cut, "the test wants utterances that are cut"
    found = predicted(parts, batch_size=batch_size)
    for utterance, hypothesis, (tags, intent) in zip(utterances, found, one_by_one(*parts)):
        assert hypothesis.tokens == utterance.tokens and hypothesis.id == utterance.id
        assert list(hypothesis.slots) == tags
        assert hypothesis.intent == vocabulary.intents[intent]
    assert len({hypothesis.slots for hypothesis in found}) > 20, "the model says different things"


def test_as_two_workers(parts):
    alone, shares = predicted(parts, batch_size=7), []
    predicted(parts, batch_size=7, workers=Worker(0, 2, shares))
    assert predicted(parts, batch_size=7, workers=Worker(1, 2, shares)) == alone


def test_who_is_told(parts):
    told, wrapped = [], []

    def progress(batches, what, total):
        wrapped.append((what, total))
        return batches

    predicted(parts, batch_size=50, what="w", progress=progress, heartbeat=told.append)
    assert wrapped == [("w", 3)] and told == ["w"] * 3
