"""`--mechanism dp_sgd` of a plan: its release, its defaults, what it says."""

import argparse
import json

import pytest
from support.cli import printed

from edp_mx.accounting.events import Composition, Event
from edp_mx.accounting.pld.interval import upper_epsilon_poisson_pld
from edp_mx.cli.plan_options import add_plan_options, plan_of
from edp_mx.errors import UserError

PLAN = ["--epochs", "3", "--num-examples", "1000", "--workers", "2", "--micro-batch-size", "16"]
DRAWN = ["--sampler", "poisson", "--adjacency", "zero-out"]


def plan_with(*options, variant="published"):
    parser = argparse.ArgumentParser()
    add_plan_options(parser, variant=variant)
    return plan_of(parser.parse_args([*PLAN, *options]), variant=variant)


def test_dp_sgd_is_calibrated_whatever_the_command_s_default():
    for variant in ("published", "calibrated"):
        release = plan_with("--mechanism", "dp_sgd", variant=variant).release
        assert (release.unit, release.variant, release.kappa) == ("utterance", "calibrated", 2)
        assert plan_with(variant=variant).release.unit == "micro_batch"
    with pytest.raises(UserError, match="the noise of Algorithm 1"):
        plan_with("--mechanism", "dp_sgd", "--variant", "published")


def test_the_account_of_a_plan(capsys):
    options = ["account", "--mechanism", "dp_sgd", "--noise-multiplier", "1.2", *PLAN, *DRAWN]
    found = json.loads(printed(capsys, *options, "--json"))
    steps = Composition("zero_out", [Event("poisson", 1.2, 3 * 31, 0.032)])
    expected = upper_epsilon_poisson_pld(steps, delta=1 / 2000)
    assert found["holds"]["epsilon"] == pytest.approx(expected, rel=1e-9)
    assert found["holds"]["kappa"] == 1
    assert found["holds"]["aggregate_sensitivity"] == pytest.approx(1 / 32)
    assert found["holds"]["aggregate_noise_stddev"] == pytest.approx([1.2 / 32])
    assert found["as_published"]["accountant"] == "paper_rs"
    assert "kappa                                        1             1" in printed(
        capsys, *options
    )
