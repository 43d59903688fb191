"""The paper's grids as sweeps, and what is kept of their trials."""

import math

import pytest
from support.commands import ROOT

from edp_mx.runs.sweep.config import load_sweep
from edp_mx.runs.sweep.trial import Trial
from experiments.tables.paper import DECAY_RATES

GRIDS = ROOT / "experiments" / "grids"


@pytest.mark.parametrize("decay, number", [("none", 42), ("linear", 336), ("exponential", 336)])
def test_the_paper_s_grid_is_whole(decay, number):
    config, base = load_sweep(GRIDS / f"paper_{decay}.yaml")
    tried = config.parameters
    assert tried["privacy.max_grad_norm"] == [0.1, 0.25, 0.5, 1, 2, 5]
    assert tried["privacy.noise_multiplier"] == [10.0**power for power in range(-6, 1)]
    assert tried.get("privacy.decay.rate", [0.0]) == DECAY_RATES[decay]
    assert number == math.prod(map(len, tried.values())) and config.trials is None
    for pick in (min, max):
        trial = Trial.of({key: pick(each) for key, each in tried.items()}, base, workers=1)
        assert trial.config.privacy.decay.kind == decay
        assert trial.config.privacy.variant == "published"
        assert trial.config.privacy.layer_scales_unit == "norm"
    small, base = load_sweep(GRIDS / f"small_{decay}.yaml")
    kept_as_made = {"privacy.layer_scales_unit": ["largest"], "training.epochs": [20]}
    assert small.parameters == {**tried, **kept_as_made} and small.trials == 42
    assert Trial.of(
        {key: each[0] for key, each in small.parameters.items()}, base, workers=1
    ).config
