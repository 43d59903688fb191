"""A verdict says what it refutes, and which claim a one-run audit is held against."""

import math

import pytest

from edp_mx.accounting.bound import Bound, unbounded
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.guarantee import guarantee
from edp_mx.accounting.lognumber import LogNumber
from edp_mx.accounting.plan import Plan
from edp_mx.accounting.release import Release
from edp_mx.attacks.audit.one_run import claim_that_holds
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


def claimed(**changes):
    release = Release(unit="micro_batch", num_workers=2, micro_batch_size=8, max_grad_norm=1.0,
                      layer_scales=(1.0,), adjacency="zero_out", variant="calibrated")  # fmt: skip
    return guarantee(Plan(release, noise_multiplier=2.0, decay=Decay(), epochs=3,
                          steps_per_epoch=10, num_records=1000, delta=5e-4, **changes))  # fmt: skip


FIRST_BATCH = {"scales_source": "first_batch", "private_inputs": ["layer_scales"]}


@pytest.mark.parametrize(
    "granted", [{}, {"private_inputs": ["vocabulary"]}, {"private_inputs": ["lengths"]}]
)
def test_vocabulary_and_lengths_do_not_depend_on_coins(granted):
    assert claim_that_holds(claimed(**granted)).epsilon == claimed().holds.epsilon


@pytest.mark.parametrize("broken", [FIRST_BATCH, {"seed_is_fixed": True}])
def test_what_coins_can_reach_makes_the_claim_infinite(broken):
    assert claim_that_holds(claimed(**broken)).epsilon.log == math.inf
