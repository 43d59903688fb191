"""One trial of a sweep: its settings, its outcome, and the attempts at it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Collection, List, Optional, Sequence, Type, TypeVar

from edp_mx.config import ExperimentConfig, load_config
from edp_mx.errors import UserError
from edp_mx.runs.file_types import Record
from edp_mx.runs.interrupted import has_begun, make_way
from edp_mx.runs.record import settings_hash, settings_of
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.config import Places, Values
from edp_mx.runtime.config_files import overrides_of
from edp_mx.runtime.files import write_text
from edp_mx.runtime.structured import NotOfKind
from edp_mx.tasks.intent_slot.task import INTENT_SLOT
from edp_mx.tasks.registry import TASKS
from edp_mx.tasks.task import Task

_PREFIX = re.compile(r"^\[\d+\]<std(?:out|err)>:")  # of horovodrun
# Of a command, or of its watchdog.
_SENTENCE = re.compile(r"^(?:edp-mx(?: \w+|, worker \d+)|experiments\.\w+): ")

T = TypeVar("T", bound="Trial")


@dataclass
class Trial:
    """A combination of settings.

    Attributes:
        values: its settings.
        base: the configuration files that they are laid over.
        hash: of all its settings.
        records: of all its runs, once it has been trained, here or before.
        error: why it failed, or was stopped.
        is_stopped: it was, because others did better at the same epoch.
    """

    values: Values
    base: Sequence[Path]
    hash: str = ""
    config: Optional[ExperimentConfig] = None
    records: List[Record] = field(default_factory=list)
    error: Optional[str] = None
    is_stopped: bool = False

    @classmethod
    def of(
        cls: Type[T],
        values: Values,
        base: Sequence[Path],
        *,
        workers: int,
        places: Optional[Places] = None,
    ) -> T:
        """Return a trial, which has failed if its settings are refused.

        Args:
            places: where the values stand, for the refusal; else they are those of `--set`.
        """
        trial = cls(values, base)
        try:
            trial.config = load_config(list(base), overrides_of(values))
            trial.hash = settings_hash(settings_of(trial.config), workers)
        except UserError as error:
            refused = error.__cause__  # it knows the key
            key = ".".join(refused.place) if isinstance(refused, NotOfKind) else ""
            place = (places or {}).get(key)
            trial.error = f"{place}: {refused}" if place else str(error)
        return trial

    @property
    def task(self) -> Task:
        """The task; the default where the settings are refused."""
        return TASKS[self.config.task] if self.config else INTENT_SLOT

    @property
    def score(self) -> Optional[float]:
        """The mean over its runs of the metric that chooses, on validation; None if untrained."""
        parts = [record.validation for record in self.records if record.validation]
        return fmean(part[self.task.metric.key] for part in parts) if parts else None

    @property
    def cost(self) -> float:
        """The score as a number of which less is better; ∞ if untrained."""
        return math.inf if self.score is None else self.task.metric.cost(self.score)

    def described(self) -> str:
        """Return its settings and its score, for the log."""
        values = ", ".join(f"{key}={value}" for key, value in self.values.items())
        if self.error:
            return f"{values}: {'stopped' if self.is_stopped else 'failed'}: {self.error}"
        if self.score is None:
            return f"{values}: no validation part"
        return f"{values}: validation {self.task.metric.name} {self.task.metric.said(self.score)}"

    @property
    def is_open(self) -> bool:
        """Whether it is still to be trained."""
        return not self.records and self.error is None


class Attempts:
    """The names of run directories in `attempts.txt`: one that is removed still counts in ε."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "attempts.txt"

    def names(self) -> List[str]:
        """Return each name once, the oldest first."""
        if not self._path.exists():
            return []
        return list(dict.fromkeys(self._path.read_text("utf-8").split()))

    def note(self, run: RunDirectory) -> None:
        """Note an attempt, before it begins."""
        self._write([*self.names(), run.path.name])

    def forget(self, run: RunDirectory) -> None:
        """Forget an attempt that has ended before it had begun."""
        self._write([name for name in self.names() if name != run.path.name])

    def _write(self, names: List[str]) -> None:
        write_text(self._path, "".join(f"{name}\n" for name in names))


def folder_of(trial: Trial, folder: Path, *, noted: Collection[str] = ()) -> RunDirectory:
    """Return the run directory of a trial: one that can be resumed, or a new one.

    What a start left behind that was killed before it had begun is removed.

    Args:
        noted: the names of earlier attempts; one that is gone keeps its name for itself.
    """
    for suffix in ("", *(f"-{i}" for i in range(2, 1000))):
        run = RunDirectory(folder / f"trial-{trial.hash}{suffix}")
        is_free = run.path.exists() or run.path.name not in noted
        make_way(run)
        is_open = run.config.is_file() and has_begun(run) and not run.has("results")
        if is_open or (is_free and not run.path.exists()):
            return run
    raise UserError(f"{folder} holds a thousand attempts at the trial {trial.hash}; remove some")


def last_sentence(log: Path) -> str:
    """Return the error that a command ended with: its own sentence, else its last line."""
    text = log.read_text("utf-8", errors="replace") if log.exists() else ""
    lines = [_PREFIX.sub("", line).strip() for line in text.splitlines()]
    said = list(filter(_SENTENCE.match, lines)) or list(filter(None, lines))
    return _SENTENCE.sub("", said[-1]) if said else "it said nothing"
