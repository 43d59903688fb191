"""The contents of the files of a run, and of its record."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence, Tuple, Type, Union

from edp_mx.dp.accounting.decay import KINDS
from edp_mx.dp.accounting.lognumber import LogNumber
from edp_mx.dp.accounting.units import MECHANISMS
from edp_mx.errors import UserError
from edp_mx.runtime.limits import LEAST_DELTA, MOST_COUNTED
from edp_mx.runtime.settings import SettingError
from edp_mx.runtime.structured import HUGE, AsRead, refuse_outside, structure_file

if TYPE_CHECKING:
    from edp_mx.tasks.task import Metric, Task

Scores = Mapping[str, float]  # by the keys of a task's metrics
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)?")
_COUNT, _FROM_1, _FROM_0, _ABOVE_0 = (0, MOST_COUNTED), (1, MOST_COUNTED), (0, HUGE), (1e-300, HUGE)
# The settings that reports take out of a record: their type, and their limits or the choices.
_READ: Dict[str, Tuple[Any, Sequence[Any]]] = {
    "training.seed": (int, _COUNT),
    "training.epochs": (int, _FROM_1),
    "training.batch_size": (int, _FROM_1),
    "training.learning_rate": ((int, float), _ABOVE_0),
    "training.learning_rates.heads": ((int, float, type(None)), _ABOVE_0),
    "privacy.micro_batches_per_worker": (int, _FROM_1),
    "privacy.noise_multiplier": ((int, float, type(None)), _FROM_0),
    "privacy.max_grad_norm": ((int, float), _ABOVE_0),
    "privacy.decay.rate": ((int, float), _FROM_0),
    "privacy.decay.kind": (str, KINDS),
    **dict.fromkeys(("task", "privacy.adjacency", "privacy.sampler", "model.trained"), (str, ())),
}


@dataclass(frozen=True)
class StatedBound(AsRead):
    """An ε as a file states it: null beside its log10 where no double holds it, ∞ null twice."""

    epsilon: Optional[float]
    log10_epsilon: Optional[float]
    reason: Optional[str] = None
    conditions: Tuple[str, ...] = ()
    LIMITS = {"epsilon": _FROM_0}

    @property
    def number(self) -> LogNumber:
        """The ε itself."""
        return LogNumber.from_dict(vars(self))


@dataclass(frozen=True)
class LedgerEnd(AsRead):
    """The number of lines of a ledger, and the hash of the last."""

    lines: int
    sha256: str
    LIMITS = {"lines": _FROM_1}


@dataclass(frozen=True)
class Machine(AsRead):
    """The machine that a run was trained on; of older runs less is known."""

    processor: Optional[str] = None
    machine: Optional[str] = None
    cores: Optional[int] = None
    python: Optional[str] = None
    packages: Optional[Mapping[str, str]] = None
    blas: Optional[Mapping[str, Mapping[str, Optional[str]]]] = None  # kernels and so on
    LIMITS = {"cores": _COUNT}


@dataclass(frozen=True)
class Environment(Machine):
    """`environment.json`. The keyed fingerprints are those of the parts of the corpus."""

    num_workers: Optional[int] = None
    started: str = ""
    settings: Optional[str] = None
    frozen: Optional[str] = None
    fingerprints: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    LIMITS = {**Machine.LIMITS, "num_workers": _FROM_1}

    def __post_init__(self) -> None:
        super().__post_init__()
        for part, each in self.fingerprints.items():
            _refuse_unkeyed(f"fingerprints.{part}", each)


@dataclass(frozen=True)
class Results(AsRead):
    """`results.json`."""

    test: Scores
    baseline: Optional[Mapping[str, Any]] = None
    training_seconds: float = 0.0


@dataclass(frozen=True)
class Privacy(AsRead):
    """`privacy.json`, as far as anything is read from it; `Guarantee.to_dict` writes all of it."""

    mechanism: str
    unit: str
    delta: float
    num_examples: Optional[int]
    steps: int
    epochs: int
    as_published: StatedBound
    holds: StatedBound
    holds_if: StatedBound
    warnings: Tuple[str, ...]
    not_covered: Tuple[str, ...]
    declarations: Tuple[str, ...] = ()
    ledger_end: Optional[LedgerEnd] = None
    LIMITS = {"num_examples": _COUNT, "steps": _COUNT, "epochs": _COUNT}


@dataclass(frozen=True)
class SplitIds(AsRead):
    """`split.json`: the ids of the utterances of each part."""

    train: Tuple[str, ...]
    validation: Tuple[str, ...] = ()
    test: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Labels(AsRead):
    """How many intents (or labels of texts) and slots there are to tell apart."""

    intents: int
    slots: int
    LIMITS = {"intents": _COUNT, "slots": _COUNT}


@dataclass(frozen=True)
class VocabularyLists(AsRead):
    """`vocabulary.json`; the words or the pieces, and the labels."""

    words: Tuple[str, ...] = ()
    characters: Tuple[str, ...] = ()
    slots: Tuple[str, ...] = ()
    intents: Tuple[str, ...] = ()
    word_source: Optional[str] = None
    label_source: Optional[str] = None
    pieces: Optional[Tuple[str, ...]] = None
    template: Optional[str] = None

    @property
    def labels(self) -> Labels:
        """Their numbers."""
        slots = {tag.partition("-")[2] for tag in self.slots} - {""}
        return Labels(len(self.intents), len(slots))


@dataclass(frozen=True)
class Record(AsRead):
    """The record of a finished run, which has no path and no text.

    Attributes:
        hash: of its settings.
        test: the scores as shares of 1.
        validation: the scores of the epoch that the run ended with; None without a validation part.
        n: records of the training part, mostly utterances.
        corpus_files: a keyed hash of a corpus of one's own.
        settings: those that differ from their defaults, by dotted key, also old ones.
        by_epoch: columns, from `record.by_epoch`.
        labels: how many the model tells apart; None if unknown.
        written: the scores of texts that it wrote, or of answers above a threshold, with the
            settings by which it gave them.
        is_counted: whether its ε were counted from the ledger, and not read from a record.
    """

    name: str
    hash: str
    results_version: int
    date: str
    corpus: str
    family: str
    mechanism: str
    test: Scores
    validation: Optional[Scores]
    as_published: StatedBound
    holds: StatedBound
    holds_if: StatedBound
    delta: float
    n: int
    epochs: int
    steps: int
    seconds: float
    workers: int
    machine: Machine
    corpus_files: Optional[Mapping[str, str]]
    settings: Mapping[str, Any]
    ledger_end: Optional[LedgerEnd] = None
    by_epoch: Optional[Mapping[str, Tuple[Optional[float], ...]]] = None
    labels: Optional[Labels] = None
    written: Optional[Scores] = None
    is_counted: bool = field(default=False, compare=False)
    LIMITS = {
        **{"results_version": _COUNT, "n": _FROM_1, "epochs": _COUNT, "steps": _COUNT},
        **{"delta": (LEAST_DELTA, 1), "seconds": _FROM_0, "workers": _FROM_1},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _DAY.fullmatch(self.date):
            raise SettingError("date", f"is {self.date!r}, not a day such as 2026-01-02")
        if self.mechanism not in ("none", *MECHANISMS):
            raise SettingError("mechanism", f"is {self.mechanism!r}, which is none of ours")
        _refuse_settings(self.settings)
        for name, scores in (("test", self.test), ("validation", self.validation)):
            if scores is not None and (key := self.task.lacking(scores)):
                raise SettingError(name, f"lacks {key!r}")
        refuse_uneven("by_epoch", self.by_epoch or {})
        if self.by_epoch is not None and None in self.by_epoch.get("epoch", (None,)):
            raise SettingError("by_epoch.epoch", "is not a list of numbers")
        if self.corpus_files is not None:
            _refuse_unkeyed("corpus_files", self.corpus_files)

    @property
    def task(self) -> Task:
        from edp_mx.tasks.registry import task_of  # here, since few files have scores

        return task_of(self.settings)


KINDS_OF_FILES: Mapping[str, Type[AsRead]] = {
    "results": Results,
    "privacy": Privacy,
    "environment": Environment,
    "split": SplitIds,
    "vocabulary": VocabularyLists,
    "record": Record,
}
WithBounds = Union[Record, Privacy]


def check_epoch(row: Any, place: str, metrics: Sequence[Metric]) -> Dict[str, Any]:
    """Return a line of `metrics.jsonl`: the numbers of an epoch."""
    structure_file(row, Dict[str, Optional[float]], place)
    for key in ("epoch", "seconds", *(metric.key for metric in metrics)):
        if row.get(key) is None:
            raise UserError(f"{place} has no {key}; it was cut or changed")
    return row


def _refuse_unkeyed(key: str, recorded: Mapping[str, str]) -> None:
    if not {"key", "digest"} <= set(recorded):
        raise SettingError(key, "lacks 'key' or 'digest'")


def _refuse_settings(settings: Mapping[str, Any]) -> None:
    for key, (kind, limits) in _READ.items():
        if key not in settings:
            continue
        value = settings[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise SettingError(f"settings.{key}", f"is {value!r}, which is of another type")
        if kind is not str:
            refuse_outside(f"settings.{key}", value, (limits[0], limits[1]))
        elif limits and value not in limits:
            raise SettingError(f"settings.{key}", f"is {value!r}, not one of {', '.join(limits)}")


def refuse_uneven(name: str, columns: Mapping[str, Sequence[Any]]) -> None:
    """Refuse columns of different lengths."""
    if len(set(map(len, columns.values()))) > 1:
        raise SettingError(name, "has columns that differ in length")
