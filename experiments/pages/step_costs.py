"""The cost of a step of each method, from `results/performance.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import List, Mapping, Optional, Tuple

from edp_mx.reports.report_parts import Part, PartTable
from edp_mx.reports.table import show_quartiles
from edp_mx.runtime.json_text import read_json
from edp_mx.runtime.settings import SettingError
from edp_mx.runtime.structured import AsRead, structure_file

COMMAND = ".venv/bin/python benchmarks/performance.py"
HEADER = ("kernels", "what is compared", "median (quartiles)", "rounds")


@dataclass(frozen=True)
class StepFigures(AsRead):
    """Ratios of each comparison, a number a round."""

    figures: Mapping[str, Tuple[float, ...]]
    machine: str

    def __post_init__(self) -> None:
        if not all(self.figures.values()):
            raise SettingError("figures", "has a comparison without numbers")


@dataclass(frozen=True)
class Column(AsRead):
    """What was measured with one kind of kernels, as far as it is read here."""

    step: Optional[StepFigures] = None


@dataclass(frozen=True)
class Performance(AsRead):
    """The output of `benchmarks/performance.py`, by the kind of kernels."""

    columns: Mapping[str, Column] = field(default_factory=dict)


def read_performance(path: Path) -> Performance:
    """Return the output of `benchmarks/performance.py`; nothing where there is no file."""
    return structure_file(read_json(path) if path.exists() else {}, Performance, path)


def step_costs(performance: Performance) -> List[Part]:
    """Return the part on step costs; none where they were not measured."""
    sections = {name: each.step for name, each in performance.columns.items() if each.step}
    rows = [
        [kernels, name, show_quartiles(values, 2), str(len(values))]
        for kernels, section in sections.items()
        for name, values in section.figures.items()
    ]
    if not rows:
        return []
    machines = "; ".join(f"{name}: {each.machine}" for name, each in sections.items())
    return [
        Part(
            "Step costs",
            [
                "A training step of each method against one of SGD, with the same batch, in turns: "
                "ratios of times, and of the peak memory, with the kernels of each kind of "
                f"processors. {machines}."
            ],
            tables=[PartTable.of_texts("Ratios to SGD", HEADER, rows)],
            commands=[f"{COMMAND} --kernels {kernels} --only step" for kernels in sections],
        )
    ]
