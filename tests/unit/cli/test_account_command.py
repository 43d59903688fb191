"""`edp-mx account`: its contract for other programs, and its sentences for people."""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys

import pytest

from edp_mx.cli import account
from edp_mx.errors import UserError

LEAST = ["--noise-multiplier", "0.5", "--epochs", "10", "--delta", "5e-4"]


def parse(*options):
    top = argparse.ArgumentParser()
    account.add_parser(top.add_subparsers())
    return top.parse_args(["account", *options])


@pytest.fixture
def run(capsys):
    """Runs the command; returns what it printed."""

    def run_command(*options):
        arguments = parse(*options)
        assert arguments.run(arguments) == 0
        return capsys.readouterr().out

    return run_command


def strictly(text):
    """JSON without NaN or Infinity."""

    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def test_the_contract_with_its_defaults(run):
    found = strictly(run(*LEAST, "--json"))
    published, holds = found["as_published"], found["holds"]
    # golden cases a00 (z = 0.5) for the paper; z_eff = 0.25 is four times its ρ
    assert published["rho"] == pytest.approx(20, rel=1e-12)
    assert published["epsilon"] == pytest.approx(44.65911995111276, rel=1e-10)
    assert published["log10_epsilon"] == pytest.approx(1.6499101606489588, rel=1e-10)
    assert holds["rho"] == pytest.approx(80, rel=1e-12)
    assert holds["epsilon_zcdp"] == pytest.approx(80 + 2 * math.sqrt(80 * math.log(2000)))
    assert holds["epsilon"] < holds["epsilon_renyi"] < holds["epsilon_zcdp"]
    assert holds["log10_epsilon"] == pytest.approx(math.log10(holds["epsilon"]), rel=1e-12)
    assert holds["kappa"] == 2
    assert holds["effective_noise_multiplier"] == pytest.approx([0.25] * 10, rel=1e-12)
    assert holds["aggregate_noise_stddev"] == [0.5]
    assert holds["aggregate_sensitivity"] == 2


def test_the_contract_with_everything_set(run):
    options = "--noise-multiplier 1.3 --decay exponential --decay-rate 0.5 --epochs 3 --delta 1e-5"
    options += " --workers 4 --micro-batch-size 8 --max-grad-norm 0.7 --layer-scales 2,0.5,1"
    options += " --adjacency zero-out --variant {} --json"
    # golden cases c12 and c14
    published = strictly(run(*options.format("published").split()))["holds"]
    assert published["aggregate_noise_stddev"] == pytest.approx([0.11375] * 3, rel=1e-12)
    assert published["aggregate_sensitivity"] == pytest.approx(0.7, rel=1e-12)
    fall = [math.exp(-0.5 * t) for t in range(3)]
    expected = [0.1625 * d for d in fall]
    assert published["effective_noise_multiplier"] == pytest.approx(expected, rel=1e-12)
    calibrated = strictly(run(*options.format("calibrated").split()))["holds"]
    assert calibrated["aggregate_noise_stddev"] == pytest.approx([0.91, 0.2275, 0.455])
    expected = [1.3 * d for d in fall]
    assert calibrated["effective_noise_multiplier"] == pytest.approx(expected, rel=1e-12)
    assert calibrated["rho"] == pytest.approx(sum(1 / (2 * z * z) for z in expected), rel=1e-12)


def test_single_examples_under_zero_out_count_once(run):
    options = ["--micro-batch-size", "1", "--adjacency", "zero-out", "--json"]
    found = strictly(run(*LEAST, *options))
    assert found["holds"]["kappa"] == 1
    assert found["holds"]["epsilon_zcdp"] == found["as_published"]["epsilon"]


def test_beyond_a_double_only_the_logarithm_is_left(run):
    options = "--noise-multiplier 1e-6 --decay exponential --decay-rate 0.5 --epochs 1000"
    found = strictly(run(*options.split(), "--delta", "5e-4", "--json"))
    for part in (found["as_published"], found["holds"]):
        assert part["epsilon"] is part["rho"] is None
        assert "reason" not in part
    log10 = 1026.396549080756 / math.log(10)  # golden case a91; at this size ε = ρ
    assert found["as_published"]["log10_epsilon"] == pytest.approx(log10, rel=1e-12)
    assert found["holds"]["log10_epsilon"] == pytest.approx(log10 + math.log10(4), rel=1e-12)
    assert "10^445.758" in run(*options.split(), "--delta", "5e-4")


