"""A soak says which quantity rises, and a short one of the real training is flat."""

import subprocess
import sys

import numpy as np
import pytest
import soak
from support.commands import ROOT


def samples(generator, **rises):
    """200 samples of 100 steps with noise; `rises`: what a quantity gains over the run."""
    return [
        {
            "step": 100.0 * i,
            "memory, MB": 300 + generator.normal() + rises.get("memory", 0) * i / 200,
            "file handles": 40 + int(rises.get("handles", 0) * i / 200),
            "threads": 12,
            "processor ms per step": generator.gamma(20, 0.5)
            * (1 + rises.get("time", 0) * i / 200),
        }
        for i in range(200)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rises", "name"),
    [({}, None), ({"memory": 15}, "memory, MB"), ({"handles": 4}, "file handles"),
     ({"time": 0.4}, "processor ms per step"), ({"memory": -30}, None)],
)  # fmt: skip
def test_what_rises_is_named(generator, rises, name):
    verdicts = soak.judge(samples(generator, **rises))
    assert [v.name for v in verdicts if not v.is_flat] == ([] if name is None else [name])
    page = soak.describe([samples(generator, **rises)], 20_000, minutes=3)
    assert page.count("RISES") == (name is not None) and "20,000 steps of 1 workers" in page


def test_the_interval_holds_the_true_change(generator):
    (memory, *_) = soak.judge(samples(generator, memory=10))
    assert memory.low < 8 < memory.high and memory.change == pytest.approx(8, abs=1)
    assert np.isclose(memory.median, 306, atol=1)


@pytest.mark.slow
def test_five_hundred_steps_of_two_workers_are_flat(tmp_path):
    command = [sys.executable, ROOT / "benchmarks" / "soak.py", "--steps", "500",
               "--out", tmp_path / "soak.md"]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, timeout=1500)
    page = (tmp_path / "soak.md").read_text()
    assert "500 steps of 2 workers" in page and page in ended.stdout + "\n", ended.stderr
    handles = [line for line in page.splitlines() if "file handles" in line or "threads" in line]
    assert len(handles) == 4 and all("flat" in line for line in handles), page
