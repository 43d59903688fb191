"""`edp-mx account`: its contract for other programs, its plans, and its sentences for people."""

import json
import math
import re
from functools import partial

import pytest
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr
from support import cli
from support.cli import printed, strictly
from support.made_ledgers import plan_with, run_with, shuffled_line
from support.records import INFINITE, PRIVACY
from support.refusals import one_sentence

from edp_mx.dp.accounting.accountants import ACCOUNTANTS, count_with_all
from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.pld.interval import upper_epsilon_poisson_pld
from experiments.paper_epsilons import rows

LEAST = ["--noise-multiplier", "0.5", "--epochs", "10", "--delta", "5e-4"]
PUBLISHED = ["--set", "privacy.variant=published"]
POISSON = "--noise-multiplier 2 --epochs 3 --delta 1e-5 --sampler poisson".split()  # noqa: SIM905
DRAWN = ["--sample-rate", "0.01"]
ZERO_OUT = ["--set", "privacy.adjacency=zero_out"]
NORMS = ["--layer-scales", "0.61,8.75"]
WHOLE = [shuffled_line(epoch) for epoch in range(4)]


@pytest.fixture
def run(capsys):
    """Runs the command; returns what it printed."""
    return partial(printed, capsys, "account")


@pytest.fixture
def finished(tmp_path):
    """A run of four epochs, as planned."""
    return run_with(tmp_path / "finished", plan_with(), WHOLE)


def test_the_contract_with_its_defaults(run):
    found = strictly(run(*LEAST, *PUBLISHED, "--json"))
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


def test_a_limit_ends_what_is_counted_as_it_ends_the_run(run):
    """A step of these costs a thousandth or so: the limit is nearly met."""
    whole = strictly(run(*POISSON, *DRAWN, "--json"))["holds"]["epsilon"]
    limit = ["--set", f"privacy.max_epsilon={0.8 * whole}"]
    found = strictly(run(*POISSON, *DRAWN, *limit, "--json"))["holds"]["epsilon"]
    assert 0.75 * whole < found <= 0.8 * whole


def test_the_contract_with_everything_set(run):
    options = "--noise-multiplier 1.3 --epochs 3 --delta 1e-5 --workers 4 --batch-size 32 --json"
    options += " --set privacy.decay.kind=exponential privacy.decay.rate=0.5"
    options += " privacy.max_grad_norm=0.7 privacy.adjacency=zero_out privacy.variant={}"
    # golden cases c12 and c14, whose largest alpha is 2 in place of 1
    published = strictly(run(*options.format("published").split()))["holds"]
    assert published["aggregate_noise_stddev"] == pytest.approx([0.11375], rel=1e-12)
    assert published["aggregate_sensitivity"] == pytest.approx(0.7 / 2, rel=1e-12)
    fall = [math.exp(-0.5 * t) for t in range(3)]
    expected = [0.1625 * 2 * d for d in fall]
    assert published["effective_noise_multiplier"] == pytest.approx(expected, rel=1e-12)
    calibrated = strictly(run(*options.format("calibrated").split()))["holds"]
    assert calibrated["aggregate_noise_stddev"] == pytest.approx([0.91 / 2])
    expected = [1.3 * d for d in fall]
    assert calibrated["effective_noise_multiplier"] == pytest.approx(expected, rel=1e-12)
    assert calibrated["rho"] == pytest.approx(sum(1 / (2 * z * z) for z in expected), rel=1e-12)


def test_beyond_a_double_only_the_logarithm_is_left(run):
    """As published; what holds is infinite there, since float32 cannot add such noise."""
    options = "--noise-multiplier 1e-6 --epochs 1000"
    options += " --set privacy.decay.kind=exponential privacy.decay.rate=0.5"
    found = strictly(run(*options.split(), "--delta", "5e-4", "--json"))
    published, holds = found["as_published"], found["holds"]
    assert published["epsilon"] is published["rho"] is None
    assert "reason" not in published
    log10 = 1026.396549080756 / math.log(10)  # golden case a91; at this size ε = ρ
    assert published["log10_epsilon"] == pytest.approx(log10, rel=1e-12)
    assert holds["epsilon"] is holds["log10_epsilon"] is None and "float32" in holds["reason"]
    assert "10^445.758" in run(*options.split(), "--delta", "5e-4")


