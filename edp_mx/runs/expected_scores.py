"""Expected scores with n units at ε, interpolated between measured runs of exact DP-SGD."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from edp_mx.errors import UserError
from edp_mx.runs.file_types import Labels, Record
from edp_mx.runs.measurements import (
    SCORES,
    Measurement,
    chosen,
    epsilon_of,
    has_usual_epsilon,
    measurements,
)
from edp_mx.runs.records import value_of
from edp_mx.runs.wanted import StartKind, Wanted, are_near, labels_apart, labels_in_words
from edp_mx.tasks.task import LabellingTask

REACH_N = 2.0  # the factor by which n may be outside the measured range of a corpus
REACH_EPSILON = 1.5  # the same for ε
_SAME = 1.1  # a factor that needs no remark

Point = Tuple[Measurement, float]  # and its weight


@dataclass(frozen=True)
class Expected:
    """The scores that the runs on one corpus suggest for what is wanted.

    Attributes:
        labels: of the corpus; None where the records do not say.
        rank: of the start, from `Wanted.rank`.
        scores: interpolated, as shares of 1, by the names in `SCORES`, as far as there are any.
        points: the measurements that they are read off.
        remarks: on which side of the measurements the wanted numbers lie, and what that means.
    """

    corpus: str
    labels: Optional[Labels]
    start: StartKind
    rank: int
    scores: Dict[str, float]
    points: Tuple[Measurement, ...]
    remarks: Tuple[str, ...]


def exact_runs(records: Iterable[Record], start: Optional[StartKind] = None) -> List[Measurement]:
    """Return the best settings of DP-SGD at each n and ε, for neighbours that lack an utterance.

    Those from `start` itself compete with one another, those of other starts by family and sizes.
    """
    groups: Dict[StartKind, List[Record]] = defaultdict(list)
    for record in filter(_is_exact, records):
        groups[_kind_of(record, start)].append(_of_labels(record))
    kinds = sorted(groups)
    return [m for k in kinds for m in chosen(measurements(groups[k], is_shown=lambda _: True))]


def _kind_of(record: Record, start: Optional[StartKind]) -> StartKind:
    """The start of a run; all others that are like it have the same name."""
    kind = StartKind.of(record)
    is_other = kind.content and kind != start
    return kind._replace(content="another") if is_other else kind


def _is_exact(record: Record) -> bool:
    return (
        isinstance(record.task, LabellingTask)
        and record.mechanism == "dp_sgd"
        and has_usual_epsilon(record)
        and epsilon_of(record) > 0  # 0 has no logarithm
        and value_of(record, "privacy.adjacency") == "zero_out"
        and value_of(record, "privacy.layer_scales") != "dp_release"  # its cost is not repeated
    )


def _of_labels(record: Record) -> Record:
    """The record with scores of intents; without slots, SER is the share of wrong intents."""

    def told(scores: Mapping[str, float]) -> Dict[str, float]:
        right = scores.get("accuracy", scores.get("intent_accuracy", 0.0))
        return {**scores, "ser": 1 - right, "intent_accuracy": right}

    if record.task.has_slots:
        return record
    validation = record.validation and told(record.validation)
    return replace(record, test=told(record.test), validation=validation)


def expect(runs: Sequence[Measurement], wanted: Wanted) -> List[Expected]:
    """Return what each near corpus and start suggests, the nearest start and labels first.

    It interpolates linearly in log n and log ε; outside of the measured range, as far as
    `REACH_N` and `REACH_EPSILON`, it takes the nearest measurement, with a remark.

    Args:
        runs: from `exact_runs`, of the same start.

    Raises:
        UserError: labels, n or ε are too far from all that was measured.
    """
    curves: Dict[Tuple[str, StartKind], List[Measurement]] = defaultdict(list)
    near = _with_near_labels(runs, wanted.labels)
    for each in near:
        curves[each.corpus, _kind_of(each.records[0], wanted.start)].append(each)
    found = []
    for (corpus, start), points in curves.items():
        weighted = _weighted(points, wanted.n, wanted.epsilon)
        if weighted:
            scores = {
                name: math.fsum(weight * each.test[name].mean for each, weight in weighted)
                for name in SCORES
                if all(name in each.test for each, _ in weighted)
            }
            used = tuple(each for each, _ in weighted)
            remarks = tuple(_remarks(used, wanted.n, wanted.epsilon))
            labels, rank = used[0].records[0].labels, wanted.rank(start)
            found.append(Expected(corpus, labels, start, rank, scores, used, remarks))
    if not found:
        raise UserError(_too_far(near, wanted))
    return sorted(found, key=lambda each: (each.rank, each.start, _far(each, wanted)))


def _with_near_labels(
    runs: Sequence[Measurement], wanted: Optional[Labels]
) -> Sequence[Measurement]:
    """The runs on corpora with about as many labels."""
    if wanted is None:
        return runs
    counted = {each.corpus: labels for each in runs if (labels := each.records[0].labels)}
    near = {corpus for corpus, labels in counted.items() if are_near(wanted, labels)}
    if near:
        return [each for each in runs if each.corpus in near]
    closest = min(counted, key=lambda corpus: labels_apart(wanted, counted[corpus]), default=None)
    told = f"; the nearest is {closest} ({labels_in_words(counted[closest])})" if closest else ""
    raise UserError(
        f"no corpus with about as many labels ({labels_in_words(wanted)}) was measured{told}; "
        "train, and keep the record"
    )


def _far(each: Expected, wanted: Wanted) -> Tuple[float, str]:
    """The order of corpora: by labels, then by name."""
    ours, theirs = wanted.labels, each.labels
    return labels_apart(ours, theirs) if ours and theirs else 0.0, each.corpus


def nearest(runs: Sequence[Measurement], *, num_examples: int, epsilon: float) -> Measurement:
    """Return the run with the smallest distance in log n and log ε together."""

    def distance(each: Measurement) -> Tuple[float, float]:
        in_n, in_epsilon = math.log(each.n / num_examples), math.log(each.epsilon / epsilon)
        return abs(in_n) + abs(in_epsilon), each.validation

    return min(runs, key=distance)


def _weighted(points: Sequence[Measurement], n: int, epsilon: float) -> List[Point]:
    """Return at most four measurements around (n, ε) with weights; none if all are too far."""
    slices: Dict[float, List[Measurement]] = {}
    for each in points:
        slices.setdefault(each.n, []).append(each)
    slices = {
        size: of_size
        for size, of_size in slices.items()
        if _reaches([each.epsilon for each in of_size], epsilon, REACH_EPSILON)
    }
    if not slices or not _reaches(slices, n, REACH_N):
        return []
    weighted = []
    for size, share in _around(slices, n):
        by_epsilon = {each.epsilon: each for each in slices[size]}
        weighted += [(by_epsilon[e], share * part) for e, part in _around(by_epsilon, epsilon)]
    return weighted


def _reaches(values: Iterable[float], wanted: float, factor: float) -> bool:
    """Return whether a number is in the range of others, or outside by a factor at most."""
    values = list(values)
    return min(values) / factor <= wanted <= max(values) * factor


def _around(values: Iterable[float], wanted: float) -> List[Tuple[float, float]]:
    """Return the neighbours of a number with their weights on a logarithmic scale.

    Example:
        >>> _around([1, 100, 1000], 10)
        [(1, 0.5), (100, 0.5)]
        >>> _around([1, 100], 200)
        [(100, 1.0)]
    """
    values = sorted(values)
    low = max((value for value in values if value <= wanted), default=values[0])
    high = min((value for value in values if value >= wanted), default=values[-1])
    if low == high:
        return [(low, 1.0)]
    share = math.log(wanted / low) / math.log(high / low)
    return [(low, 1 - share), (high, share)]


def _remarks(points: Sequence[Measurement], n: int, epsilon: float) -> List[str]:
    """Say on which side of the measured range a wanted number is."""
    remarks = []
    for more, fewer, wanted, measured in (
        ("more utterances", "fewer utterances", n, [each.n for each in points]),
        ("a larger ε", "a smaller ε", epsilon, [each.epsilon for each in points]),
    ):
        low, high = min(measured), max(measured)
        if wanted * _SAME < low:
            remarks.append(f"measured with {more} ({low:,}): expect worse")
        elif wanted > high * _SAME:
            remarks.append(f"measured with {fewer} ({high:,}): expect better")
    return remarks


def _too_far(runs: Sequence[Measurement], wanted: Wanted) -> str:
    """Say which of the two numbers is too far from all measurements."""
    n, epsilon = wanted.n, wanted.epsilon
    sizes, epsilons = [each.n for each in runs], [each.epsilon for each in runs]
    if not _reaches(sizes, n, REACH_N):
        span = " to ".join(dict.fromkeys(f"{size:,}" for size in (min(sizes), max(sizes))))
        return (
            f"{n:,} {wanted.units} are too far from the {span} "
            f"utterances that were measured: nothing is told beyond a factor of {REACH_N:g}; "
            "train, and keep the record"
        )
    if not _reaches(epsilons, epsilon, REACH_EPSILON):
        return (
            f"ε = {epsilon:g} is too far from the {min(epsilons):g} to {max(epsilons):g} that were "
            f"measured: nothing is told beyond a factor of {REACH_EPSILON:g}; train, and keep the "
            "record"
        )
    return (
        f"no corpus was measured near {n:,} {wanted.units} and ε = {epsilon:g} at once; train, and "
        "keep the record"
    )
