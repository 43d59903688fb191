"""`edp-mx audit`: its sentences, its JSON and its exit codes, with one worker."""

import re
from functools import partial
from pathlib import Path

import pytest
from support import cli
from support.refusals import one_sentence

from edp_mx.attacks.audit.bounds import ErrorCounts, epsilon_of_mu, mu_from_errors
from edp_mx.cli import main
from edp_mx.dp.accounting.clippings import CLIP_RULES

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "audits.md").read_text(encoding="utf-8")
# a sound system is refuted once in a hundred million times
SMALL_NOISE = ["noise", "--size", "20000", "--steps", "2", "--confidence", "0.99999999"]

run = partial(cli.run, "audit")


def test_sound_noise_ends_with_0(capsys):
    said = cli.printed(capsys, "audit", *SMALL_NOISE)
    assert said.startswith("not refuted: the noise is as large as the accounting assumes")


@pytest.mark.parametrize("variant", ["published", "calibrated"])
def test_sound_noise_of_the_published_variant_says_nothing_about_its_epsilon(variant, capsys):
    assert run(*SMALL_NOISE, "--set", f"privacy.variant={variant}") == 0
    said = "Whether the paper's" in capsys.readouterr().out
    assert said == (variant == "published")


def test_the_noise_report_as_json(capsys):
    found = cli.strictly(cli.printed(capsys, "audit", *SMALL_NOISE, "--json"))
    assert found["refuted"] is False
    names = [check["name"] for check in found["checks"]]
    assert names[:2] == ["noise on layer 0, stddev", "noise on layer 1, stddev"]


def test_a_refuted_claim_ends_with_1(capsys):
    options = ("--draws", "600", "--set", "privacy.noise_multiplier=0.5",
               "privacy.variant=published")  # fmt: skip
    assert run("step", *options, "--layer-scales", "1", "--claim", "published") == 1
    out = capsys.readouterr().out
    # z = 0.5 with one worker: κ = 2 alone makes μ = 4 of the 2 that are claimed
    assert out.startswith("REFUTED: at 95 % confidence one step leaks at least epsilon = ")
    assert "the published accounting claims" in out.splitlines()[0]
    assert "the accounting that holds claims" in out.splitlines()[1]


def test_the_table_of_the_page_on_audits(capsys):
    """Norms as scales, in a tenth of the draws; the bound of all draws if none errs."""
    (command,) = re.findall(r"`edp-mx audit (step --draws [^`]*)`", PAGE)
    options = command.replace("--draws 2000", "--draws 200").split()
    table = re.findall(r"^\| ([\d., ]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.M)
    audited = {}
    for scales, published, leaks, holds in table:
        given = ("--layer-scales", scales.replace(" ", ""), "--confidence", "0.9999", "--json")
        code = run(*options, *given)
        found = cli.strictly(capsys.readouterr().out)
        claims = found["claims"]
        assert code == 1 and claims["published"]["refuted"] and not claims["holds"]["refuted"]
        for claim, said in (("published", published), ("holds", holds)):
            assert claims[claim]["epsilon"] == pytest.approx(float(said), rel=0.02)
        assert float(published) < float(leaks) < float(holds)
        audited[scales] = float(leaks)
    without_error = mu_from_errors(ErrorCounts(0, 2000, 0, 2000), significance=0.05 / 2)
    largest = epsilon_of_mu(without_error, delta=1e-5)
    assert audited["8.75, 0.61"] == pytest.approx(largest, abs=0.05)


@pytest.mark.parametrize("rule", CLIP_RULES)
def test_what_holds_ends_with_0_and_is_the_default_of_calibrated(rule, capsys):
    options = ("--draws", "200", "--confidence", "0.9999", "--json")
    assert run("step", *options, "--set", f"privacy.clip_rule={rule}") == 0
    found = cli.strictly(capsys.readouterr().out)
    assert found["audited"] == "holds" and found["refuted"] is False
    assert found["claims"]["holds"]["epsilon"] == pytest.approx(4.3772, abs=1e-3)


def test_a_run_that_is_refused_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    options = ("--set", "data.size=60", "training.batch_size=5000")
    one_sentence("does not lie between 1 and", run, "one-run", "configs/quickstart.yaml",
                 "--canaries", "10", "--run", tmp_path / "audit", *options)  # fmt: skip
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["step", "--set", "privacy.noise_multiplier=0"], "privacy.noise_multiplier"),
        (["noise", "--set", "privacy.mechanism=none"], "privacy.noise_multiplier"),
        (["step", "--set", "privacy.clipp=1"], "did you mean clipping"),
        (["step", "--sample-rate", "0"], "--sample-rate"),
        (["step", "--draws", "3"], "--draws"),
        (["step", "--set", "privacy.delta=0"], "delta"),
        (["step", "--layer-scales", "0,1"], "layer_scales"),
        (["noise", "--steps", "1"], "--steps"),
        (["noise", "--size", "10"], "--size"),
        (["one-run", "configs/quickstart.yaml", "--canaries", "2"], "--canaries"),
        (["one-run", "configs/quickstart.yaml", "--tokens", "0"], "--tokens"),
    ],
)
def test_impossible_settings_are_refused_in_a_sentence(options, word, monkeypatch):
    monkeypatch.chdir(ROOT)
    for more in ([], ["--check"]):
        one_sentence(word, run, *options, *more)


def test_what_is_no_option_ends_with_2(capsys):
    for options in (["step", "--confidence", "1.5"], ["nothing"], [], ["one-run"]):
        with pytest.raises(SystemExit) as ended:
            main(["audit", *options])
        assert ended.value.code == 2
    assert main(["audit", "one-run", "there_is_no.yaml"]) == 2


def test_workers_are_counted_by_a_check_alone():
    for options, word in (
        (["--check", "--workers", "0"], "1 or more"),
        (["--workers", "2"], "NP=2"),
    ):
        for audit in ("noise", "step"):
            one_sentence(f"--workers .*{word}", run, audit, *options)


def test_check_audits_nothing(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert run("step", "--check", "--workers", "8") == 0
    assert run("one-run", "configs/audit/one_run.yaml", "--check", "--workers", "2") == 0
    assert "nothing was audited" in capsys.readouterr().out


def test_a_step_of_the_papers_configuration_is_counted_at_the_audits_own_delta(capsys):
    layer, noise = ROOT / "configs/mechanism/edp_linear.yaml", "privacy.noise_multiplier=2"
    code = run("step", layer, "--draws", "200", "--confidence", "0.99999999", "--set", noise)
    assert code in (0, 1) and "at delta = 1e-05" in capsys.readouterr().out
