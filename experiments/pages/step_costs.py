"""What a step of each method costs, from `results/performance.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List, Mapping

from edp_mx.reports.parts import Part, PartTable
from edp_mx.reports.table import show_quartiles
from edp_mx.runs.shapes import checked
from edp_mx.runtime.json_text import read_json

HEADER = ("what is compared", "median (quartiles)", "rounds")

_SHAPE = {"step": {"figures!": {"*": ["a number", 1]}, "machine!": "a text"}}


def read_performance(path: Path) -> Mapping[str, Any]:
    """Return what `benchmarks/performance.py` wrote; nothing where there is no file."""
    return checked(read_json(path), _SHAPE, path) if path.exists() else {}


def step_costs(performance: Mapping[str, Any]) -> List[Part]:
    """Return the part on step costs; none where they were not measured.

    Args:
        performance: what `benchmarks/performance.py` wrote.
    """
    section = performance.get("step")
    if section is None:
        return []
    rows = [
        [name, show_quartiles(values, 2), str(len(values))]
        for name, values in section["figures"].items()
    ]
    return [
        Part(
            "Step costs",
            [
                "A training step of each method against one of SGD, with the same batch, in turns: "
                f"ratios of times, and of the peak memory. On {section['machine']}."
            ],
            tables=[PartTable.of_texts("Ratios to SGD", HEADER, rows)],
            commands=[".venv/bin/python benchmarks/performance.py --only step"],
        )
    ]
