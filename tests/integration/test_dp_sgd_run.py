"""DP-SGD by the command line: trained, accounted for, explained, and what it refuses."""

import json
import sys

import numpy as np
import pytest
from support import commands
from support.commands import CALIBRATED, NO_DECAY, edp_mx, from_a_shell, read, rows, weights

from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.ledger import read_ledger
from edp_mx.dp.accounting.pld.interval import upper_epsilon_poisson_pld

TINY = [*commands.TINY, *NO_DECAY, "data.size=200", "training.epochs=2",
        "privacy.mechanism=dp_sgd", "privacy.clipping=loop"]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with Poisson sampling between neighbours that lack one."""
    path = tmp_path_factory.mktemp("dp_sgd") / "run"
    edp_mx("train", *CALIBRATED, "--run", path, "--set", *TINY, "privacy.sampler=poisson",
           "privacy.adjacency=zero_out", "privacy.noise_multiplier=1.5")  # fmt: skip
    return path


def test_what_it_says_of_itself(run):
    privacy = read(run, "privacy")
    assert (privacy["mechanism"], privacy["clips"], privacy["kappa"]) == ("dp_sgd", "utterance", 1)
    assert privacy["effective_noise_multiplier"] == [1.5, 1.5]
    assert privacy["as_published"]["accountant"] == "paper_rs"
    ledger = read_ledger(run / "privacy_ledger.jsonl")
    steps = sum(entry.event.count for entry in ledger.entries)
    n = privacy["num_examples"]
    assert steps == 2 * round(n / 16) == privacy["steps"]
    composition = Composition("zero_out", [Event("poisson", 1.5, steps, 16 / n)])
    expected = upper_epsilon_poisson_pld(composition, delta=privacy["delta"])
    assert privacy["holds"]["epsilon"] == pytest.approx(expected, rel=1e-9)
    for row in rows(run):
        assert 0 < row["clipped_fraction"] <= 1 and row["non_finite_gradients"] == 0


def test_account_and_explain_read_it_back(run):
    account = json.loads(edp_mx("account", run, "--json").stdout)
    privacy = read(run, "privacy")
    assert account["holds"] == privacy["holds"] and account["ledger"]["differences"] == []
    page = " ".join(edp_mx("explain", run).stdout.split())
    assert "Each utterance's gradient is clipped to C by itself" in page
    assert "kappa = 1" in page and "clipped mean" not in page


def test_replaced_utterances_and_released_scales_are_composed_in_one_pair(tmp_path):
    """Everything relative to what ONE record adds: half of the change, for α as for the steps."""
    run = tmp_path / "run"
    edp_mx("train", *CALIBRATED, "--run", run, "--set", *TINY, "privacy.sampler=poisson",
           "privacy.adjacency=replace_one", "privacy.noise_multiplier=1.5",
           "training.epochs=1", "privacy.layer_scales=dp_release",
           "privacy.scale_release.micro_batches=5")  # fmt: skip
    scales, steps = (e.event for e in read_ledger(run / "privacy_ledger.jsonl").entries)
    assert (scales.effective_noise_multiplier, scales.sample_rate) == (20.0, 1.0)
    assert steps.effective_noise_multiplier == 3.0
    privacy = read(run, "privacy")
    assert privacy["kappa"] == 2 and privacy["effective_noise_multiplier"] == [1.5]
    assert privacy["holds"]["epsilon"] == pytest.approx(
        upper_epsilon_poisson_pld(Composition("replace_one", [scales, steps]),
                                  delta=privacy["delta"]), rel=1e-9)  # fmt: skip


@pytest.mark.slow
def test_two_workers_with_empty_draws_end_where_the_loop_ends(tmp_path):
    """The same run of two workers by each way to clip; noise and draws repeat, masks are off.

    Adam divides by the gradient's size: where that is all rounding, it may turn a step round.
    """
    for method in ("loop", "ghost"):
        from_a_shell(
            sys.executable, "-m", "edp_mx.runtime.launcher", "--workers", "2",
            sys.executable, "-m", "edp_mx", "train", *CALIBRATED,
            "--run", tmp_path / method,
            "--set", *TINY, "data.size=100", "training.epochs=1", "training.batch_size=4",
            "model.dropout=0", "privacy.insecure_fixed_seed=5", "privacy.sampler=poisson",
            "privacy.noise_multiplier=0.1", "privacy.max_grad_norm=0.5", "privacy.chunk_size=2",
            f"privacy.clipping={method}",
        )  # fmt: skip
    by_ghost = weights(tmp_path / "ghost")
    for name, expected in weights(tmp_path / "loop").items():
        difference = np.abs(by_ghost[name] - expected)
        assert np.median(difference) < 1e-5 and difference.max() < 1e-2, name
