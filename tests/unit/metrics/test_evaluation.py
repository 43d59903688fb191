"""All scores of a corpus, against seqeval, a loop and each other."""

import warnings
from collections import namedtuple
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from seqeval.metrics import f1_score, precision_score, recall_score
from support.refusals import one_sentence

from edp_mx.metrics.evaluation import evaluate
from edp_mx.metrics.ser import ALIGNMENTS, Counts, count_errors

TAGS = st.sampled_from(["O", "B-a", "I-a", "B-b", "I-b", "B-c-d", "I-c-d"])
INTENTS = st.sampled_from(["x", "y", "z"])
PAIRED_TAGS = st.lists(st.tuples(TAGS, TAGS), min_size=1, max_size=9)
CORPUS = st.lists(st.tuples(PAIRED_TAGS, INTENTS, INTENTS), min_size=1, max_size=6)

Understood = namedtuple("Understood", "slots intent")


def both_sides(corpus):
    """References and hypotheses."""
    references = [Understood([ours for ours, _ in tags], intent) for tags, intent, _ in corpus]
    hypotheses = [Understood([theirs for _, theirs in tags], intent) for tags, _, intent in corpus]
    return references, hypotheses


@given(CORPUS)
def test_slot_scores_are_those_of_seqeval(corpus):
    references, hypotheses = both_sides(corpus)
    wanted, found = [tags for tags, _ in references], [tags for tags, _ in hypotheses]
    assume(any(tag != "O" for side in (wanted, found) for tags in side for tag in tags))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [score(wanted, found) for score in (precision_score, recall_score, f1_score)]
    scores = evaluate(references, hypotheses)
    ours = (scores.slot_precision, scores.slot_recall, scores.slot_f1)
    assert ours == pytest.approx(expected, rel=1e-12)


@given(CORPUS, st.sampled_from(list(ALIGNMENTS)))
def test_scores_are_pooled_over_utterances(corpus, alignment):
    references, hypotheses = both_sides(corpus)
    each = [
        count_errors(
            tags, found, reference_intent=meant, hypothesis_intent=understood, alignment=alignment
        )
        for (tags, meant), (found, understood) in zip(references, hypotheses)
    ]
    pooled = Counts(*np.sum([astuple(counts) for counts in each], axis=0))
    assert sum(each, Counts()) == pooled
    scores = evaluate(references, hypotheses, alignment)
    assert scores.ser == pooled.ser and scores.correct == pooled.correct
    assert (scores.deletions, scores.insertions) == (pooled.deletions, pooled.insertions)
    assert scores.intent_accuracy == sum(a == b for _, a, b in corpus) / len(corpus)
    assert scores.utterances == len(corpus)
    assert 0 <= scores.slot_f1 <= 1


def test_no_slots_at_all_score_zero_as_in_seqeval():
    for wanted, found in (("O", "O"), ("O", "B-a"), ("B-a", "O")):
        scores = evaluate([Understood([wanted], "x")], [Understood([found], "x")])
        assert (scores.slot_precision, scores.slot_recall, scores.slot_f1) == (0, 0, 0)


def test_refusals():
    one_sentence("no utterances", evaluate, [], [])
    one_sentence("2 references but 1 hyp", evaluate, [Understood(["O"], "x")] * 2, [("O", "x")])