def test_noise_that_float32_cannot_add_is_infinite_and_says_so(run):
    options = ["--epochs", "2", "--delta", "1e-5", "--workers", "8",
               *PUBLISHED, "--noise-multiplier"]  # fmt: skip
    # z / 8 of C against 2^-19 of C max alpha
    norms = strictly(run(*options, repr(8.7 * 8 * 2**-19), *NORMS, "--json"))["holds"]
    assert "to a gradient of norm C * max alpha" in norms["reason"]
    assert strictly(run(*options, repr(8.8 * 8 * 2**-19), *NORMS, "--json"))["holds"]["epsilon"]
    vanishing = [*options, repr(7.9 * 2**-19)]
    found = strictly(run(*vanishing, "--json"))
    assert found["holds"]["epsilon"] is None
    assert "smaller than what float32 can add" in found["holds"]["reason"]
    assert {row["epsilon"] for row in found["accountants"]["holds"]} == {None}
    assert found["as_published"]["epsilon"] is not None
    assert "infinite because the noise becomes smaller than what" in run(*vanishing)
    enough = [*options, repr(8.1 * 2**-19)]
    assert "infinite" not in run(*enough)
    assert strictly(run(*enough, "--json"))["holds"]["epsilon"] > 0


def epsilon_of(mu, delta):
    """The ε of N(μ, 1) and N(0, 1), at whatever μ: Balle and Wang (2018) with ε = μ²/2 + μ x."""
    x = brentq(lambda x: ndtr(-x) - erfcx((mu + x) / 2**0.5) * math.exp(-x * x / 2) / 2 - delta,
               -mu / 2, 40)  # fmt: skip
    return mu * mu / 2 + mu * x


@pytest.mark.parametrize("row", [*rows()[::4], rows()[-1]], ids=lambda row: "-".join(row[:2]))
def test_cells_of_the_paper_with_norms_for_layer_scales(run, row):
    """A record moves the aggregate by 2 C max α / 8, and its noise is C z / 8^1.5."""
    z, decay, delta = row.plan.noise_multiplier, row.plan.decay, row.plan.delta
    found = strictly(run("--noise-multiplier", z, "--epochs", row.plan.epochs, "--delta", delta,
                         "--workers", 8, "--json", *NORMS, *PUBLISHED,
                         f"privacy.decay.kind={decay.kind}",
                         f"privacy.decay.rate={decay.rate}"))  # fmt: skip
    assert found["as_published"]["log10_epsilon"] == pytest.approx(row.paper, abs=0.1)
    falls = {"none": lambda t: 1, "linear": lambda t: 1 / (1 + decay.rate * t),
             "exponential": lambda t: math.exp(-decay.rate * t)}  # fmt: skip
    of_epochs = [z * falls[decay.kind](t) for t in range(row.plan.epochs)]
    if of_epochs[-1] / 8 < 2**-19 * 8.75:
        assert found["holds"]["epsilon"] is None and "float32" in found["holds"]["reason"]
        return
    mu = math.hypot(*(2 * 8.75 * 8**0.5 / z for z in of_epochs))
    assert found["holds"]["epsilon"] == pytest.approx(epsilon_of(mu, delta), rel=1e-9)


def test_what_depends_on_unknown_layer_scales_is_not_stated(run):
    options = [*LEAST, *PUBLISHED, "privacy.layer_scales=public_batch",
               "privacy.layer_scales_unit=norm"]  # fmt: skip
    holds = strictly(run(*options, "--json"))["holds"]
    assert holds["effective_noise_multiplier"] is holds["aggregate_sensitivity"] is None
    assert holds["epsilon"] is None and "not known before" in holds["reason"]
    said = re.findall(r"^(?:effective|sensitivity).* (\S+)$", run(*options), re.M)
    assert said == ["unknown"] * 3
    holds = strictly(run(*options, *NORMS, "--json"))["holds"]
    assert holds["effective_noise_multiplier"] == pytest.approx([0.5 / (2 * 8.75)] * 10)
    assert holds["aggregate_sensitivity"] == 2 * 8.75


