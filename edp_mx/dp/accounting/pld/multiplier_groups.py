"""Steps grouped by multiplier; between a few nodes where there are many multipliers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import DefaultDict, Dict, List, Sequence, Tuple

import numpy as np
from scipy.special import erfc

from edp_mx.dp.accounting.events import Event

MOST_MULTIPLIERS = 64  # distinct ones per sample rate; more are placed between as many nodes
MIXED = ("remove", "add", "swap")

Counts = Dict[float, int]  # steps by multiplier


@dataclass(frozen=True)
class Part:
    """Steps of one sample rate.

    Attributes:
        multipliers: that of all steps, or two between which those of the steps lie.
        steps: runs of equal steps: their number, and the share of each multiplier.
    """

    sample_rate: float
    multipliers: Tuple[float, ...]
    steps: Tuple[Tuple[int, Tuple[float, ...]], ...]


def parts_of(events: Sequence[Event], direction: str) -> Tuple[List[Part], List[Part], bool]:
    """Return parts that dominate the steps, parts that they dominate, and whether both are exact.

    The order of the steps does not matter. Where a rate has more than 64 multipliers, a step is
    dominated by a mixture of the two nodes around it (`_between`), or simply by the lower node; it
    dominates the upper one.
    """
    by_rate: DefaultDict[float, DefaultDict[float, int]] = defaultdict(lambda: defaultdict(int))
    for event in events:
        by_rate[event.sample_rate][event.effective_noise_multiplier] += event.count
    above: List[Part] = []
    below: List[Part] = []
    for rate, counts in by_rate.items():
        if len(counts) <= MOST_MULTIPLIERS:
            parts = _alone(rate, counts)
            above, below = above + parts, below + parts
            continue
        nodes = np.geomspace(min(counts), max(counts), MOST_MULTIPLIERS)  # (G,)
        nodes[0], nodes[-1] = min(counts), max(counts)
        below += _alone(rate, _moved(counts, nodes, np.searchsorted(nodes, list(counts))))
        if direction in MIXED:
            above += _between(rate, counts, nodes)
        else:
            lower = np.searchsorted(nodes, list(counts), side="right") - 1
            above += _alone(rate, _moved(counts, nodes, lower))
    return above, below, all(len(counts) <= MOST_MULTIPLIERS for counts in by_rate.values())


def _alone(rate: float, counts: Counts) -> List[Part]:
    """One part per multiplier."""
    return [Part(rate, (z,), ((count, (1.0,)),)) for z, count in counts.items()]


def _moved(counts: Counts, nodes: np.ndarray, places: np.ndarray) -> Counts:
    """The same steps, with their multipliers moved to nodes."""
    moved: DefaultDict[float, int] = defaultdict(int)
    for count, place in zip(counts.values(), places):
        moved[float(nodes[place])] += count
    return moved


def _between(rate: float, counts: Counts, nodes: np.ndarray) -> List[Part]:
    """Each step as a mixture of the nodes around it, which dominates even if the node is known.

    At every α the hockey-stick divergence of N(1, z²) and N(0, z²) is convex in its value at
    α = 1, u = erf(1/(z√8)): its derivative by u is √α e^(−z² ln²α / 2), which falls with z. Those
    of the sampled pairs (the same q) are that one at another α, times a constant, plus a constant:
    convex in u too. So the chord between two nodes lies above, by the second order of their
    distance.
    """
    parts = []
    multipliers = np.array(sorted(counts))
    places = np.clip(np.searchsorted(nodes, multipliers, side="right") - 1, 0, len(nodes) - 2)
    for place in np.unique(places):
        low, high = float(nodes[place]), float(nodes[place + 1])
        inside = multipliers[places == place]
        rest = erfc(1 / (np.array([low, high, *inside]) * np.sqrt(8)))  # 1 − u, rises with z
        span = rest[1] - rest[0]
        shares = (rest[1] - rest[2:]) / span if span > 0 else np.ones(len(inside))
        shares = np.clip(shares, 0.0, 1.0)
        steps = tuple((counts[z], (float(s), float(1 - s))) for z, s in zip(inside, shares))
        parts.append(Part(rate, (low, high), steps))
    return parts
