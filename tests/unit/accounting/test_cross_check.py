"""Ours beside the field's: dp-accounting 0.6 and prv-accountant 0.2, where they are installed."""

import pytest

from edp_mx.accounting.events import Composition, Event
from edp_mx.accounting.pld.interval import epsilon_poisson_pld

CONSTANT = ((0.02, 0.8, 500),)
FALLING = tuple((0.05, 1.2 * 0.8**t, 20) for t in range(3))


def ours(steps, delta, neighbours="zero_out"):
    events = [Event("poisson", z, count, q) for q, z, count in steps]
    return epsilon_poisson_pld(Composition(neighbours, events), delta=delta)


def theirs(steps, *, spacing):
    """dp-accounting; its adding and removing is our zero-out, with the multiplier as it is."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution

    total = None
    for q, z, count in steps:
        found = privacy_loss_distribution.from_gaussian_mechanism(
            z, sampling_prob=q, value_discretization_interval=spacing
        ).self_compose(count)
        total = found if total is None else total.compose(found)
    return total


@pytest.mark.parametrize("steps", [CONSTANT, FALLING], ids=["constant", "falling"])
def test_pld_is_that_of_dp_accounting(steps):
    """On their lattice of 1e-4 they are some 4e-7 above the truth."""
    peer = theirs(steps, spacing=1e-4)
    for delta in (1e-3, 1e-6):
        expected = peer.get_epsilon_for_delta(delta)
        assert ours(steps, delta).estimate == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("steps", [CONSTANT, FALLING], ids=["constant", "falling"])
def test_pld_is_that_of_prv_accountant(steps):
    prv = pytest.importorskip("prv_accountant")
    mechanisms = [
        prv.PoissonSubsampledGaussianMechanism(sampling_probability=q, noise_multiplier=z)
        for q, z, _ in steps
    ]
    counts = [count for _, _, count in steps]
    accountant = prv.PRVAccountant(
        mechanisms, max_self_compositions=counts, eps_error=0.03, delta_error=1e-10
    )
    lower, estimate, upper = accountant.compute_epsilon(delta=1e-5, num_self_compositions=counts)
    found = ours(steps, 1e-5)
    assert lower <= found.lower <= found.upper <= upper
    assert found.estimate == pytest.approx(estimate, rel=1e-5)
