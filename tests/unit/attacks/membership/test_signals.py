"""Signals against enumeration of all tag paths, and against loops in plain floats."""

import itertools
import math

import numpy as np
import pytest

from edp_mx.attacks.membership.signals import (
    LEAST_LOSS,
    log_odds_of,
    modified_entropy,
    signals_of,
)
from edp_mx.models.forward_backward import Chain


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
    signals = signals_of(**case)
    for n, length in enumerate(case["lengths"]):
        paths = paths_of(case, n)
        true = tuple(case["slots"][n, :length].tolist())
        ranked = sorted(paths.values(), reverse=True)
        p = math.exp(paths[true])
        others = max(log for path, log in paths.items() if path != true)
        assert signals.sequence_score[n] == pytest.approx(ranked[0])
        assert signals.sequence_margin[n] == pytest.approx(ranked[0] - ranked[1])
        assert signals.slot_loss[n] == pytest.approx(-paths[true])
        assert signals.slot_log_odds[n] == pytest.approx(math.log(p / (1 - p)))
        entropy = -sum(math.exp(log) * log for log in paths.values())
        assert signals.slot_entropy[n] == pytest.approx(entropy)
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
        assert signals.intent_log_odds[n] == pytest.approx(math.log(p[label] / (1 - p[label])))
        assert signals.intent_entropy[n] == pytest.approx(-(p * np.log(p)).sum())
        assert signals.intent_modified_entropy[n] == pytest.approx(loop_modified_entropy(p, label))
        margin = math.log(p[label] / max(np.delete(p, label)))
        assert signals.intent_margin[n] == pytest.approx(margin)
        assert signals.loss[n] == pytest.approx(signals.intent_loss[n] + signals.slot_loss[n])
        both = math.exp(-signals.loss[n])
        assert signals.log_odds[n] == pytest.approx(math.log(both / (1 - both)))


def test_the_true_path_may_be_the_best_one(generator):
    case = random_case(generator, [3])
    paths = paths_of(case, 0)
    best = max(paths, key=lambda path: paths[path])
    case["slots"][0] = best
    ranked = sorted(paths.values(), reverse=True)
    signals = signals_of(**case)
    assert signals.slot_margin[0] == pytest.approx(ranked[0] - ranked[1])
    assert signals.slot_margin[0] == pytest.approx(signals.sequence_margin[0])


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


def test_a_sure_right_answer_has_no_modified_entropy_and_a_wrong_one_much():
    log_p = np.log(np.array([[1 - 1e-9, 1e-9], [1 - 1e-9, 1e-9]]))
    right, wrong = modified_entropy(log_p, np.array([0, 1]))
    assert right < 1e-7 and wrong > 30
