"""SER against golden values, hand-made cases and an assignment solver; spans against seqeval."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from seqeval.metrics.sequence_labeling import get_entities
from support.golden_vectors import cases
from support.refusals import one_sentence

from edp_mx.errors import UserError
from edp_mx.metrics.ser import ALIGNMENTS, Counts, align, count_errors
from edp_mx.metrics.spans import Span, spans_of

CASES = cases("ser")
TAGS = st.sampled_from(["O", "O", "B-a", "I-a", "B-b", "I-b", "B-c", "I-c"])
TWO_ANNOTATIONS = st.lists(st.tuples(TAGS, TAGS), max_size=14)


def count_case(case, alignment):
    inputs = case["inputs"]
    return count_errors(
        inputs["ref"],
        inputs["hyp"],
        reference_intent=inputs["ref_intent"],
        hypothesis_intent=inputs["hyp_intent"],
        alignment=alignment,
    )


@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_golden_values(case, alignment):
    found, expected = count_case(case, alignment), case["expected"][alignment]
    counts = (found.correct, found.substitutions, found.deletions, found.insertions)
    assert counts == tuple(expected[key] for key in "CSDI")
    assert found.ser == pytest.approx(expected["ser"], rel=case["rtol"])


@given(TWO_ANNOTATIONS)
def test_pairs_are_as_many_as_an_assignment_solver_finds(tags):
    reference, hypothesis = (spans_of(side) for side in (zip(*tags) if tags else ((), ())))
    left = [span for span in reference if span not in hypothesis]
    right = [span for span in hypothesis if span not in reference]
    may_pair = {
        "overlap": lambda r, h: bool(set(range(*r[1:])) & set(range(*h[1:]))),
        "type": lambda r, h: r[0] == h[0],
        "exact": lambda r, h: False,  # noqa: ARG005
    }
    for alignment, may in may_pair.items():
        gain = np.array([[may(r, h) for h in right] for r in left]).reshape(len(left), len(right))
        pairs = int(gain[linear_sum_assignment(gain, maximize=True)].sum())
        assert align(reference, hypothesis, alignment=alignment) == Counts(
            correct=len(reference) - len(left),
            substitutions=pairs,
            deletions=len(left) - pairs,
            insertions=len(right) - pairs,
        )


def test_a_missing_intent_is_a_substitution():
    found = count_errors(["O"], ["O"], reference_intent="x", hypothesis_intent="")
    assert found == Counts(substitutions=1) and found.ser == 1


def test_zero_denominators():
    assert Counts().ser == 0
    assert Counts(insertions=2).ser == float("inf")


def test_refusals():
    one_sentence("alignment", align, [], [], alignment="fuzzy")
    with pytest.raises(UserError, match="2 slot tags"):
        count_errors(["O", "O"], ["O"], reference_intent="x", hypothesis_intent="x")


BIO = st.sampled_from(["O", "B-a", "I-a", "B-b", "I-b", "B-a-b.c", "I-a-b.c", "B", "I"])


@given(st.lists(BIO, max_size=12))
def test_as_seqeval_reads_them(tags):
    expected = [Span(name, start, last + 1) for name, start, last in get_entities(tags)]
    assert spans_of(tags) == expected


@pytest.mark.parametrize("tag", ["", "o", "X-a", "B-", "I-", "Ba", "E-a", "-a", "b-a"])
def test_other_tags_are_refused(tag):
    one_sentence("not BIO", spans_of, ["O", tag])
