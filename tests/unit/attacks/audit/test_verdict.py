"""A verdict says what it refutes."""

import math

import pytest

from edp_mx.accounting.bound import Bound, unbounded
from edp_mx.accounting.lognumber import LogNumber
from edp_mx.attacks.audit.verdict import Verdict


def claim(epsilon):
    return Bound("test", "exact", epsilon=LogNumber(math.log(epsilon)), rho=LogNumber(0.0))


def verdict(bound, *, audited="published", published=4.4, holds=15.0):
    return Verdict(
        audit="step",
        bound=bound,
        confidence=0.95,
        delta=1e-5,
        claim=audited,
        claims={"published": claim(published), "holds": claim(holds)},
    )


@pytest.mark.parametrize(
    ("bound", "published", "holds"),
    [(0.0, False, False), (4.3, False, False), (4.5, True, False), (15.1, True, True)],
)
def test_a_claim_is_refuted_when_more_leaks(bound, published, holds):
    assert verdict(bound).is_refuted is published
    assert verdict(bound, audited="holds").is_refuted is holds
    found = verdict(bound).to_dict()
    assert found["refuted"] is published and found["claims"]["holds"]["refuted"] is holds


def test_no_bound_at_all_cannot_be_refuted():
    empty = Verdict("one-run", 1e300, 0.95, 1e-5, "holds", {"holds": unbounded("no noise")})
    assert not empty.is_refuted and "no bound at all" in empty.describe()


def test_the_sentence_says_it_all():
    text = verdict(13.9).describe()
    for part in ("REFUTED: at 95 %", "epsilon = 13.9 at delta = 1e-05", "claims 4.4",
                 "claims 15: not refuted"):  # fmt: skip
        assert part in text
    assert verdict(1.0).describe().startswith("not refuted: at 95 %")
