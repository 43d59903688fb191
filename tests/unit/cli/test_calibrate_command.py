"""`edp-mx calibrate`: what it prints gives the ε that was asked for, by `edp-mx account`."""

import json
import math
import re
from functools import partial

import pytest
from support import cli
from support.cli import printed
from support.refusals import one_sentence

SIZES = ["--delta", "1e-5", "--epochs", "20", "--workers", "8"]
PLAN = [*SIZES, "--set", "privacy.decay={kind: exponential, rate: 0.05}"]
DRAWN = ["--sampler", "poisson", "--sample-rate", "0.02"]
NORMS = ["--layer-scales", "0.61,8.75"]


@pytest.fixture
def run(capsys):
    """Runs a command; returns what it printed."""
    return partial(printed, capsys)


@pytest.mark.parametrize("variant", ["published", "calibrated"])
@pytest.mark.parametrize("options", [[], DRAWN, NORMS], ids=["shuffle", "poisson", "norms"])
@pytest.mark.parametrize("target", ["0.5", "8"])
def test_account_confirms_it(run, variant, options, target):
    plan = [*(SIZES if options else PLAN), *options,
            "--set", f"privacy.variant={variant}"]  # fmt: skip
    found = json.loads(run("calibrate", "--target-epsilon", target, *plan, "--json"))
    z = found["noise_multiplier"]
    confirmed = json.loads(run("account", "--noise-multiplier", repr(z), *plan, "--json"))
    assert confirmed["holds"]["epsilon"] <= float(target)
    less = json.loads(run("account", "--noise-multiplier", repr(0.999 * z), *plan, "--json"))
    assert less["holds"]["epsilon"] > float(target)
    assert found["holds"] == {key: confirmed["holds"][key] for key in found["holds"]}
    assert found["as_published"] == confirmed["as_published"]
    assert found["effective_noise_multiplier"] == pytest.approx(
        confirmed["holds"]["effective_noise_multiplier"][0], rel=1e-12
    )
    both = found["variants"]
    ratio = both["published"]["noise_multiplier"] / both["calibrated"]["noise_multiplier"]
    largest = 8.75 if options == NORMS else 1
    assert ratio == pytest.approx(2 * largest * math.sqrt(8), rel=1e-9)


@pytest.mark.parametrize("target", ["0.3", "1", "7.7"])
def test_the_printed_number_is_on_the_safe_side_too(run, target):
    text = run("calibrate", "--target-epsilon", target, *PLAN)
    assert max(map(len, text.splitlines())) <= 80
    for variant, z in re.findall(r"^\| (calibrated|published) *\| +([\d.e+-]+)", text, re.M):
        options = ["--noise-multiplier", z, *PLAN, f"privacy.variant={variant}", "--json"]
        assert json.loads(run("account", *options))["holds"]["epsilon"] <= float(target)
    assert text.index("| calibrated") < text.index("| published")


def test_delta_rate_and_steps_from_the_number_of_examples(run):
    options = ["--target-epsilon", "4", "--num-examples", "6400", *SIZES[2:], "--json"]
    shuffled = json.loads(run("calibrate", *options))
    found = json.loads(run("calibrate", *options, "--sampler", "poisson"))
    assert found["delta"] == 0.5 / 6400
    drawn = ["--sampler", "poisson", "--sample-rate", "0.01"]
    assert json.loads(run("calibrate", *options, *drawn)) == found
    assert found["noise_multiplier"] < shuffled["noise_multiplier"]


@pytest.mark.parametrize(
    "options, words",
    [
        (["--target-epsilon", "0", *PLAN], "target_epsilon must be above 0, not 0"),
        (["--target-epsilon", "nan", *PLAN], "target_epsilon: 'nan' is not a number"),
        (["--target-epsilon", "1", "--epochs", "3"], "--delta, or --num-examples"),
        (["--target-epsilon", "1", "--delta", "1", "--epochs", "3"], "delta"),
        (["--target-epsilon", "1", "--delta", "1e-5"], "training.epochs"),
        (
            ["--target-epsilon", "1", "--delta", "1e-5", "--epochs", "0"],
            "epochs must be at least 1",
        ),
        (["--target-epsilon", "1", *PLAN, "--sampler", "poisson"], "--sample-rate"),
        ([*PLAN, "privacy.noise_multiplier=2"], "give --target-epsilon"),
    ],
)
def test_impossible_wishes_are_one_sentence(options, words):
    one_sentence(words, cli.run, "calibrate", *options)


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_dp_sgd_has_one_variant_and_is_met(run, adjacency):
    options = ["--mechanism", "dp_sgd", "--target-epsilon", "3", "--num-examples", "4480",
               "--epochs", "5", "--sampler", "poisson",
               "--set", f"privacy.adjacency={adjacency}"]  # fmt: skip
    found = json.loads(run("calibrate", *options, "--json"))
    assert list(found["variants"]) == ["calibrated"]
    assert 2.99 < found["holds"]["epsilon"] <= 3
    text = run("calibrate", *options)
    assert "| calibrated " in text and "published needs" not in text
    assert f"effective noise multiplier: {found['effective_noise_multiplier']:.6g}" in text