def test_the_longest_plan(run):
    options = ["--noise-multiplier", "100", "--epochs", "100000", "--delta", "1e-5", "--json"]
    rho = strictly(run(*options))["as_published"]["rho"]
    assert rho == pytest.approx(100_000 / (2 * 100**2), rel=1e-12)


@pytest.mark.parametrize(
    "options, words",
    [
        ([*LEAST, "--noise-multiplier", "nan"], "noise_multiplier: 'nan' is not a number"),
        ([*LEAST, "--epochs", "100001"], "training.epochs must be .* at most 100000"),
        ([*LEAST, "--delta", "2"], "delta"),
        ([*LEAST, "--num-examples", "4000"], "1/n"),
        ([*LEAST, "--batch-size", "1.5"], "training.batch_size: 1.5 is not a whole number"),
        ([*LEAST, "--workers", "0"], "--workers is 0; it must be 1 or more"),
        ([*LEAST, "--workers", "3"], "batch_size: 64 is not a multiple of 3"),
        ([*LEAST, "--set", "privacy.decay.rate=0.5"], "kind is none"),
        ([*LEAST, "--set", "privacy.decai=1"], "no such key; did you mean decay"),
        ([*LEAST, "--set", "model.family=bert"], "model: there is no such key"),
        ([*LEAST, "--mechanism", "none"], "privacy.mechanism is none"),
        ([*LEAST, "--sample-rate", "0.1"], "sampler poisson"),
        ([*LEAST, "--plot", "x.pdf"], ".png"),
        ([*POISSON], "--num-examples, from which .* or --sample-rate"),
        ([*POISSON, *DRAWN, "--batch-size", "64"], "--sample-rate and --batch-size"),
        ([*LEAST, "--set", "training.epochs=3"], "--epochs and --set training.epochs say the same"),
        ([*POISSON, "--sample-rate", "2"], "sample_rate is 2"),
        ([*POISSON, "--sample-rate", "0"], "sample rate above 0"),
        (["--noise-multiplier", "1", "--epochs", "1"], "--num-examples"),
        (["--epochs", "3", "--delta", "1e-5"], "give a CONFIG, or at least privacy.noise_mult"),
        (["--noise-multiplier", "1", "--delta", "1e-5"], "at least training.epochs"),
        (["a_run", "mine.yaml"], "a_run is no YAML file"),
        (["no_such.yaml"], "cannot read the configuration no_such.yaml"),
        (["no_such_run"], "no_such_run does not exist"),
        (["a_run", "--epochs", "3", "--workers", "2"], "leave out --epochs, --workers"),
        (["a_run", *NORMS], "leave out --layer-scales"),
        ([*LEAST, "--layer-scales", "0,1"], "layer_scales holds 0.0; all must be finite"),
    ],
)
def test_what_cannot_be_counted_is_one_sentence(options, words):
    one_sentence(words, cli.run, "account", *options)


def test_all_accountants_of_poisson_steps(run):
    found = strictly(run(*POISSON, *DRAWN, "--json"))
    steps = [Event("poisson", 2.0, 300, 0.01)]
    for side, neighbours in (("as_published", "zero_out"), ("holds", "replace_in_mean")):
        expected = count_with_all(Composition(neighbours, steps), delta=1e-5)
        rows = {row["accountant"]: row for row in found["accountants"][side]}
        assert set(rows) == {count.accountant for count in expected}
        for count in expected:
            row = rows[count.accountant]
            assert row["epsilon"] == pytest.approx(count.epsilon.value, rel=1e-9)
            assert row["is_bound"] == ACCOUNTANTS[count.accountant].is_bound
    assert found["holds"]["accountant"] == "poisson_pld"
    assert found["holds"]["epsilon_lower"] <= found["holds"]["epsilon"]
    assert found["as_published"]["rho"] == pytest.approx(3 / 8)
    assert found["sampler"] == {"name": "poisson", "sample_rate": 0.01, "steps_per_epoch": 100}


