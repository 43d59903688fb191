"""Several trainings together: the same ε as one training with the steps of all of them."""

import math
from dataclasses import replace

import pytest
from support.made_ledgers import plan_with

from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.together import count_together
from edp_mx.errors import UserError

DELTA = 1e-5


SAMPLED = {"unit": "utterance", "sampler": "poisson", "sample_rate": 0.02, "num_workers": 1}


def of(epochs, noise_multiplier, **release):
    changes = {"epochs": epochs, "noise_multiplier": noise_multiplier, "release": release}
    return guarantee(plan_with(**changes))


def poisson(epochs):
    return of(epochs, 2.0, **SAMPLED, adjacency="zero_out")


def test_shuffled_epochs_add_up_their_rho():
    one, other = of(3, 5.0), of(7, 9.0)
    found = count_together([one, other], delta=DELTA)
    rho = sum(math.exp(each.holds_if.rho.log) for each in (one, other))
    assert math.exp(found.rho.log) == pytest.approx(rho, rel=1e-12)
    assert found.epsilon.value < one.holds_if.epsilon.value + other.holds_if.epsilon.value


def test_sampled_steps_count_as_those_of_one_training():
    found = count_together([poisson(2), poisson(3)], delta=DELTA)
    whole = guarantee(poisson(5).plan, delta=DELTA)
    assert found.epsilon.value == pytest.approx(whole.holds_if.epsilon.value, rel=1e-9)


def test_a_shuffled_epoch_beside_sampled_steps_is_a_step_that_all_are_in():
    """Against the Gaussian's own curve, where no step is sampled."""
    epochs = of(4, 3.0, unit="utterance", adjacency="zero_out")
    steps = poisson(1)
    rare = replace(steps.entries[0].event, sample_rate=1e-12)
    steps = replace(steps, entries=(replace(steps.entries[0], event=rare),))
    found = count_together([epochs, steps], delta=DELTA)
    alone = guarantee(epochs.plan, delta=DELTA)
    assert found.epsilon.value == pytest.approx(alone.holds_if.epsilon.value, rel=2e-3)


def test_what_has_no_epsilon_together_is_refused_or_infinite():
    users = of(2, 5.0, unit="user")
    with pytest.raises(UserError, match="the runs protect one user .* and one utterance"):
        count_together([of(2, 5.0), users], delta=DELTA)
    silent = of(2, 0.0)
    found = count_together([silent, of(2, 5.0)], delta=DELTA)
    assert found.epsilon.is_infinite and found.reasons
