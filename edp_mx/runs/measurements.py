"""Measurements: the scores over runs for each corpus, family, mechanism, n and ε."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Sequence, Tuple

from edp_mx.dp.accounting.clippings import CLIPPINGS
from edp_mx.runs.file_types import Record, StatedBound
from edp_mx.runs.records import value_of
from edp_mx.tasks.intent_slot.task import INTENT_SLOT

LARGEST_EPSILON = 100.0  # above it, a guarantee is weak
SCORES = tuple(metric.key for metric in INTENT_SLOT.metrics)
_POOLED_OVER = ("training.seed", "privacy.clipping")  # of which loop and ghost compute the same
_UNITS = (None, "micro_batch", "utterance")  # with them n counts utterances


class Spread(NamedTuple):
    """Mean, least and largest value over runs."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Measurement:
    """The runs that differ in nothing but their seed and the way of clipping, or not even in that.

    Attributes:
        n: utterances of the training part.
        epsilon: what holds, if its conditions are granted, to three digits; ∞ without privacy.
        batch_size: B, over all workers.
        learning_rate: of the heads where these alone are trained, else of the model.
        validation: the mean SER on the validation part, by which settings are chosen; ∞ where it
            was not recorded.
        test: the scores on the test part, as shares of 1, by the names in `SCORES`.
    """

    corpus: str
    family: str
    mechanism: str
    n: int
    epsilon: float
    batch_size: int
    learning_rate: float
    validation: float
    test: Dict[str, Spread]
    records: Tuple[Record, ...]

    @property
    def condition(self) -> Tuple[str, str, str, int, float]:
        """The conditions of a comparison: settings compete where all of them are the same."""
        return self.corpus, self.family, self.mechanism, self.n, self.epsilon


def is_comparable(record: Record) -> bool:
    """Return whether a record is of intents and slots, and its ε may be set beside others."""
    return record.task is INTENT_SLOT and has_usual_epsilon(record)


def has_usual_epsilon(record: Record) -> bool:
    """Return whether ε is one utterance's at δ = 1/(2n), and at most `LARGEST_EPSILON`.

    A run without privacy always has such an ε, which is ∞.
    """
    if record.mechanism == "none":
        return True
    is_usual = math.isclose(2 * record.n * record.delta, 1, rel_tol=0.01)
    is_utterance = value_of(record, "privacy.unit") in _UNITS
    return is_usual and is_utterance and epsilon_of(record) <= LARGEST_EPSILON


def came_to(record: Record) -> str:
    """Return the settings and the scores of a run, by which one is known that repeats another."""
    return json.dumps([record.settings, record.test, record.validation], sort_keys=True)


def measurements(
    records: Iterable[Record],
    *,
    is_shown: Callable[[Record], bool] = is_comparable,
    by_epsilon: bool = True,
) -> List[Measurement]:
    """Return the measurements, one for all runs of the same settings, in the order of conditions.

    A seed that was trained twice counts twice, unless both came to the very same scores: without
    noise a training may repeat itself, which does not show how far runs differ.

    Args:
        by_epsilon: keep runs apart whose ε differ, as that of a resumed run does.
    """
    groups: Dict[Tuple[Any, ...], Dict[str, Record]] = defaultdict(dict)
    for record in filter(is_shown, records):
        settings = {key: record.settings[key] for key in record.settings if key not in _POOLED_OVER}
        way = CLIPPINGS.get(record.settings.get("privacy.clipping", ""), CLIPPINGS["loop"])
        same = [record.results_version, record.workers, way.precision, settings]
        said = json.dumps(same, sort_keys=True)
        condition = _condition(record)
        key = (*(condition if by_epsilon else condition[:-1]), said)
        groups[key][came_to(record)] = record
    found = (_measurement(list(group.values())) for group in groups.values())
    return sorted(found, key=lambda each: (each.condition, each.validation))


def epsilon_of(record: Record) -> float:
    """Return the ε that holds, or would if its conditions were granted; ∞ beyond a double."""
    epsilon = granted(record).epsilon
    return math.inf if epsilon is None else float(f"{epsilon:.3g}")


def granted(record: Record) -> StatedBound:
    """Return the ε that holds or, where that is ∞, the ε that would under its conditions."""
    return record.holds_if if record.holds.number.is_infinite else record.holds


def chosen(measured: Iterable[Measurement]) -> List[Measurement]:
    """Return the best of each condition, by the SER on the validation part."""
    best: Dict[Tuple[Any, ...], Measurement] = {}
    for each in sorted(measured, key=lambda one: one.validation):
        best.setdefault(each.condition, each)
    return sorted(best.values(), key=lambda each: each.condition)


def _condition(record: Record) -> Tuple[Any, ...]:
    return record.corpus, record.family, record.mechanism, record.n, epsilon_of(record)


def _measurement(records: List[Record]) -> Measurement:
    """The mean over some runs of the same settings."""
    corpus, family, mechanism, n, epsilon = _condition(records[0])
    on_validation = [each.validation["ser"] for each in records if each.validation]
    return Measurement(
        corpus=corpus,
        family=family,
        mechanism=mechanism,
        n=n,
        epsilon=epsilon,
        batch_size=value_of(records[0], "training.batch_size"),
        learning_rate=_rate(records[0]),
        validation=fmean(on_validation) if on_validation else math.inf,
        test={
            name: spread_of([each.test[name] for each in records])
            for name in SCORES
            if name in records[0].test
        },
        records=tuple(records),
    )


def _rate(record: Record) -> float:
    of_heads = value_of(record, "training.learning_rates.heads")
    is_heads = value_of(record, "model.trained") == "heads"
    return of_heads if is_heads and of_heads else value_of(record, "training.learning_rate")


def spread_of(values: Sequence[float]) -> Spread:
    """Return the mean, the least and the largest of some values."""
    return Spread(fmean(values), min(values), max(values))
