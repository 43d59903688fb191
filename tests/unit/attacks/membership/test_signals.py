"""Signals against enumeration of all tag paths and loops in plain floats, by batch and singly."""

import itertools
import math
from dataclasses import replace

import mxnet as mx
import numpy as np
import pytest
from support.refusals import one_sentence

from edp_mx.attacks.membership.run_scores import Selection, compute_signals
from edp_mx.attacks.membership.signals import LEAST_LOSS, log_odds_of, signals_of
from edp_mx.config import ExperimentConfig
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError
from edp_mx.models.clc import CLCConfig
from edp_mx.models.forward_backward import Chain
from edp_mx.runs.build import encode_part, model_for


def random_case(generator, lengths, *, tags=3, intents=4, scale=2.0):
    """Scores and labels of a batch."""
    lengths = np.asarray(lengths)
    shape = (len(lengths), int(lengths.max()))
    return {
        "intent_scores": generator.normal(0, scale, (len(lengths), intents)),
        "intents": generator.integers(0, intents, len(lengths)),
        "emissions": generator.normal(0, scale, (*shape, tags)),
        "slots": generator.integers(0, tags, shape),
        "lengths": lengths,
        "chain": Chain(
            generator.normal(0, 1, (tags, tags)),
            generator.normal(0, 1, tags),
            generator.normal(0, 1, tags),
        ),
    }


def paths_of(case, n):
    """Every tag path of utterance n with its log-probability."""
    length, chain = case["lengths"][n], case["chain"]
    scores = {}
    for path in itertools.product(range(len(chain.start)), repeat=length):
        score = chain.start[path[0]] + chain.end[path[-1]]
        score += sum(case["emissions"][n, t, tag] for t, tag in enumerate(path))
        score += sum(chain.transitions[a, b] for a, b in zip(path, path[1:]))
        scores[path] = score
    log_total = np.logaddexp.reduce(list(scores.values()))
    return {path: score - log_total for path, score in scores.items()}


def test_the_tags_signals_are_those_of_all_paths(generator):
    case = random_case(generator, [4, 1, 3, 4, 2])
    paths = paths_of(case, 2)
    case["slots"][2, :3] = max(paths, key=lambda path: paths[path])  # the best one may be true
    signals = signals_of(**case)
    for n, length in enumerate(case["lengths"]):
        paths = paths_of(case, n)
        true = tuple(case["slots"][n, :length].tolist())
        ranked = sorted(paths.values(), reverse=True)
        others = max(log for path, log in paths.items() if path != true)
        assert signals.sequence_score[n] == pytest.approx(ranked[0])
        assert signals.sequence_margin[n] == pytest.approx(ranked[0] - ranked[1])
        assert signals.slot_loss[n] == pytest.approx(-paths[true])
        assert signals.slot_margin[n] == pytest.approx(paths[true] - others)
        marginals = np.zeros((length, len(case["chain"].start)))
        for path, log in paths.items():
            marginals[range(length), path] += math.exp(log)
        top = sorted(marginals.max(axis=1).tolist())
        assert signals.slot_top[n] == pytest.approx(top + [1.0] * (10 - length))
        by_token = [loop_modified_entropy(m, tag) for m, tag in zip(marginals, true)]
        assert signals.slot_modified_entropy[n] == pytest.approx(np.mean(by_token))


def loop_modified_entropy(probabilities, label):
    """Equation 8 of Song and Mittal, term by term."""
    total = -(1 - probabilities[label]) * math.log(probabilities[label])
    for i, p in enumerate(probabilities):
        if i != label:
            total -= p * math.log(1 - p)
    return total


def test_the_intents_signals_are_those_of_the_softmax(generator):
    case = random_case(generator, [2] * 6, intents=3)
    signals = signals_of(**case)
    for n, label in enumerate(case["intents"]):
        p = np.exp(case["intent_scores"][n])
        p /= p.sum()
        assert signals.intent_top[n] == pytest.approx([*sorted(p, reverse=True), 0.0, 0.0])
        assert signals.intent_loss[n] == pytest.approx(-math.log(p[label]))
        assert signals.intent_modified_entropy[n] == pytest.approx(loop_modified_entropy(p, label))
        margin = math.log(p[label] / max(np.delete(p, label)))
        assert signals.intent_margin[n] == pytest.approx(margin)
        assert signals.loss[n] == pytest.approx(signals.intent_loss[n] + signals.slot_loss[n])
        both = math.exp(-signals.loss[n])
        assert signals.log_odds[n] == pytest.approx(math.log(both / (1 - both)))


def test_sure_outputs_stay_finite(generator):
    case = random_case(generator, [4, 3], scale=400.0)
    signals = signals_of(**case)
    for name, value in signals._asdict().items():
        assert np.isfinite(value).all(), name
    assert log_odds_of(np.array([0.0, -1e-13])) == pytest.approx(-math.log(LEAST_LOSS))


def test_with_one_tag_there_is_no_runner_up(generator):
    case = random_case(generator, [3, 1], tags=1, intents=1)
    signals = signals_of(**case)
    assert np.isposinf(signals.sequence_margin).all() and np.isposinf(signals.intent_margin).all()
    assert signals.slot_loss == pytest.approx([0.0, 0.0], abs=1e-12)


TINY = CLCConfig(hidden_size=8, character_filters=4, character_dimension=4)


def plain(iterable, *_):
    return iterable


@pytest.fixture(scope="module")
def parts():
    """A model that never saw anything, and encoded utterances."""
    config = ExperimentConfig(model=TINY)
    config = replace(
        config, data=replace(config.data, embeddings=replace(config.data.embeddings, dimension=8))
    )
    utterances = list(make_utterances("communication", size=3000, seed=4))
    vocabulary = Vocabulary.build(utterances)
    model = model_for(config, vocabulary, mx.cpu())
    generator = np.random.default_rng(0)
    for parameter in model.collect_params().values():  # surer than drawn weights
        parameter.set_data(
            parameter.data() + mx.nd.array(generator.normal(0, 0.3, parameter.shape))
        )
    return config, model, vocabulary, utterances


def test_batches_and_single_utterances_agree(parts):
    config, model, vocabulary, utterances = parts
    encoded = encode_part(config, utterances[:23], vocabulary, "some")
    whole = compute_signals(model, encoded, batch_size=7, progress=plain)
    single = compute_signals(model, encoded, batch_size=1, progress=plain)
    for name, one in whole._asdict().items():
        np.testing.assert_allclose(one, getattr(single, name), rtol=2e-4, atol=2e-5, err_msg=name)


def test_the_loss_is_the_training_loss_without_dropout(parts):
    config, model, vocabulary, utterances = parts
    encoded = encode_part(config, utterances[:23], vocabulary, "some")
    signals = compute_signals(model, encoded, batch_size=7, progress=plain)
    loss = model.loss(encoded.batch(range(23))).asnumpy()
    np.testing.assert_allclose(signals.loss, loss, rtol=1e-5)


def test_nobody_and_bad_settings_are_refused(parts):
    config, model, vocabulary, _ = parts
    with pytest.raises(UserError, match="no utterances"):
        compute_signals(model, encode_part(config, [], vocabulary, "no"), batch_size=5,
                        progress=plain)  # fmt: skip
    one_sentence("--seed and --size", Selection, seed=-1)
