"""What a run writes down before it releases it: through crashes, resumes, budgets and samplers."""

import json
import random
import time

import numpy as np
import pytest
from support import commands
from support.commands import (
    CALIBRATED,
    NO_DECAY,
    edp_mx,
    interrupted,
    lines_of,
    read,
    rows,
    wait_for,
)

from edp_mx.dp.accounting.accountants import count_with_all
from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.ledger import read_ledger
from edp_mx.runs.run_directory import RunDirectory

TINY = [*commands.TINY, "data.size=400", "training.epochs=4", "privacy.noise_multiplier=null"]
LEDGER = "privacy_ledger.jsonl"


def training(run, *settings):
    return ["train", *CALIBRATED, "--run", run, "--set", *TINY, *settings]


def start(run, *settings):
    """A training run in the background."""
    return commands.start(*training(run, *settings))


def train(run, *settings):
    return edp_mx(*training(run, *settings)).stderr


def refused(*arguments):
    """The error of a command that is not as it must be."""
    return edp_mx("train", *arguments, code=2).stderr


def report(run):
    return read(run, "privacy")


def events_of(run):
    """All that was released, by the ledger."""
    return [entry.event for entry in read_ledger(run / "privacy_ledger.jsonl").entries]


def log_rho(multipliers):
    return np.log(np.sum(0.5 / np.square(multipliers)))


def test_a_target_is_met_from_below_and_a_limit_ends_the_run_before_it(tmp_path):
    train(tmp_path / "target", "privacy.target_epsilon=8")
    spent = report(tmp_path / "target")["holds"]["epsilon"]
    assert 7.99 < spent <= 8
    multiplier = report(tmp_path / "target")["noise_multiplier"]

    errors = train(
        tmp_path / "limit", f"privacy.noise_multiplier={multiplier}", "privacy.max_epsilon=6"
    )
    assert "privacy.max_epsilon: 0 of the" in errors
    ledger = read_ledger(tmp_path / "limit" / "privacy_ledger.jsonl")
    assert 0 < len(ledger.entries) < 4 and len(rows(tmp_path / "limit")) == len(ledger.entries)
    assert report(tmp_path / "limit")["holds"]["epsilon"] <= 6
    assert (tmp_path / "limit" / "results.json").exists()


def test_poisson_steps_are_counted_one_by_one(tmp_path):
    settings = ["privacy.sampler=poisson", *NO_DECAY]
    train(tmp_path / "run", *settings, "privacy.target_epsilon=8", "training.epochs=2")
    assert {event.sampler for event in events_of(tmp_path / "run")} == {"poisson"}
    assert {event.sample_rate for event in events_of(tmp_path / "run")} == {16 / 180}
    assert sum(event.count for event in events_of(tmp_path / "run")) == 2 * round(180 / 16)
    holds = report(tmp_path / "run")["holds"]
    assert holds["accountant"] == "poisson_pld" and 7.9 < holds["epsilon"] <= 8

    multiplier = report(tmp_path / "run")["noise_multiplier"]
    errors = train(tmp_path / "limit", *settings, f"privacy.noise_multiplier={multiplier}",
                   "privacy.max_epsilon=7", "training.epochs=2")  # fmt: skip
    steps = sum(event.count for event in events_of(tmp_path / "limit"))
    assert 11 < steps < 22 and f"{steps - 11} of the 11 steps of epoch 2 fit" in errors
    assert 6 < report(tmp_path / "limit")["holds"]["epsilon"] <= 7


def test_an_epoch_ends_after_the_steps_that_it_is_given(tmp_path):
    train(tmp_path / "run", "privacy.sampler=poisson", *NO_DECAY, "privacy.target_epsilon=3",
          "training.epochs=2", "training.steps_per_epoch=3")  # fmt: skip
    assert sum(event.count for event in events_of(tmp_path / "run")) == 6
    assert {event.sample_rate for event in events_of(tmp_path / "run")} == {16 / 180}
    said = report(tmp_path / "run")
    six = Composition("replace_in_mean", [Event("poisson", said["noise_multiplier"], 6, 16 / 180)])
    counted = {one.accountant: one for one in count_with_all(six, delta=said["delta"])}
    assert said["holds"]["epsilon"] == pytest.approx(counted["poisson_pld"].epsilon.value)
    assert 2.9 < said["holds"]["epsilon"] <= 3


