"""`edp-mx explain`: the page says what is so, of good runs and of hopeless ones."""

import json
import math
import re

import pytest
from scipy.stats import norm
from support.cli import printed, run, strictly
from support.drawn_runs import PRIVACY
from support.gaussian import gaussian_delta
from support.made_ledgers import (
    plan_with,
    poisson_line,
    poisson_plan,
    run_of,
    run_with,
    shuffled_line,
)
from support.refusals import one_sentence

from edp_mx.dp.accounting.target import calibrated
from edp_mx.errors import UserError


@pytest.fixture
def page(capsys, tmp_path):
    """The page of a run with this ledger."""

    def read(plan, lines, *options):
        folder = run_with(tmp_path / "run", plan, lines)
        return printed(capsys, "explain", folder, *options)

    return read


def flat(text):
    """Without line breaks."""
    return " ".join(text.split())


def whole(z=8.0, effective=None):
    return [shuffled_line(epoch, z, effective) for epoch in range(4)]


def shares(text, name):
    """Both columns of a line of the table, as numbers."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {name}")]
    return [float(cell) / 100 for cell in re.findall(r"([\d.]+) %(?: \(no limit\))? +\|", line)]


def test_more_workers_help_where_each_adds_noise_of_its_own_size(page):
    """The noise on the mean of a Poisson draw is z·C/B, whatever the number of workers."""
    micro_batches = flat(page(plan_with(), whole()))
    assert "more workers, or a larger batch in more micro-batches, make the same" in micro_batches
    utterances = {"unit": "utterance", "adjacency": "zero_out"}
    text = flat(page(poisson_plan(utterances), [poisson_line(0)]))
    assert "a larger batch makes the same noise" in text and "more workers" not in text


def test_a_good_run(page):
    text = page(plan_with(), whole())
    assert "IN SHORT\nepsilon = 0.7" in text and "a strong guarantee" in text
    for title in ("WHO IS PROTECTED", "AGAINST WHOM", "WHAT EPSILON MEANS", "THE OTHER EPSILON",
                  "WHAT NO EPSILON HERE COVERS", "WHAT WOULD IMPROVE IT"):  # fmt: skip
        assert title in text
    assert "no meaningful guarantee" not in text and "DIFFERENCES FROM THE PLAN" not in text
    assert "One utterance of the 4478" in text and "exchanged for any other" in flat(text)
    assert "8 workers" in text and "hyper-parameters chosen by other runs" in text
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) <= 90  # one page
    assert text.isascii()


def test_its_numbers_are_those_of_the_best_attack(page):
    text = page(plan_with(), whole(), "--delta", "1e-6")
    mu = math.sqrt(4) / 8
    epsilon = float(re.search(r"epsilon = ([\d.]+) at delta = 1e-06", text).group(1))
    by_delta, best = shares(text, "right guesses")
    e = math.exp(epsilon)
    assert by_delta == pytest.approx((e + 1e-6) / (1 + e), abs=6e-5)
    assert best == pytest.approx(norm.cdf(mu / 2), abs=6e-5)
    for name, fpr in (("members found, 1 %", 0.01), ("members found, 0.1 %", 0.001)):
        by_delta, best = shares(text, name)
        assert by_delta == pytest.approx(e * fpr + 1e-6, abs=6e-5)
        assert best == pytest.approx(norm.sf(norm.isf(fpr) - mu), abs=6e-5)
    ten = float(re.search(r"ten utterances of one person together epsilon is (\d+\.\d+)", text)[1])
    assert gaussian_delta(ten, 10 * mu) == pytest.approx(1e-6, rel=1e-3)


def test_astronomical_is_called_none(page):
    plan = plan_with({"variant": "published"}, noise_multiplier=0.01)
    text = page(plan, whole(0.01, 0.01 / (2 * math.sqrt(8))))
    assert "This is no meaningful guarantee" in " ".join(text.split()) and "no limit" in text
    assert "32 times the paper's" in flat(text)
    assert "(privacy.variant: calibrated): epsilon 20" in flat(text)  # rho 20,000 instead of 32 x
    assert re.search(r"epsilon 8 needs z0 = [\d.]+, \d", flat(text))


def test_infinite_is_called_none_and_says_what_would_be(page):
    inputs = ["layer_scales", "vocabulary", "lengths"]
    plan = plan_with(scales_source="first_batch", private_inputs=inputs)
    text = flat(page(plan, whole()))
    assert "This is no guarantee: epsilon is infinite, because the layer scales" in text
    assert "If the layer scales had not been taken from private data; and if the vocab" in text
    assert "epsilon would be 0.7" in text and "Even then it would be a strong guarantee" in text
    for remedy in ("privacy.layer_scales ones", "data.vocabulary", "length_buckets 0"):
        assert remedy in text
    assert "ignores the layer scales" in text


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"seed_is_fixed": True}, "insecure_fixed_seed"),
        ({"noise_multiplier": 0.0}, "so nothing is hidden"),
        ({"noise_multiplier": 1e-9}, "float32"),
    ],
)
def test_infinite_without_conditions_has_no_numbers(page, changes, words):
    plan = plan_with(**changes)
    text = page(plan, whole(plan.noise_multiplier))
    assert "This is no guarantee: epsilon is infinite, because" in text and words in flat(text)
    assert "nothing limits what can be found out" in text and "| right guesses" not in text
    assert "epsilon would be" not in text


def test_poisson_steps_and_a_repeated_epoch(page):
    lines = [poisson_line(0), poisson_line(1, 30), poisson_line(1), poisson_line(2)]
    text = page(poisson_plan(), lines)
    assert "but not which utterances were drawn" in flat(text)
    assert "DIFFERENCES FROM THE PLAN" in text and "epoch 2 holds 100 steps" in text
    for name in ("right guesses", "members found, 1 %", "members found, 0.1 %"):
        by_delta, best = shares(text, name)
        assert best <= by_delta < 1
    # what it really is, if the central limit is near: mu of the sampled steps
    mu = math.sqrt(240 * (64 / 4480) ** 2 * (math.exp(1 / 1.5**2) - 1))
    _, best = shares(text, "right guesses")
    assert norm.cdf(mu / 2) - 0.01 < best < norm.cdf(mu / 2) + 0.08


USERS = {"num_workers": 1, "unit": "user", "sample_rate": 0.25, "adjacency": "zero_out"}


def drawn(tmp_path, n, z, **changes):
    """A run on n users, 24 steps of q = 1/4, at δ = 1/(2n)."""
    values = {"noise_multiplier": z, "epochs": 6, "steps_per_epoch": 4, "num_records": n,
              "delta": 0.5 / n, **changes}  # fmt: skip
    return run_of(tmp_path / f"{n} at {z}", poisson_plan(USERS, **values))


def test_few_users_and_a_large_delta_are_no_moderate_guarantee(capsys, tmp_path):
    """ε = 8.07 at δ = 0.0156; dp-accounting says what it is at δ that are worth something."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution

    composed = privacy_loss_distribution.from_gaussian_mechanism(
        0.69527141, sampling_prob=0.25, value_discretization_interval=1e-4
    ).self_compose(24)
    true = [composed.get_epsilon_for_delta(delta) for delta in (1 / 64, 1 / 320, 1e-6)]
    assert true == pytest.approx([8.07, 10.27, 18.987], abs=1e-3)
    folder = drawn(tmp_path, 32, 0.69527141)
    text = flat(printed(capsys, "explain", folder))
    for words in ("at delta = 0.0156 (10.27 at 0.00313 = 1/(10n); 18.9868 at 1e-06). This is a "
                  "weak guarantee", "judged at 1e-06, since 0.0156 is not well below 1/n",
                  "only 32 users: noise", "for so few, a fixed small one is better"):  # fmt: skip
        assert words in text
    for command, key in (("account", None), ("explain", "privacy")):
        found = strictly(printed(capsys, command, folder, "--json"))
        found = found[key] if key else found
        others = found["at_other_deltas"]
        assert [each["delta"] for each in others] == [1 / 320, 1e-6]
        stated = [found["holds"]["epsilon"], *(each["holds"]["epsilon"] for each in others)]
        assert stated == pytest.approx(true, rel=1e-5)
    said = flat(printed(capsys, "account", folder))
    assert "at other deltas 10.27 at 0.00313 = 1/(10n); 18.9868 at 1e-06" in said


