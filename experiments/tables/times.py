"""Table 2: the methods whose steps are timed, the job that times them, and its record."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from edp_mx.runs.file_types import Machine
from edp_mx.runs.record import absent_files
from edp_mx.runs.sweep.processes import end, launched, start
from edp_mx.runs.sweep.trial import Trial, last_sentence
from edp_mx.runtime.console_text import count_of
from edp_mx.runtime.files import write_json
from edp_mx.runtime.json_text import read_json
from edp_mx.runtime.limits import MOST_COUNTED
from edp_mx.runtime.settings import SettingError
from edp_mx.runtime.structured import AsRead, structure, structure_file, unstructure
from edp_mx.runtime.threads import allowed_threads
from experiments.tables.cells import refuse_other_folder, settings_given
from experiments.tables.methods import CORPORA, FAMILIES, FREE

logger = logging.getLogger(f"edp_mx.{__name__}")  # whose lines are shown

WARM_UP = 1  # rounds that are not counted
_DP_SGD = {"privacy.mechanism": "dp_sgd", "privacy.noise_multiplier": 1.0}
# The file below configs/mechanism/ and the settings beside it; all have the same batches.
METHODS: Dict[str, Tuple[str, Dict[str, Any]]] = {
    "sgd": ("sgd.yaml", {}),
    "edp_sgd": ("edp_none.yaml", FREE),  # a step costs the same with any noise
    "dp_sgd_loop": ("sgd.yaml", {**_DP_SGD, "privacy.clipping": "loop"}),
    "dp_sgd_ghost": ("sgd.yaml", {**_DP_SGD, "privacy.clipping": "ghost"}),
}
# The cost of a step does not depend on the weights, and a checkpoint may be missing.
_WITHOUT_CHECKPOINT = {"bert": {"model.checkpoint": None, "data.vocabulary.source": "train"}}


@dataclass(frozen=True)
class TimesRow(AsRead):
    """A row as it was measured; the times of steps are by method, a number a round."""

    corpus: str
    family: str
    workers: int
    threads: int
    batch_size: int
    n: int
    measured_on: int
    steps_per_epoch: int
    steps: int
    seconds: Mapping[str, Tuple[float, ...]]
    processor_seconds: Mapping[str, Tuple[float, ...]]
    date: str
    machine: Machine
    note: str
    command: str
    hash: str
    LIMITS = {
        **dict.fromkeys(("workers", "threads", "batch_size", "n"), (1, MOST_COUNTED)),
        **dict.fromkeys(("measured_on", "steps_per_epoch", "steps"), (1, MOST_COUNTED)),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, times in (
            ("seconds", self.seconds),
            ("processor_seconds", self.processor_seconds),
        ):
            if not all(times.get(method) and min(times[method]) > 0 for method in METHODS):
                raise SettingError(name, f"lacks times above 0 of {', '.join(METHODS)}")
        if self.family not in FAMILIES or self.corpus not in CORPORA:
            raise SettingError("corpus", f"is {self.corpus} {self.family}, which has no times")


@dataclass(frozen=True)
class _Rows(AsRead):
    rows: Tuple[TimesRow, ...]


class TimesRequest(NamedTuple):
    """The request for a table of times.

    Attributes:
        configs: the folder of the shipped configurations.
        workers: numbers of Horovod workers, each of which clips one micro-batch.
        steps: that each method takes in a round; at most an epoch's.
        rounds: that are counted, at most.
        overrides: `key=value` texts, set for every method.
        note: kept with the new measurements, e.g. the other load of the machine.
        command: that asks for it.
    """

    configs: Path
    corpora: Sequence[str] = CORPORA
    families: Sequence[str] = FAMILIES
    workers: Sequence[int] = (1, 2, 8)
    steps: int = 4
    rounds: int = 5
    overrides: Sequence[str] = ()
    note: str = ""
    command: str = ""


class TimesCell(NamedTuple):
    """A row of the table: one job, in which the methods take turns."""

    corpus: str
    family: str
    workers: int
    trials: Dict[str, Trial]
    steps: int

    @property
    def name(self) -> str:
        return f"{self.corpus} {self.family}, {count_of(self.workers, 'worker')}"

    @property
    def hash(self) -> str:
        """Of all that it measures."""
        parts = [str(self.steps), *(trial.hash for trial in self.trials.values())]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]

    @property
    def error(self) -> Optional[str]:
        """Why it cannot be measured."""
        for trial in self.trials.values():
            if trial.config is None:
                return trial.error
            absent = absent_files(trial.config)
            if absent:
                return ", ".join(f"{key}: there is no {path}" for key, path in absent.items())
        return None

    def is_of(self, row: TimesRow) -> bool:
        """Return whether a row of the record is in its place, with any settings."""
        return all(
            getattr(row, key) == getattr(self, key) for key in ("corpus", "family", "workers")
        )


def times_cells(request: TimesRequest) -> List[TimesCell]:
    """Return the rows of a table: all with the first number of workers, then with the next."""
    refuse_other_folder(request.configs)
    given = settings_given(request.overrides)
    return [
        TimesCell(
            corpus,
            family,
            workers,
            {name: _trial(request, corpus, family, workers, name, given) for name in METHODS},
            request.steps,
        )
        for workers in request.workers
        for family in request.families
        for corpus in request.corpora
    ]


def _trial(
    request: TimesRequest,
    corpus: str,
    family: str,
    workers: int,
    method: str,
    given: Dict[str, Any],
) -> Trial:
    layer, values = METHODS[method]
    rounds = {"training.epochs": WARM_UP + request.rounds}  # each round begins an epoch
    files = [request.configs / f"{corpus}_{family}.yaml", request.configs / "mechanism" / layer]
    values = {**values, **_WITHOUT_CHECKPOINT.get(family, {}), **given, **rounds}
    return Trial.of(values, files, workers=workers)


class Times:
    """The rows that were measured, in a file that is whole or not there; without one, here alone.

    Attributes:
        rows: of this and of earlier calls.
        said: a sentence for each missing row that was asked for.
    """

    def __init__(self, path: Optional[Path]) -> None:
        self._path = path
        self.rows: List[TimesRow] = [] if path is None else read_times(path)
        self.said: List[str] = []

    def has(self, cell: TimesCell) -> bool:
        return any(cell.is_of(row) and row.hash == cell.hash for row in self.rows)

    def put(self, cell: TimesCell, row: Dict[str, Any]) -> None:
        """Put a row in the place of an older one."""
        self.rows = [each for each in self.rows if not cell.is_of(each)]
        self.rows.append(structure({**row, "hash": cell.hash}, TimesRow))
        self.rows.sort(key=_place)
        if self._path is not None:
            write_json(self._path, unstructure(self.rows))

    def measure(
        self, cells: Sequence[TimesCell], request: TimesRequest, *, budget: float, on_end: Any
    ) -> None:
        """Measure rows, each with its share of the seconds of the budget that are left."""
        ends = time.monotonic() + budget
        for number, cell in enumerate(cells):
            share = (ends - time.monotonic()) / (len(cells) - number)
            error: Optional[str] = "not measured: the budget was spent"
            if share > 0:
                logger.info("%s (%d of %d)", cell.name, number + 1, len(cells))
                error = cell.error or self._measure_one(cell, request, share)
            if error:
                self.said.append(f"{cell.name}: {error}")
                logger.error("%s", self.said[-1])
            on_end()

    def _measure_one(self, cell: TimesCell, request: TimesRequest, seconds: float) -> Optional[str]:
        """Run the job of a row; return its error, if any."""
        threads = min(allowed_threads(), (os.cpu_count() or 1) // cell.workers)
        with tempfile.TemporaryDirectory(prefix="table2-") as folder:
            out, log = Path(folder, "times.json"), Path(folder, "log")
            process = start(_command(cell, request, out, seconds), log, threads)
            try:
                code = process.wait()
            finally:
                end([process])
            if code or not out.exists():
                return last_sentence(log)
            self.put(cell, {**read_json(out), "note": request.note, "command": request.command})
        return None


def _place(row: TimesRow) -> Tuple[int, int, int]:
    return FAMILIES.index(row.family), CORPORA.index(row.corpus), row.workers


def _command(cell: TimesCell, request: TimesRequest, out: Path, seconds: float) -> List[str]:
    options: Dict[str, Any] = {
        "corpora": cell.corpus,
        "models": cell.family,
        "workers": cell.workers,
        "steps": request.steps,
        "rounds": request.rounds,
        "budget-seconds": seconds if math.isfinite(seconds) else None,
        "configs": request.configs.absolute(),
        "into": out,
    }
    words = [f"--{name}={value}" for name, value in options.items() if value is not None]
    given = ["--set", *request.overrides] if request.overrides else []
    return [*launched(["experiments.table2"], cell.workers), *words, *given]


def read_times(path: Path) -> List[TimesRow]:
    """Return the rows of a record of times; none where there is no file."""
    if not path.exists():
        return []
    rows = structure_file({"rows": read_json(path)}, _Rows, path).rows
    return list(rows)
