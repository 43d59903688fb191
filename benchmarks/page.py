"""results/performance.md, from what results/performance.json holds."""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence

from sections import Section

from edp_mx.errors import UserError
from edp_mx.reports.table import render_table

COLUMNS = ("figure", "bar", "median (quartiles)", "the bar")
BUDGET = 600.0  # seconds for all sections
HEAD = """# Performance

Made by `.venv/bin/python benchmarks/performance.py`; not to be edited. Only the ratios mean much on
a shared machine: what is compared takes its turns in one run, and a ratio is taken round by round.
Shown are medians, quartiles in brackets; a bar holds if the median is within it."""


def render(results: Mapping[str, Any], sections: Sequence[Section]) -> str:
    """The whole page.

    Args:
        results: what was measured, by section: `measured`, `printed`, `machine`, `seconds`.
        sections: all that there are; what was not measured is said.

    Raises:
        UserError: a section's figures are not what its bars read.
    """
    done = [section for section in sections if section.name in results]
    rows = [row for section in done for row in bar_rows(section, results[section.name])]
    taken = sum(results[section.name]["seconds"] for section in done)
    missed = sum(row[-1] == "missed" for row in rows)
    parts = [
        HEAD,
        f"{len(rows) - missed} of {len(rows)} bars hold, {missed} are missed. "
        f"{len(done)} of {len(sections)} sections were measured, in {taken:.0f} seconds "
        f"({'within' if taken <= BUDGET else 'beyond'} {BUDGET:.0f}).",
        render_table(COLUMNS, rows),
    ]
    for section in sections:
        parts += [f"## {section.title}", *_section(section, results.get(section.name))]
    return "\n\n".join(parts) + "\n"


def bar_rows(section: Section, result: Mapping[str, Any]) -> List[List[str]]:
    """A section's bars, and whether they hold.

    Raises:
        UserError: the figures are not what they read.
    """
    try:
        return [
            [
                bar.what,
                bar.show_limit(),
                bar.spread(result["measured"]).show(bar.digits),
                "holds" if bar.holds(result["measured"]) else "missed",
            ]
            for bar in section.bars
        ]
    except (KeyError, TypeError, IndexError, ZeroDivisionError) as error:
        raise UserError(
            f"the figures of the section {section.name} in results/performance.json cannot be "
            f"read ({error!r}): measure it again by --only {section.name}"
        ) from error


def _section(section: Section, result: Any) -> List[str]:
    """Command, machine, tables and bars of one section."""
    if result is None:
        why = f": {section.missing}" if section.missing else ""
        return [f"`{section.command}`", f"Not measured{why}."]
    machine = describe(result["machine"])
    parts = [f"`{section.command}` ({result['seconds']:.0f} s; {machine})", result["printed"]]
    if section.bars:
        parts.append(render_table(COLUMNS, bar_rows(section, result)))
    return parts + ([section.note] if section.note else [])


def describe(machine: Mapping[str, Any]) -> str:
    """E.g. "2 cores, Some CPU, Python 3.11.2, mxnet 1.9.1"."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return f"{machine['cores']} cores, {machine['processor']}, {versions}"
