"""Verdicts: what they refute, by which claim, and which noise A0 accepts."""

import math

import numpy as np
import pytest

from edp_mx.attacks.audit.noise import _correlation, _spread
from edp_mx.attacks.audit.one_run import claim_that_holds
from edp_mx.attacks.audit.verdict import Verdict
from edp_mx.dp.accounting.bound import Bound, unbounded
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.lognumber import LogNumber
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release


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


SIGNIFICANCE = 1e-6


@pytest.mark.parametrize(
    ("factor", "is_passed"),
    [(1.0, True), (2 / 3, False), (1.5, False), ((7 / 8) ** 0.5, False), (8**0.5, False)],
)
def test_the_right_stddev_passes_and_others_fail(factor, is_passed, generator):
    parts = [generator.normal(scale=factor * 0.3, size=20_000).astype("f4") for _ in range(3)]
    assert _spread("noise", parts, 0.3, SIGNIFICANCE).is_passed is is_passed


def test_the_interval_is_that_of_chi_square(generator):
    # 2,000 audits of 50 true draws at 10 %: 200 ± 5 σ of 13.4 may fail
    failed = sum(
        not _spread("noise", [generator.normal(size=50)], 1.0, 0.1).is_passed for _ in range(2000)
    )
    assert abs(failed - 200) < 67


def test_silence_is_no_noise():
    silent = np.zeros(1000, np.float32)
    assert not _spread("noise", [silent], 1.0, SIGNIFICANCE).is_passed
    check = _correlation("workers", silent, np.arange(1000.0), SIGNIFICANCE)
    assert np.isnan(check.measured) and not check.is_passed
