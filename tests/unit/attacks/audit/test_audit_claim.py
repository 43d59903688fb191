"""Which claim a one-run audit is held against: conditions are met only if no coin breaks them."""

import math

import pytest

from edp_mx.accounting.decay import Decay
from edp_mx.accounting.guarantee import guarantee
from edp_mx.accounting.plan import Plan
from edp_mx.accounting.release import Release
from edp_mx.attacks.audit.one_run import claim_that_holds


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
