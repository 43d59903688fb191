"""The cost of a step of each method, from `results/performance.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import List, Mapping, Optional, Tuple

from edp_mx.reports.report_parts import Part, PartTable
from edp_mx.reports.table import show_quartiles
from edp_mx.runtime.json_text import read_json
from edp_mx.runtime.settings import SettingError
from edp_mx.runtime.structured import AsRead, structure_file

HEADER = ("what is compared", "median (quartiles)", "rounds")


@dataclass(frozen=True)
class StepFigures(AsRead):
    """Ratios of each comparison, a number a round."""

    figures: Mapping[str, Tuple[float, ...]]
    machine: str

    def __post_init__(self) -> None:
        if not all(self.figures.values()):
            raise SettingError("figures", "has a comparison without numbers")


@dataclass(frozen=True)
class Performance(AsRead):
    """The part of the output of `benchmarks/performance.py` that is read here."""

    step: Optional[StepFigures] = None


def read_performance(path: Path) -> Performance:
    """Return the output of `benchmarks/performance.py`; nothing where there is no file."""
    return structure_file(read_json(path) if path.exists() else {}, Performance, path)


def step_costs(performance: Performance) -> List[Part]:
    """Return the part on step costs; none where they were not measured.

    Args:
        performance: the output of `benchmarks/performance.py`.
    """
    section = performance.step
    if section is None:
        return []
    rows = [
        [name, show_quartiles(values, 2), str(len(values))]
        for name, values in section.figures.items()
    ]
    return [
        Part(
            "Step costs",
            [
                "A training step of each method against one of SGD, with the same batch, in turns: "
                f"ratios of times, and of the peak memory. On {section.machine}."
            ],
            tables=[PartTable.of_texts("Ratios to SGD", HEADER, rows)],
            commands=[".venv/bin/python benchmarks/performance.py --only step"],
        )
    ]
