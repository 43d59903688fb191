"""The numbers of the paper, from `paper.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import yaml

_FILE = yaml.safe_load(Path(__file__).with_name("paper.yaml").read_text(encoding="utf-8"))


class Change(NamedTuple):
    """The numbers of eDP-SGD with one decay in Table 1.

    Units: SER and AUC in %, relative to SGD.
    """

    ser: float
    auc: float
    log10_epsilon: float


class PaperRow(NamedTuple):
    """A row of Table 1: the SER and MIA-AUC of SGD in %, and the changes by decay."""

    ser: float
    auc: float
    changes: Dict[str, Change]


class Times(NamedTuple):
    """A row of Table 2: the time of an epoch of SGD, and the factor of each other method.

    Units: seconds; factors of 1.
    """

    sgd: float
    dp_sgd: float
    edp_sgd: float


def _row(numbers: Dict[str, Any]) -> PaperRow:
    ser, auc = numbers["sgd"]
    return PaperRow(ser, auc, {kind: Change(*numbers[kind]) for kind in DECAY_RATES})


_NAMES: Dict[str, str] = _FILE["names"]  # of the corpora, as the paper writes them
MODELS: Dict[str, str] = _FILE["models"]  # the paper's trainings
PAPERS_CORPORA: Dict[str, str] = _FILE["corpora"]  # and its hardware, beside ours
DECAY_RATES: Dict[str, List[float]] = _FILE["decay_rates"]  # the τ that were searched
TABLE_1: Dict[str, Dict[str, PaperRow]] = {
    family: {corpus: _row(numbers) for corpus, numbers in rows.items()}
    for family, rows in _FILE["table_1"].items()
}
TABLE_2: Dict[str, Dict[str, Times]] = {
    family: {corpus: Times(*numbers) for corpus, numbers in rows.items()}
    for family, rows in _FILE["table_2"].items()
}


def name_of(corpus: str) -> str:
    """Return a corpus' name as the paper writes it; of another corpus in capitals."""
    return _NAMES.get(corpus, corpus.upper())
