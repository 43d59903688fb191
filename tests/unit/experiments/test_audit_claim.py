"""Which claim a one-run audit is held against: conditions are met only if no coin breaks them."""

import math

import pytest

from edp_mx.accounting.decay import Decay
from edp_mx.accounting.guarantee import guarantee
from edp_mx.accounting.release import Release
from edp_mx.experiments.audit_one_run import claim_that_holds


def claimed(**changes):
    release = Release(num_workers=2, micro_batch_size=8, max_grad_norm=1.0, layer_scales=(1.0,),
                      adjacency="zero_out", variant="calibrated")  # fmt: skip
    settings = {"scales_source": "ones", "vocabulary_is_public": True, "seed_is_fixed": False}
    return guarantee(release=release, noise_multiplier=2.0, decay=Decay(), epochs=3, steps=30,
                     num_examples=1000, **{**settings, **changes})  # fmt: skip


@pytest.mark.parametrize("granted", [{}, {"vocabulary_is_public": False}, {"uses_lengths": True}])
def test_vocabulary_and_lengths_do_not_depend_on_coins(granted):
    assert claim_that_holds(claimed(**granted)).epsilon == claimed().holds.epsilon


@pytest.mark.parametrize("broken", [{"scales_source": "first_batch"}, {"seed_is_fixed": True}])
def test_what_coins_can_reach_makes_the_claim_infinite(broken):
    assert claim_that_holds(claimed(**broken)).epsilon.log == math.inf
