"""What `train --check` foretells, with a budget and of a run to resume, and its quick form."""

import re
import shutil

import pytest
from support import commands
from support.commands import CONFIGS, QUICKSTART, ROOT, edp_mx, interrupted, read
from support.gaussian import gaussian_delta

from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.ledger import read_ledger
from edp_mx.dp.accounting.pld.interval import upper_epsilon_poisson_pld
from edp_mx.runs import check

SETTINGS = [*commands.TINY, "data.size=400", "privacy.sampler=poisson",
            "privacy.target_epsilon=null", "privacy.noise_multiplier=1"]  # fmt: skip
CONFIG = [QUICKSTART, CONFIGS / "mechanism" / "dp_sgd.yaml"]


def checked(*more, code=0, option="--check"):
    return edp_mx("train", *CONFIG, option, "--set", *SETTINGS, *more, code=code)


def epsilon_after(steps):
    """Of so many steps of these settings: n = 180, batches of 16."""
    drawn = Composition("zero_out", [Event("poisson", 1.0, steps, 16 / 180)])
    return upper_epsilon_poisson_pld(drawn, delta=0.5 / 180)


def interrupt(run, config, settings, *, after):
    """Train, and end it after so many steps."""
    interrupted("train", *config, "--run", run, "--set", *settings, after=after)


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Eleven steps an epoch; ended after 19 of them, when the ledger had the second epoch."""
    run = tmp_path_factory.mktemp("runs") / "run"
    interrupt(run, CONFIG, [*SETTINGS, "training.epochs=3"], after=19)
    return run


@pytest.fixture
def run(begun, tmp_path):
    return shutil.copytree(begun, tmp_path / "run")


def test_with_a_budget_it_says_what_the_budget_lets_it_spend():
    """60 epochs of 11 steps would be 8.22 for neighbours of which one is exchanged."""
    changed = ["privacy.adjacency=replace_one", "training.epochs=60"]
    assert "epsilon that holds    8.21" in checked(*changed).stdout
    said = checked(*changed, "privacy.max_epsilon=4").stdout
    assert "epsilon that holds    3.998" in said and "counted for 1 worker\n" in said


def test_a_check_has_no_result_to_print_as_json():
    said = edp_mx("train", *CONFIG, "--check", "--json", code=2).stderr
    assert "--json prints a training's result: leave it out with --check" in said


def test_a_task_that_does_not_fit_the_model_is_refused():
    for task in ("causal_lm", "masked_lm"):
        assert f"task: {task} needs a model" in checked(f"task={task}", code=2).stderr


def test_of_a_run_to_resume_it_counts_what_was_spent_besides(run, tmp_path):
    """22 steps are in the ledger, and the two last epochs are to come: 44, not 33."""
    true, planned = epsilon_after(44), epsilon_after(33)
    said = edp_mx("train", "--resume", run, "--check").stdout
    assert f"epsilon that holds    {true:.6g}" in said and f"{planned:.3g}" not in said
    assert "goes on after epoch 1 of 3 and repeats 11 steps of epoch 2" in said
    refused = edp_mx("train", "--resume", run, "--check", "--workers", 2, code=2).stderr
    assert "was begun with 1 worker, " in refused and refused.count("\n") == 1
    assert f"go on with `edp-mx train --resume {run}`, not with 2" in refused
    edp_mx("train", "--resume", run)
    assert read(run, "privacy")["holds"]["epsilon"] == pytest.approx(true, rel=1e-9)
    end = read_ledger(run / "privacy_ledger.jsonl").chain.end
    assert read(run, "privacy")["ledger_end"] == read(run, "record")["ledger_end"] == end


def test_of_a_run_to_resume_it_knows_the_scales_that_the_ledger_has(tmp_path):
    """Interrupted in its only epoch: two Gaussians, of sensitivity 2 max α and noise 10,000."""
    run, config = tmp_path / "run", [QUICKSTART, CONFIGS / "mechanism" / "edp_none.yaml"]
    more = [*commands.TINY, "data.size=400", "training.epochs=1", "privacy.noise_multiplier=1e4",
            "privacy.layer_scales=sqrt_dim", "privacy.layer_scales_unit=norm"]  # fmt: skip
    interrupt(run, config, more, after=3)
    said = edp_mx("train", "--resume", run, "--check").stdout
    epsilon = float(re.search(r"epsilon that holds +([\d.]+) \(rf_exact", said)[1])
    mu = 2**0.5 * 2 * max(layer["scale"] for layer in read(run, "layers")) / 1e4
    assert mu > 0.01 and gaussian_delta(epsilon, mu) == pytest.approx(5e-5, rel=1e-4)


def test_the_quick_form_reads_no_corpus_and_refuses_what_is_not_there(monkeypatch, run):
    for name in ("load_corpus", "plan_for", "vocabulary_for"):
        monkeypatch.setattr(check, name, None)
    large = ["data.size=1000000", "privacy.noise_multiplier=null", "privacy.target_epsilon=4"]
    assert "nothing was trained" in checked(*large, option="--check-files").stdout
    assert "nothing was trained" in edp_mx("train", "--resume", run, "--check-files").stdout
    for more, words in (
        (["data.path=/nowhere"], "do not exist: data.path (/nowhere)"),
        (["training.batch_size=0"], "training.batch_size"),
    ):
        assert words in checked(*more, code=2, option="--check-files").stderr
    ledger = run / "privacy_ledger.jsonl"
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:-2]))
    said = edp_mx("train", "--resume", run, "--check-files", code=2).stderr
    assert "is shorter than the checkpoint's" in said
    assert "--check-files" in (ROOT / "launch" / "workers.sh").read_text()


def test_a_resume_does_not_forget_what_was_released(run):
    """Without ledger, checkpoints and layers.json; the log and the environment are there."""
    for path in (run / "privacy_ledger.jsonl", run / "layers.json", *run.glob("checkpoint*")):
        path.unlink()
    said = edp_mx("train", "--resume", run, code=2).stderr
    assert "privacy_ledger.jsonl is missing, though environment.json is there" in said
    assert not (run / "privacy_ledger.jsonl").exists()


def test_a_run_without_privacy_has_no_ledger_that_could_be_missing(tmp_path):
    run = tmp_path / "run"
    interrupt(run, [QUICKSTART], [*commands.TINY, "data.size=400"], after=2)
    for option in ("--check", "--check-files"):
        assert "sound" in edp_mx("train", "--resume", run, option).stdout