@pytest.mark.parametrize(
    "n, changes, grade",
    [
        (4478, {}, "a weak guarantee"),  # 9.8 at 1/(2n), 11.0 at 1/(10n)
        (4478, {"delta": 1e-5}, "a weak guarantee"),
        (4478, {"noise_multiplier": 0.9}, "a moderate guarantee"),  # 8.9 and 9.99
        (4478, {"noise_multiplier": 5.0}, "a strong guarantee"),
        (299, {"noise_multiplier": 0.9}, "a weak guarantee"),  # 6.8, 8.1, and 12 at 1e-6
        (300, {"noise_multiplier": 0.9}, "a moderate guarantee"),
    ],
)
def test_the_grade_is_that_of_a_delta_well_below_one_over_n(capsys, tmp_path, n, changes, grade):
    text = flat(printed(capsys, "explain", drawn(tmp_path, n, 0.85, **changes)))
    assert f"This is {grade}" in text
    assert ("It is judged at" in text) == ("delta" not in changes)
    assert ("only 299 users" in text) == (n == 299)


def test_no_run_is_one_sentence(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        one_sentence(re.escape(str(folder)), run, "explain", folder)


def test_a_run_that_could_stop_early_says_so(capsys, tmp_path):
    plan = plan_with(stops_early=True)
    folder = run_of(tmp_path / "run", plan, plan.entries()[:1])
    text = flat(printed(capsys, "explain", folder))
    assert "IN SHORT epsilon = 0.765454 at delta" in text  # of all four epochs
    assert "that of all epochs that it might have run" in text


def test_the_page_as_json_has_the_same_sections(capsys, tmp_path):
    folder = run_with(tmp_path / "run", plan_with(), whole())
    text = printed(capsys, "explain", folder)
    found = strictly(printed(capsys, "explain", folder, "--json"))
    assert 0.7 < found["privacy"]["holds"]["epsilon"] < 0.8
    for title, section in found["sections"].items():
        assert f"\n\n{title}\n{section}" in text


@pytest.mark.parametrize("changes", [{}, {"stops_early": True}])
def test_before_the_scales_are_known_no_number_is_made_up(capsys, tmp_path, changes):
    """The published noise is worth 1 / max α of what it is beside scales of one, 2.828 and 1."""
    plan = plan_with({"variant": "published"}, scales_source="sqrt_dim", scales_unit="norm",
                     **changes)  # fmt: skip
    said = flat(printed(capsys, "explain", run_of(tmp_path / "run", plan, entries=())))
    assert "message of one of them: there the noise multiplier is not known yet" in said
    assert "nobody can tell: the published noise ignores the layer scales" in said
    assert "What is released has" not in said and "more noise" not in said
    assert "the calibrated variant with the same z0 (privacy.variant: calibrated): epsilon" in said
    with pytest.raises(UserError, match="no noise multiplier can be found .* not known before"):
        calibrated(plan, target_epsilon=1.0)


@pytest.mark.parametrize("command", ["explain", "statement", "account"])
def test_a_run_that_has_lost_its_ledger_says_so(command, tmp_path):
    folder = run_with(tmp_path / "run", plan_with(), whole())
    for name in ("vocabulary.json", "weights.npz"):
        (folder / name).write_text("{}")
    (folder / "config.yaml").write_text("{}")
    (folder / "privacy.json").write_text(json.dumps({**PRIVACY, "mechanism": "dp_sgd"}))
    (folder / "privacy_ledger.jsonl").unlink()
    one_sentence(r"has lost its privacy_ledger.jsonl, without which no eps", run, command, folder)
