"""The sections of results/performance.md, which sections.yaml lists."""

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence, Tuple

import yaml


@dataclass(frozen=True)
class Bar:
    """A limit for the median of one figure of a benchmark."""

    figure: str  # its name in what the benchmark records
    limit: float
    guard: float  # the limit with slack, for a test that a busy machine may not fail
    is_least: bool = False  # whether the figure is to be at least the limit, not at most
    digits: int = 2  # that are shown

    def holds(self, values: Sequence[float], *, limit: float) -> bool:
        """Return whether the median keeps to a limit: the bar's own, or its guard."""
        median = statistics.median(values)
        return median >= limit if self.is_least else median <= limit


@dataclass(frozen=True)
class Section:
    """One benchmark, as it is run for the page."""

    name: str
    title: str
    script: str  # the file in benchmarks/ and its options
    seconds: int  # the budget
    bars: Tuple[Bar, ...]
    note: str = ""
    workers: int = 1  # started by the launcher if more than one

    @property
    def command(self) -> str:
        """As one would type it in the project's root."""
        launcher = f"-m edp_mx.runtime.launcher --workers {self.workers} .venv/bin/python "
        return f".venv/bin/python {launcher if self.workers > 1 else ''}benchmarks/{self.script}"


SECTIONS = tuple(
    Section(**{**section, "bars": tuple(Bar(**bar) for bar in section["bars"])})
    for section in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
)
