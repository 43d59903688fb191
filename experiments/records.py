"""Where the records of the experiments are, beside those of finished runs."""

from __future__ import annotations

from pathlib import Path

GRIDS = Path("results/grids")  # of the trials of the paper's grids
TIMES = Path("results/table2.json")  # where `python -m experiments.table2` keeps times of steps
PERFORMANCE = Path("results/performance.json")  # of benchmarks/performance.py
