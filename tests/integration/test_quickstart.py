"""The README's first command, with two workers and with eight."""

import os
import subprocess

import pytest
from support.commands import ROOT, read


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("num_workers", [2, 8])
def test_quickstart(tmp_path, num_workers):
    result = subprocess.run(
        [ROOT / "launch" / "quickstart.sh"], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "NP": str(num_workers)})  # fmt: skip
    assert result.returncode == 0, result.stderr
    (run,) = (tmp_path / "runs").iterdir()
    results = {mechanism: read(run / mechanism, "results")["test"]
               for mechanism in ("sgd", "edp_exponential", "dp_sgd")}  # fmt: skip
    privacy = read(run / "edp_exponential", "privacy")
    assert privacy["num_workers"] == num_workers
    assert privacy["holds"]["epsilon"] > 0 and "reason" not in privacy["holds"]
    assert results["sgd"]["ser"] < 0.2  # it learned: saying nothing right costs about 1
    assert results["edp_exponential"]["ser"] < 0.5
    assert results["dp_sgd"]["ser"] < 0.4  # always the most frequent intent, no slots: above 0.9
    assert 7.9 < read(run / "dp_sgd", "privacy")["holds"]["epsilon"] <= 8  # and outright
    table = result.stdout[result.stdout.rindex("| run ") :]
    for mechanism, scores in results.items():
        row = next(line for line in table.splitlines() if line.startswith(f"| {mechanism} "))
        assert f"{100 * scores['ser']:.2f}" in row
    assert "call my parents at 0123\n  intent  " in result.stdout