def test_infinite_has_its_reason(run):
    options = ["--noise-multiplier", "0", "--epochs", "10", "--delta", "1e-5"]
    found = strictly(run(*options, "--json"))
    for part in (found["as_published"], found["holds"]):
        assert part["epsilon"] is part["log10_epsilon"] is None
        assert "multiplier is 0" in part["reason"]
    assert "infinite because" in run(*options)


def test_no_epochs_cost_nothing(run):
    options = ["--noise-multiplier", "0", "--epochs", "0", "--delta", "1e-5"]
    found = strictly(run(*options, "--json"))
    assert found["holds"]["epsilon"] == found["as_published"]["epsilon"] == 0
    assert found["holds"]["effective_noise_multiplier"] == []
    assert run(*options)


def test_delta_from_the_number_of_examples(run):
    options = ["--noise-multiplier", "4", "--epochs", "10", "--json"]
    found = strictly(run(*options, "--num-examples", "1000"))
    assert found["delta"] == 5e-4
    assert found["as_published"]["epsilon"] == pytest.approx(3.3948899938890933)  # golden a04


def test_a_reader_sees_which_is_which(run):
    text = run(*LEAST, "--workers", "8")
    assert text.isascii()
    for words in ("as published", "holds", "rho", "epsilon", "kappa", "sensitivity", "0.0005"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    "options, words",
    [
        (["--noise-multiplier", "-1"], "noise multiplier"),
        (["--noise-multiplier", "nan"], "noise multiplier"),
        (["--noise-multiplier", "inf"], "noise multiplier"),
        (["--epochs", "-1"], "epochs"),
        (["--epochs", "2000000"], "--epochs"),
        (["--delta", "0"], "delta"),
        (["--delta", "2"], "delta"),
        (["--num-examples", "4000"], "1/n"),
        (["--workers", "0"], "num_workers"),
        (["--micro-batch-size", "0"], "micro_batch_size"),
        (["--max-grad-norm", "0"], "max_grad_norm"),
        (["--layer-scales", "1,0"], "layer_scales"),
        (["--decay-rate", "0.5"], "kind is none"),
        (["--decay", "linear", "--decay-rate", "-1"], "decay rate"),
    ],
)
def test_bad_values_are_one_sentence(options, words):
    arguments = parse(*LEAST, *options)
    with pytest.raises(UserError, match=words) as caught:
        arguments.run(arguments)
    assert "\n" not in str(caught.value)


def test_a_missing_delta_is_one_sentence():
    arguments = parse("--noise-multiplier", "1", "--epochs", "1")
    with pytest.raises(UserError, match="--num-examples"):
        arguments.run(arguments)


@pytest.mark.parametrize(
    "options, words",
    [
        (["--layer-scales", "1,x"], "1,0.5"),
        (["--layer-scales", ""], "1,0.5"),
        (["--adjacency", "replace_all"], "zero-out"),
        (["--variant", "shared_seed"], "calibrated"),
        (["--epochs", "ten"], "--epochs"),
        (["--unknown", "1"], "--unknown"),
    ],
)
def test_what_argparse_refuses_exits_with_2(options, words, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(*LEAST, *options)
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


def test_help_has_examples_that_run(capsys, run):
    with pytest.raises(SystemExit) as caught:
        parse("--help")
    assert caught.value.code == 0
    lines = capsys.readouterr().out.replace("\\\n", " ").splitlines()
    commands = [line.split()[2:] for line in lines if line.startswith("    edp-mx account")]
    assert len(commands) == 3
    for command in commands:
        assert run(*command)


def test_from_a_shell_it_does_not_load_mxnet():
    program = (
        "import sys; from edp_mx.cli import main; code = main(sys.argv[1:]);"
        "assert 'mxnet' not in sys.modules, 'mxnet was loaded'; sys.exit(code)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, "account", *LEAST, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert strictly(result.stdout)["holds"]["kappa"] == 2


def test_from_a_shell_a_bad_value_is_one_line_and_2():
    command = [sys.executable, "-m", "edp_mx", "account", *LEAST, "--workers", "0"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1 and "num_workers" in result.stderr
