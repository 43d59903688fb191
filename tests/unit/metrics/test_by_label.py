"""Scores of each label: against scikit-learn and seqeval's way of counting, and by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from edp_mx.metrics.by_label import by_intent, confusions

PAIRS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcde")), min_size=1)
TAGS = st.lists(st.sampled_from(["O", "B-x", "I-x", "B-y", "I-y"]), min_size=1, max_size=6)


@given(PAIRS)
def test_labels_are_scored_as_scikit_learn_does(pairs):
    wanted, found = zip(*pairs)
    names = sorted({*wanted, *found})
    expected = precision_recall_fscore_support(wanted, found, labels=names, zero_division=0)
    ours = {of.label: of for of in by_intent(wanted, found)}
    assert sorted(ours) == names
    for name, precision, recall, f1, support in zip(names, *expected):
        of = ours[name]
        assert (of.precision, of.recall, of.f1) == pytest.approx((precision, recall, f1))
        assert of.wanted == support
    assert sum(count for *_, count in confusions(wanted, found)) == sum(a != b for a, b in pairs)


def test_most_errors_come_first():
    wanted, found = list("aabbbc"), list("abbaac")
    assert [(of.label, of.errors) for of in by_intent(wanted, found)] == [
        ("a", 3), ("b", 3), ("c", 0)]  # fmt: skip
    assert confusions(wanted, found) == [("b", "a", 2), ("a", "b", 1)]