def kill_and_resume(run, lines, moment):
    """Trains, is killed `moment` seconds after its ledger has so many lines, and goes on."""
    process = start(run, "privacy.noise_multiplier=0.5")
    wait_for(lambda: lines_of(run / "privacy_ledger.jsonl") >= lines, process)
    time.sleep(moment)
    process.kill()
    process.communicate()
    scales = (run / "layers.json").read_text() if (run / "layers.json").exists() else None
    if (run / "results.json").exists():  # it had ended, or all but for tidying up
        (run / "checkpoint.npz").unlink(missing_ok=True)
        return scales
    edp_mx("train", "--resume", run)
    return scales


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("count", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_any_moment_the_ledger_never_says_too_little(tmp_path, seed, count):
    """Every epoch in the final model is in the ledger, and α stays what it was."""
    draw = random.Random(seed)
    for i in range(count):
        run = tmp_path / f"run{i}"
        # so many lines, not so many seconds: as far from its end on a slow machine as on a fast one
        scales = kill_and_resume(run, (3, 5, 1, 4, 6)[i % 5], draw.uniform(0, 0.3))
        assert [row["epoch"] for row in rows(run)] == [1, 2, 3, 4]
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
    run, ledger = tmp_path / "run", tmp_path / "run" / "privacy_ledger.jsonl"
    train(run, "privacy.noise_multiplier=0.5", "training.epochs=1")
    assert "has ended already" in refused("--resume", run)
    assert "is not a run directory" in refused("--resume", tmp_path)
    assert "either a configuration or" in refused(*CALIBRATED, "--resume", run)
    (run / "results.json").unlink()
    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("learning_rate: 0.", "learning_rate: 1.", 1))
    assert "config.yaml was changed since it was begun" in refused("--resume", run)
    (run / "config.yaml").write_text(config)
    lines = ledger.read_text().splitlines()
    other = lines[0].replace('"num_workers": 1', '"num_workers": 2')
    ledger.write_text("\n".join([other, *lines[1:]]) + "\n")
    assert "line 1: its hash is wrong" in refused("--resume", run)
    ledger.write_text("\n".join([lines[0], "x", *lines[1:]]) + "\n")
    assert "line 2: not JSON" in refused("--resume", run)


def test_an_early_stop_counts_all_epochs_that_might_have_run(tmp_path):
    run = tmp_path / "run"
    train(run, "privacy.noise_multiplier=2", *NO_DECAY, "training.epochs=40",
          "training.early_stop_patience=1")  # fmt: skip
    assert len(rows(run)) < 40
    assert report(run)["holds"]["rho"] == pytest.approx(40 / 8)  # whenever it stopped


def test_without_the_ledger_that_its_checkpoint_confirms_a_run_does_not_go_on(tmp_path):
    run, ledger = tmp_path / "run", tmp_path / "run" / "privacy_ledger.jsonl"
    settings = training(run, "privacy.noise_multiplier=0.5")
    interrupted(*settings, after=3 * 11 + 1)  # in the fourth epoch
    lines = ledger.read_text().splitlines(keepends=True)
    # one that is shorter, and one of a run with the same plan and as long
    for harmed in (lines[:3], [*lines[:3], lines[2], *lines[4:]]):
        ledger.write_text("".join(harmed))
        errors = refused("--resume", run)
        assert "privacy_ledger.jsonl" in errors and "nobody knows what" in errors
    ledger.unlink()
    assert "nobody knows what" in refused("--resume", run)


def test_the_budget_of_a_corpus_counts_what_a_running_training_may_still_release(tmp_path):
    """Two at once, each within the budget alone, would be above it together."""
    settings = ["privacy.noise_multiplier=2", *NO_DECAY]
    interrupted(*training(tmp_path / "one", *settings), after=15)
    (alone,) = {entry.what for entry in read_ledger(tmp_path / "one" / LEDGER).entries[1:]}
    assert alone == "epoch 1"  # of four
    planned = json.loads(edp_mx("account", *CALIBRATED, "--num-examples", 180, "--json", "--set",
                                *TINY, *settings).stdout)["holds"]["epsilon"]  # fmt: skip
    budget = f"privacy.corpus_budget={1.3 * planned}"
    other = training(tmp_path / "other", *settings, budget)
    with RunDirectory(tmp_path / "one").locked():
        said = edp_mx(*other, code=2).stderr
    assert "those before it on the same utterances" in said and "one) would have" in said
    assert not (tmp_path / "other").exists()
    edp_mx(*other)  # what is at rest has released no more than its ledger says


def test_no_layer_scales_are_released_where_the_budget_of_the_corpus_is_too_small(tmp_path):
    said = refused(*training(
        tmp_path / "run", "privacy.noise_multiplier=2", "privacy.layer_scales=dp_release",
        "privacy.scale_release.micro_batches=5", "privacy.corpus_budget=0.5",
    )[1:])  # fmt: skip
    assert "(no other run) would have ε = " in said
    assert not (tmp_path / "run").exists()  # with a release in its ledger it would be kept


def test_a_budget_of_the_corpus_is_not_judged_by_an_epsilon_that_does_not_hold(tmp_path):
    noise, budget = "privacy.noise_multiplier=2", "privacy.corpus_budget=1000"
    private = [noise, "training.epochs=1", "data.vocabulary.source=train",
               "data.labels.source=train"]  # fmt: skip
    said = refused(*training(tmp_path / "run", *private, budget)[1:])
    assert "privacy.corpus_budget: epsilon is infinite whatever the noise" in said
    train(tmp_path / "run", *private, budget, "privacy.assume_public=[vocabulary]")
    train(tmp_path / "words", *private)
    said = refused(*training(tmp_path / "third", noise, budget)[1:])
    assert "words, in the same folder, has ε = ∞, because the vocabulary" in said
