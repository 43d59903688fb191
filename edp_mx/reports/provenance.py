"""Where numbers come from: the machines and versions of runs, and what no ε covers."""

from __future__ import annotations

from typing import List, Sequence

from edp_mx.dp.accounting.coverage import ALWAYS_OPEN, BROUGHT, FLOATING_POINT, SEVERAL_UTTERANCES
from edp_mx.runs.record import Record


def environments_of(records: Sequence[Record], what: str = "run") -> List[str]:
    """Return a line for each machine with its versions, and how many runs it made.

    Args:
        records: of runs, or others that say their `machine`.
        what: a record is of.
    """
    counts: dict = {}
    for record in records:
        counts[_environment(record)] = counts.get(_environment(record), 0) + 1
    return [f"{text}: {count} {what}{'s' * (count > 1)}" for text, count in counts.items()]


def _environment(record: Record) -> str:
    machine = record["machine"]
    packages, blas = machine.get("packages") or {}, machine.get("blas") or {}
    parts = [
        machine.get("processor") or machine.get("machine") or "an unknown machine",
        f"{machine['cores']} cores" if machine.get("cores") else "",
        f"Python {machine['python']}" if machine.get("python") else "",
        *(f"{name} {version}" for name, version in packages.items()),
        *(f"{name}'s products: {each['kernels']}" for name, each in blas.items()),
    ]
    return ", ".join(filter(None, parts))


def not_covered() -> List[str]:
    """Return what no ε of any run covers."""
    open_ = (SEVERAL_UTTERANCES, *ALWAYS_OPEN, BROUGHT, FLOATING_POINT)
    return [f"{text[0].upper()}{text[1:]}." for text in open_]
