"""A2 through the command line: a run that learns by heart is found out, one with noise is not."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from edp_mx.accounting.ledger_guarantee import account_for

ROOT = Path(__file__).resolve().parents[2]
TINY = ["data.size=200", "data.embeddings.dimension=24", "model.hidden_size=32",
        "model.character_filters=4", "training.batch_size=16"]  # fmt: skip


def audit(run, *options, settings=(), code=0):
    """Runs the real command with one worker; what `audit.json` says."""
    command = [sys.executable, "-m", "edp_mx", "audit", "one-run",
               ROOT / "configs" / "audit" / "one_run.yaml", "--run", run,
               *options, "--set", *TINY, *settings]  # fmt: skip
    result = subprocess.run([str(part) for part in command], text=True, capture_output=True,
                            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
                            timeout=500)  # fmt: skip
    assert result.returncode == code, result.stderr
    return json.loads((run / "audit.json").read_text()) if code < 2 else result.stderr


@pytest.mark.parametrize(
    "settings",
    [(), ("privacy.sampler=poisson", "privacy.adjacency=zero_out")],
    ids=["replaced", "drawn and left out"],
)
def test_a_run_that_learns_by_heart_is_seen_through(tmp_path, settings):
    run = tmp_path / "run"
    found = audit(run, "--canaries", 200, settings=["training.epochs=25", *settings])
    assert found["epsilon_at_least"] > 1.5 and found["correct"] > 0.8 * found["guesses"]
    # no noise: nothing is claimed, so nothing is refuted
    assert found["refuted"] is False and found["claims"]["holds"]["epsilon"] is None
    with open(run / "canaries.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 200
    members = [float(row["score"]) for row in rows if row["is_member"] == "1"]
    others = [float(row["score"]) for row in rows if row["is_member"] == "0"]
    assert len(members) == found["members"]
    assert sum(members) / len(members) > sum(others) / len(others)
    with open(run / "scores.csv") as file:
        bins = list(csv.DictReader(file))
    assert sum(int(row["members"]) for row in bins) == found["members"]
    assert sum(int(row["non_members"]) for row in bins) == 200 - found["members"]
    assert (run / "scores.png").read_bytes()[:4] == b"\x89PNG"
    readme = (run / "README.md").read_text()
    for path in run.iterdir():
        name = "rank_<i>.log" if path.name.startswith("rank_") else path.name
        assert path.name == "README.md" or f"`{name}`" in readme, path.name


def test_strong_noise_shows_nothing_and_its_claim_stands(tmp_path):
    found = audit(
        tmp_path / "run",
        "--canaries", 200, "--confidence", 0.999,
        settings=["training.epochs=3", "privacy.mechanism=edp_sgd", "privacy.noise_multiplier=5"],
    )  # fmt: skip
    claim = found["claims"]["holds"]
    assert found["refuted"] is False and claim["epsilon"] < 3
    assert found["epsilon_at_least"] < 0.6 and found["epsilon_at_least"] <= claim["epsilon"]


def test_the_claim_of_poisson_steps_to_a_target(tmp_path):
    run = tmp_path / "run"
    found = audit(
        run, "--canaries", 40, "--confidence", 0.999,
        settings=["training.epochs=2", "privacy.mechanism=edp_sgd", "privacy.sampler=poisson",
                  "privacy.target_epsilon=3"],
    )  # fmt: skip
    claim = found["claims"]["holds"]
    assert 2.99 < claim["epsilon"] <= 3 and claim["accountant"] == "poisson_pld"
    assert found["refuted"] is False
    head, *lines = map(json.loads, (run / "privacy_ledger.jsonl").read_text().splitlines())
    n = head["facts"]["num_examples"]
    assert [line["what"] for line in lines] == ["epoch 0", "epoch 1"]
    assert all(line["sample_rate"] == 16 / n and line["count"] == round(n / 16) for line in lines)
    assert account_for(run / "privacy_ledger.jsonl").spent.holds_if.epsilon.value == (
        pytest.approx(claim["epsilon"], rel=1e-9)
    )


def test_the_claim_counts_released_scales_and_ends_with_the_budget(tmp_path):
    run = tmp_path / "run"
    found = audit(
        run, "--canaries", 40, "--confidence", 0.999,
        settings=["training.epochs=5", "privacy.mechanism=edp_sgd", "privacy.noise_multiplier=4",
                  "privacy.layer_scales=dp_release", "privacy.scale_release.micro_batches=4",
                  "privacy.scale_release.noise_multiplier=2", "privacy.max_epsilon=3.2"],
    )  # fmt: skip
    lines = (run / "privacy_ledger.jsonl").read_text().splitlines()[1:]
    assert [json.loads(line)["what"] for line in lines] == [
        "layer scales",
        "epoch 0",
        "epoch 1",
        "epoch 2",
    ]
    # one Gaussian of mu^2 = 1/4 + 3/16; a fourth epoch would cost 3.31
    claim = found["claims"]["holds"]
    assert claim["rho"] == pytest.approx((1 / 4 + 3 / 16) / 2, rel=1e-9)
    assert claim["epsilon"] <= 3.2 and found["refuted"] is False
