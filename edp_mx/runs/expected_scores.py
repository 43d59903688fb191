"""Expected scores with n utterances at ε, interpolated between measured runs of exact DP-SGD."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable, Dict, Iterable, List, Sequence, Tuple

from edp_mx.errors import UserError
from edp_mx.runs.measurements import SCORES, Measurement, chosen
from edp_mx.runs.records import value_of

REACH_N = 2.0  # the factor by which n may be outside the measured range of a corpus
REACH_EPSILON = 1.5  # the same for ε
_SAME = 1.1  # a factor that needs no remark

Point = Tuple[Measurement, float]  # and its weight


@dataclass(frozen=True)
class Expected:
    """The scores that the runs on one corpus suggest for other n and ε.

    Attributes:
        scores: interpolated, as shares of 1, by the names in `SCORES`.
        points: the measurements that they are read off.
        remarks: on which side of the measurements the wanted numbers lie, and what that means.
    """

    corpus: str
    family: str
    scores: Dict[str, float]
    points: Tuple[Measurement, ...]
    remarks: Tuple[str, ...]


def exact_runs(measured: Iterable[Measurement]) -> List[Measurement]:
    """Return the best settings of DP-SGD at each n and ε, for neighbours that lack an utterance."""
    return chosen(each for each in measured if _is_exact(each))


def _is_exact(measured: Measurement) -> bool:
    record = measured.records[0]
    return (
        measured.mechanism == "dp_sgd"
        and measured.epsilon > 0  # 0 has no logarithm
        and value_of(record, "privacy.adjacency") == "zero_out"
        and value_of(record, "privacy.layer_scales") != "dp_release"  # its cost is not repeated
    )


def expect(runs: Sequence[Measurement], *, num_examples: int, epsilon: float) -> List[Expected]:
    """Return the expectation of each corpus and family, the better family of a corpus first.

    It interpolates linearly in log n and log ε; outside of the measured range, as far as
    `REACH_N` and `REACH_EPSILON`, it takes the nearest measurement, with a remark.

    Args:
        runs: from `exact_runs`.
        num_examples: n, the wanted utterances in the training part.
        epsilon: the wanted ε, at δ = 1/(2n).

    Raises:
        UserError: n or ε is too far from all that was measured.
    """
    curves: Dict[Tuple[str, str], List[Measurement]] = {}
    for each in runs:
        curves.setdefault((each.corpus, each.family), []).append(each)
    found = []
    for (corpus, family), points in curves.items():
        weighted = _weighted(points, num_examples, epsilon)
        if weighted:
            scores = {
                name: math.fsum(weight * each.test[name].mean for each, weight in weighted)
                for name in SCORES
            }
            used = tuple(each for each, _ in weighted)
            remarks = tuple(_remarks(used, num_examples, epsilon))
            found.append(Expected(corpus, family, scores, used, remarks))
    if not found:
        raise UserError(_too_far(runs, num_examples, epsilon))
    return sorted(found, key=lambda each: (each.corpus, each.scores["ser"]))


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
    attributes: Tuple[Tuple[str, float, Callable[[Measurement], float]], ...] = (
        ("utterances", n, lambda each: each.n),
        ("ε", epsilon, lambda each: each.epsilon),
    )
    for name, wanted, of in attributes:
        low, high = min(map(of, points)), max(map(of, points))
        more, fewer = ("more", "fewer") if name == "utterances" else ("a larger", "a smaller")
        if wanted * _SAME < low:
            remarks.append(f"measured with {more} {name} ({low:,}): expect worse")
        elif wanted > high * _SAME:
            remarks.append(f"measured with {fewer} {name} ({high:,}): expect better")
    return remarks


def _too_far(runs: Sequence[Measurement], n: int, epsilon: float) -> str:
    """Say which of the two numbers is too far from all measurements."""
    sizes, epsilons = [each.n for each in runs], [each.epsilon for each in runs]
    if not _reaches(sizes, n, REACH_N):
        return (
            f"{n:,} utterances are too far from the {min(sizes):,} to {max(sizes):,} that were "
            f"measured: nothing is told beyond a factor of {REACH_N:g}; train, and keep the record"
        )
    if not _reaches(epsilons, epsilon, REACH_EPSILON):
        return (
            f"ε = {epsilon:g} is too far from the {min(epsilons):g} to {max(epsilons):g} that were "
            f"measured: nothing is told beyond a factor of {REACH_EPSILON:g}; train, and keep the "
            "record"
        )
    return (
        f"no corpus was measured near {n:,} utterances and ε = {epsilon:g} at once; train, and "
        "keep the record"
    )