def test_the_accountants_of_a_run(run, finished, tmp_path):
    found = strictly(run(finished, "--json"))
    (rf_zcdp,) = (row for row in found["accountants"]["holds"] if row["accountant"] == "rf_zcdp")
    rho = 4 / (2 * 8**2)
    expected = rho + 2 * math.sqrt(rho * math.log(1 / found["delta"]))
    assert rf_zcdp["epsilon"] == pytest.approx(expected, rel=1e-12)
    private = run_with(tmp_path / "run", plan_with(private_inputs=["vocabulary"]), WHOLE)
    public = strictly(run(finished, "--json"))["accountants"]["holds"]
    found = strictly(run(private, "--json"))["accountants"]
    assert {row["epsilon"] for row in found["holds"]} == {None}  # as `holds` is itself
    assert {row["log10_epsilon"] for row in found["holds"]} == {None}
    assert found["holds_if"] == public
    assert "| rf_exact | 0.765454 | infinite | 0.765454 | yes" in " ".join(run(private).split())
    fixed = run_with(tmp_path / "fixed", plan_with(seed_is_fixed=True), [shuffled_line(0)])
    found = strictly(run(fixed, "--json"))
    assert {row["epsilon"] for row in found["accountants"]["holds"]} == {None}


def test_a_run_is_counted_from_its_ledger_alone(run, finished):
    assert [path.name for path in finished.iterdir()] == ["privacy_ledger.jsonl"]
    found = strictly(run(finished, "--json"))
    plan = "--noise-multiplier 8 --epochs 4 --num-examples 4478 --workers 8 --batch-size 64"
    expected = strictly(run(*plan.split(), "--json"))
    assert found["delta"] == expected["delta"]
    for side in ("as_published", "holds"):
        for key in ("rho", "epsilon"):
            assert found[side][key] == pytest.approx(expected[side][key], rel=1e-12)
        counts = zip(found["accountants"][side], expected["accountants"][side])
        for one, other in counts:
            assert one["accountant"] == other["accountant"]
            assert one["epsilon"] == pytest.approx(other["epsilon"], rel=1e-12)
    assert found["ledger"]["differences"] == [] and not found["ledger"]["is_torn"]
    assert [entry["what"] for entry in found["ledger"]["entries"]] == [
        f"epoch {epoch}" for epoch in range(4)
    ]
    text = run(finished)
    for words in ("epochs 1 to 4", "agrees with the plan: 4 epochs", "rf_exact", "not covered"):
        assert words in text
    assert run(str(finished / "privacy_ledger.jsonl")) == text


def test_a_stopped_and_a_repeated_run_say_so(run, tmp_path):
    lines = [shuffled_line(0), shuffled_line(1), shuffled_line(1)]
    folder = run_with(tmp_path / "run", plan_with(), lines, tail='{"what"')
    text = run(folder)
    for words in ("epochs 3 to 4 are missing", "epoch 2 was begun 2 times", "cut off", "has spent"):
        assert words in text
    found = strictly(run(folder, "--json"))
    assert found["ledger"]["is_torn"]
    assert found["holds"]["rho"] == pytest.approx(3 / 128)
    assert found["planned"]["holds"]["rho"] == pytest.approx(4 / 128)


def test_a_folder_without_a_ledger(tmp_path, run):
    one_sentence("no privacy_ledger", run, tmp_path)
    bounds = dict.fromkeys(("as_published", "holds", "holds_if"), INFINITE)
    free = {**PRIVACY, **bounds, "mechanism": "none", "delta": 0.1}
    (tmp_path / "privacy.json").write_text(json.dumps(free))
    one_sentence("without a privacy mechanism", run, tmp_path)


@pytest.mark.parametrize("is_run", [True, False])
def test_a_plot_comes_with_its_numbers(run, tmp_path, finished, is_run):
    picture = tmp_path / "out" / "epsilon.png"
    options = [finished] if is_run else LEAST
    found = strictly(run(*options, "--plot", str(picture), "--json"))
    assert picture.read_bytes().startswith(b"\x89PNG")
    last = picture.with_suffix(".csv").read_text().splitlines()[-1].split(",")
    assert float(last[1]) == pytest.approx(found["as_published"]["epsilon"], rel=1e-9)
    assert float(last[3]) == pytest.approx(found["holds"]["epsilon"], rel=1e-9)


SIZES = ["--epochs", "3", "--num-examples", "1000", "--workers", "2", "--batch-size", "32"]


