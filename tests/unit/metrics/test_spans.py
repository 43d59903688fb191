"""Spans against seqeval on random and hand-made tags."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from edp_mx.errors import UserError
from edp_mx.metrics.spans import Span, spans_of

TAGS = st.sampled_from(["O", "B-a", "I-a", "B-b", "I-b", "B-a-b.c", "I-a-b.c", "B", "I"])


@given(st.lists(TAGS, max_size=12))
def test_as_seqeval_reads_them(tags):
    expected = [Span(name, start, last + 1) for name, start, last in get_entities(tags)]
    assert spans_of(tags) == expected


@pytest.mark.parametrize("tag", ["", "o", "X-a", "B-", "I-", "Ba", "E-a", "-a", "b-a"])
def test_other_tags_are_refused(tag):
    with pytest.raises(UserError, match="not BIO"):
        spans_of(["O", tag])
