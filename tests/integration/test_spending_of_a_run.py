"""What a run writes down before it releases it: through crashes, resumes, budgets and samplers."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from edp_mx.accounting.ledger import read_ledger

ROOT = Path(__file__).resolve().parents[2]
CONFIG = [ROOT / "configs" / "quickstart.yaml",
          ROOT / "configs" / "mechanism" / "edp_calibrated.yaml"]  # fmt: skip
TINY = ["data.size=400", "data.embeddings.dimension=8", "model.hidden_size=8",
        "model.character_filters=4", "training.epochs=4", "training.batch_size=16",
        "privacy.noise_multiplier=null"]  # fmt: skip


def start(*arguments):
    """The real command line, in the background."""
    return subprocess.Popen(
        [sys.executable, "-m", "edp_mx", "train", *map(str, arguments)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def finish(process, code=0):
    output, errors = process.communicate(timeout=300)
    assert process.returncode == code, errors
    return output, errors


def train(run, *settings, code=0):
    return finish(start(*CONFIG, "--run", run, "--set", *TINY, *settings), code)


def report(run):
    return json.loads((run / "privacy.json").read_text())


def rows(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def events_of(run):
    """All that was released, by the ledger."""
    return [entry.event for entry in read_ledger(run / "privacy_ledger.jsonl").entries]


def log_rho(multipliers):
    return np.log(np.sum(0.5 / np.square(multipliers)))


def test_the_ledger_is_the_plan_when_nothing_interrupts(tmp_path):
    train(tmp_path / "run", "privacy.noise_multiplier=0.5")
    ledger = read_ledger(tmp_path / "run" / "privacy_ledger.jsonl")
    expected = [0.5 * np.exp(-0.1 * t) for t in range(4)]
    assert [entry.event.effective_noise_multiplier for entry in ledger.entries] == pytest.approx(
        expected
    )
    assert report(tmp_path / "run")["holds"]["rho"] == pytest.approx(np.exp(log_rho(expected)))


def test_a_target_is_met_from_below_and_a_limit_ends_the_run_before_it(tmp_path):
    train(tmp_path / "target", "privacy.target_epsilon=8")
    spent = report(tmp_path / "target")["holds"]["epsilon"]
    assert 7.99 < spent <= 8
    multiplier = report(tmp_path / "target")["noise_multiplier"]

    _, errors = train(
        tmp_path / "limit", f"privacy.noise_multiplier={multiplier}", "privacy.max_epsilon=6"
    )
    assert "privacy.max_epsilon: 0 of the" in errors
    ledger = read_ledger(tmp_path / "limit" / "privacy_ledger.jsonl")
    assert 0 < len(ledger.entries) < 4 and len(rows(tmp_path / "limit")) == len(ledger.entries)
    assert report(tmp_path / "limit")["holds"]["epsilon"] <= 6
    assert (tmp_path / "limit" / "results.json").exists()


def test_target_and_multiplier_exclude_each_other(tmp_path):
    _, errors = train(tmp_path / "run", "privacy.noise_multiplier=1", "privacy.target_epsilon=8",
                      code=2)  # fmt: skip
    assert "noise_multiplier and target_epsilon exclude each other" in errors


def test_poisson_steps_are_counted_one_by_one(tmp_path):
    settings = ["privacy.sampler=poisson", "privacy.decay.kind=none", "privacy.decay.rate=0"]
    train(tmp_path / "run", *settings, "privacy.target_epsilon=8", "training.epochs=2")
    assert {event.sampler for event in events_of(tmp_path / "run")} == {"poisson"}
    assert {event.sample_rate for event in events_of(tmp_path / "run")} == {16 / 180}
    assert sum(event.count for event in events_of(tmp_path / "run")) == 2 * round(180 / 16)
    holds = report(tmp_path / "run")["holds"]
    assert holds["accountant"] == "poisson_pld" and 7.9 < holds["epsilon"] <= 8

    multiplier = report(tmp_path / "run")["noise_multiplier"]
    _, errors = train(tmp_path / "limit", *settings, f"privacy.noise_multiplier={multiplier}",
                      "privacy.max_epsilon=7", "training.epochs=2")  # fmt: skip
    steps = sum(event.count for event in events_of(tmp_path / "limit"))
    assert 11 < steps < 22 and f"{steps - 11} of the 11 steps of epoch 2 fit" in errors
    assert 6 < report(tmp_path / "limit")["holds"]["epsilon"] <= 7


def test_released_scales_stand_in_the_ledger_first(tmp_path):
    train(tmp_path / "run", "privacy.layer_scales=dp_release", "privacy.noise_multiplier=2",
          "privacy.scale_release.micro_batches=10", "privacy.decay.kind=none",
          "privacy.decay.rate=0")  # fmt: skip
    ledger = read_ledger(tmp_path / "run" / "privacy_ledger.jsonl")
    assert ledger.entries[0].what == "layer scales"
    multipliers = [10.0, 2.0, 2.0, 2.0, 2.0]
    assert [entry.event.effective_noise_multiplier for entry in ledger.entries] == multipliers
    assert report(tmp_path / "run")["holds"]["rho"] == pytest.approx(np.exp(log_rho(multipliers)))


def kill_and_resume(run, lines, moment, settings=("privacy.noise_multiplier=0.5",)):
    """Trains, is killed `moment` seconds after its ledger has so many lines, and goes on."""
    process = start(*CONFIG, "--run", run, "--set", *TINY, *settings)
    ledger = run / "privacy_ledger.jsonl"
    while not ledger.exists() or ledger.read_text().count("\n") < lines:
        assert process.poll() in (None, 0), process.communicate()[1]
        time.sleep(0.01)
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    scales = (run / "layers.json").read_text() if (run / "layers.json").exists() else None
    if (run / "results.json").exists():  # it had ended, or all but for tidying up
        (run / "checkpoint.npz").unlink(missing_ok=True)
        return scales
    finish(start("--resume", run))
    return scales


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_any_moment_the_ledger_never_says_too_little(tmp_path, seed, count):
    """Every epoch in the final model is in the ledger, and α stays what it was."""
    draw = random.Random(seed)
    for i in range(count):
        run = tmp_path / f"run{i}"
        # so many lines, not so many seconds: as far from its end on a slow machine as on a fast one
        scales = kill_and_resume(run, (3, 5, 1, 4, 6)[i % 5], draw.uniform(0, 0.3))
        assert [row["epoch"] for row in rows(run)] == [0, 1, 2, 3]
        counted = [entry.event.effective_noise_multiplier
                   for entry in read_ledger(run / "privacy_ledger.jsonl").entries]  # fmt: skip
        in_the_model = [0.5 * np.exp(-0.1 * t) for t in range(4)]
        for multiplier in in_the_model:  # each is there, perhaps twice
            assert any(found == pytest.approx(multiplier) for found in counted)
        assert report(run)["holds"]["rho"] >= np.exp(log_rho(in_the_model)) * (1 - 1e-12)
        assert report(run)["holds"]["rho"] == pytest.approx(np.exp(log_rho(counted)))
        assert scales is None or scales == (run / "layers.json").read_text()
        assert not (run / "checkpoint.npz").exists()


def test_what_cannot_be_resumed_is_refused(tmp_path):
    train(tmp_path / "run", "privacy.noise_multiplier=0.5", "training.epochs=1")
    _, errors = finish(start("--resume", tmp_path / "run"), code=2)
    assert "has ended already" in errors
    _, errors = finish(start("--resume", tmp_path), code=2)
    assert "is no run directory" in errors
    _, errors = finish(start(*CONFIG, "--resume", tmp_path / "run"), code=2)
    assert "either a configuration or" in errors


def test_a_resumed_run_with_other_workers_or_a_damaged_ledger_is_refused(tmp_path):
    run = tmp_path / "run"
    train(run, "privacy.noise_multiplier=0.5", "training.epochs=1")
    (run / "results.json").unlink()
    lines = (run / "privacy_ledger.jsonl").read_text().splitlines()
    other = lines[0].replace('"num_workers": 1', '"num_workers": 2')
    (run / "privacy_ledger.jsonl").write_text("\n".join([other, *lines[1:]]) + "\n")
    _, errors = finish(start("--resume", run), code=2)
    assert "was begun with release" in errors
    (run / "privacy_ledger.jsonl").write_text("\n".join([lines[0], "x", *lines[1:]]) + "\n")
    _, errors = finish(start("--resume", run), code=2)
    assert "line 2: not JSON" in errors


def test_an_early_stop_counts_all_epochs_that_might_have_run(tmp_path):
    run = tmp_path / "run"
    train(run, "privacy.noise_multiplier=2", "privacy.decay.kind=none", "privacy.decay.rate=0",
          "training.epochs=40", "training.early_stop_patience=1")  # fmt: skip
    assert len(rows(run)) < 40
    assert report(run)["holds"]["rho"] == pytest.approx(40 / 8)  # whenever it stopped


@pytest.mark.parametrize("harm", ["gone", "shortened", "another's"])
def test_without_the_ledger_that_its_checkpoint_confirms_a_run_does_not_go_on(tmp_path, harm):
    run, ledger = tmp_path / "run", tmp_path / "run" / "privacy_ledger.jsonl"
    process = start(*CONFIG, "--run", run, "--set", *TINY, "privacy.noise_multiplier=0.5",
                    "training.epochs=200")  # fmt: skip
    while not (run / "checkpoint.npz").exists() or ledger.read_text().count("\n") < 5:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.kill()
    process.communicate()
    lines = ledger.read_text().splitlines(keepends=True)
    if harm == "gone":
        ledger.unlink()
    elif harm == "shortened":
        ledger.write_text("".join(lines[:3]))
    else:  # of a run with the same plan, as long
        ledger.write_text("".join([*lines[:3], lines[2], *lines[4:]]))
    _, errors = finish(start("--resume", run), code=2)
    assert "privacy_ledger.jsonl" in errors and "nobody knows what" in errors