def test_the_account_of_a_plan(capsys):
    options = ["account", "--mechanism", "dp_sgd", "--noise-multiplier", "1.2", *SIZES,
               "--sampler", "poisson", *ZERO_OUT]  # fmt: skip
    found = json.loads(printed(capsys, *options, "--json"))
    steps = Composition("zero_out", [Event("poisson", 1.2, 3 * 31, 0.032)])
    expected = upper_epsilon_poisson_pld(steps, delta=1 / 2000)
    assert found["holds"]["epsilon"] == pytest.approx(expected, rel=1e-9)
    assert found["holds"]["kappa"] == 1
    assert found["holds"]["aggregate_sensitivity"] == pytest.approx(1 / 32)
    assert found["holds"]["aggregate_noise_stddev"] == pytest.approx([1.2 / 32])
    assert found["as_published"]["accountant"] == "paper_rs"
    assert found["holds"]["assumes"].startswith("words, labels and what the model starts from are")
    said = printed(capsys, *options)
    assert "kappa                                        1             1" in said
    assert "assumed: words, labels and what the model starts from are taken to be" in said


CONFIG = """\
privacy:
  mechanism: dp_sgd
  sampler: poisson
  adjacency: zero_out
  decay: {kind: linear, rate: 0.5}
  noise_multiplier: 1.2
training: {epochs: 3, batch_size: 32}
model: {dropout: 0.0}
"""


def test_a_configuration_counts_as_its_options_do(run, tmp_path):
    config = tmp_path / "mine.yaml"
    config.write_text(CONFIG)
    found = strictly(run(config, "--num-examples", "1000", "--workers", "2", "--json"))
    options = ["--mechanism", "dp_sgd", "--noise-multiplier", "1.2", *SIZES, "--sampler", "poisson"]
    decay = ["privacy.decay.kind=linear", "privacy.decay.rate=0.5"]
    assert strictly(run(*options, *ZERO_OUT, *decay, "--json")) == found
    steps = [Event("poisson", 1.2 / (1 + 0.5 * t), 31, 0.032) for t in range(3)]
    expected = upper_epsilon_poisson_pld(Composition("zero_out", steps), delta=1 / 2000)
    assert found["holds"]["epsilon"] == pytest.approx(expected, rel=1e-6)
    options = ["--num-examples", "1000", "--workers", "2", "--json", "--set"]
    target = strictly(run(config, *options, "privacy.noise_multiplier=null",
                          "privacy.target_epsilon=5"))["holds"]["epsilon"]  # fmt: skip
    assert 4.99 < target <= 5
    fewer = strictly(run(config, *options, "training.epochs=1"))["holds"]["epsilon"]
    one = upper_epsilon_poisson_pld(Composition("zero_out", steps[:1]), delta=1 / 2000)
    assert fewer == pytest.approx(one, rel=1e-6)


@pytest.mark.parametrize(
    "line, words",
    [
        ("privacy: {clip: 1}", "line 1: privacy.clip: there is no such key"),
        ("privacy: {max_grad_norm: -1}", "line 1: privacy.max_grad_norm must be at least"),
        ("model: {drop: 1}", "line 1: model.drop: there is no such key"),
    ],
)
def test_a_wrong_key_is_refused_as_train_refuses_it(tmp_path, line, words):
    config = tmp_path / "mine.yaml"
    config.write_text(f"{line}\n")
    for command in ("account", "calibrate", "train"):
        one_sentence(f"mine.yaml, {words}", cli.run, command, config)


@pytest.mark.parametrize(
    "setting, reason",
    [
        ("privacy.layer_scales=first_batch", "the layer scales are gradient norms"),
        ("training.length_buckets=4", "batches were made by the lengths"),
        ("privacy.insecure_fixed_seed=1", "the seed was fixed"),
    ],
)
def test_what_a_configuration_gives_away_makes_epsilon_infinite(run, setting, reason):
    found = strictly(run(*LEAST, "--set", setting, "--json"))
    assert found["holds"]["epsilon"] is None and reason in found["holds"]["reason"]
    assert {row["epsilon"] for row in found["accountants"]["holds"]} == {None}
    assert reason in " ".join(run(*LEAST, "--set", setting).split())
