"""Provenance of numbers: the machines and versions of runs, and the limits of any ε."""

from __future__ import annotations

from collections import Counter
from typing import Iterable, List

from edp_mx.dp.accounting.coverage import ALWAYS_OPEN, BROUGHT, FLOATING_POINT, SEVERAL_UTTERANCES
from edp_mx.runs.file_types import Machine


def environments_of(machines: Iterable[Machine], what: str = "run") -> List[str]:
    """Return a line for each machine with its versions, and how many runs it made."""
    counts = Counter(map(_environment, machines))
    return [f"{text}: {count} {what}{'s' * (count > 1)}" for text, count in counts.items()]


def _environment(of: Machine) -> str:
    parts = [
        of.processor or of.machine or "an unknown machine",
        f"{of.cores} cores" if of.cores else "",
        f"Python {of.python}" if of.python else "",
        *(f"{name} {version}" for name, version in (of.packages or {}).items()),
        *(f"{name}'s products: {each.get('kernels')}" for name, each in (of.blas or {}).items()),
    ]
    return ", ".join(filter(None, parts))


def not_covered() -> List[str]:
    """Return the leaks that no ε of any run covers."""
    open_ = (SEVERAL_UTTERANCES, *ALWAYS_OPEN, BROUGHT, FLOATING_POINT)
    return [f"{text[0].upper()}{text[1:]}." for text in open_]
