"""A claim by a named accountant: allowed exactly where that accountant counts what was released."""

from __future__ import annotations

import pytest

from edp_mx.accounting.accountants import ACCOUNTANTS, check_claim, count_with
from edp_mx.accounting.events import Composition, Event, neighbours_of
from edp_mx.accounting.release import ADJACENCIES, SAMPLERS, Release
from edp_mx.errors import UserError


def release_of(sampler, adjacency):
    return Release(num_workers=2, micro_batch_size=4, max_grad_norm=1.0, layer_scales=(1.0,),
                   adjacency=adjacency, variant="calibrated", sampler=sampler)  # fmt: skip


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_allowed_where_it_counts_and_is_a_bound(sampler, adjacency, accountant):
    release = release_of(sampler, adjacency)
    rate = 0.1 if sampler == "poisson" else 1.0
    steps = Composition(neighbours_of(release), [Event(sampler, 2.0, 3, rate)])
    try:
        is_sound = count_with(accountant, steps, delta=1e-5).is_bound
    except UserError:
        is_sound = False
    if is_sound:
        check_claim(accountant=accountant, release=release)
        return
    with pytest.raises(UserError) as caught:
        check_claim(accountant=accountant, release=release)
    assert "\n" not in str(caught.value)


def test_the_refusal_names_what_holds():
    cases = {
        ("rf_exact", "poisson", "replace_one"): "choose poisson_pld$",
        ("rf_exact", "poisson", "zero_out"): "choose poisson_pld or poisson_rdp$",
        ("poisson_rdp", "poisson", "replace_one"): "adjacency is replace_one; choose poisson_pld$",
        ("poisson_rdp", "shuffle", "zero_out"): "choose rf_exact or rf_renyi or rf_zcdp$",
    }
    for (accountant, sampler, adjacency), words in cases.items():
        with pytest.raises(UserError, match=words):
            check_claim(accountant=accountant, release=release_of(sampler, adjacency))
