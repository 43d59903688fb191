"""SER against the ε that holds, of all methods of Table 1: from exact DP-SGD to no privacy."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

from matplotlib.figure import Figure

from edp_mx.reports.figures import BLUE, GREEN, VERMILION, build_panels, label_axes
from edp_mx.reports.paper import NAMES
from edp_mx.runs.measured import granted
from edp_mx.runs.tables.methods import METHODS
from edp_mx.runs.tables.query import Entry, Key

_MARKERS = {"none": "o", "linear": "^", "exponential": "s", None: "D"}
_GAP = 1.5  # decades from the largest ε to ∞


def plot_trade(entries: Mapping[Key, Entry]) -> Optional[Figure]:
    """Return SER against log10 of the ε that holds, a panel for each family and corpus.

    An ε that holds under conditions only is drawn as if they were granted; SGD, and what has no ε
    at all, stands at ∞. None where no method but SGD was measured.
    """
    places = sorted({key[:2] for key in entries if key[2] != "sgd"})
    if not places:
        return None
    points = {key: (_log10(entry), entry) for key, entry in entries.items() if key[:2] in places}
    largest = max([value for value, _ in points.values() if value is not None], default=0.0)
    figure, panels = build_panels(len(places), 3.8, 3.2, least_columns=1.6, below=0.9)
    drawn: Dict[str, Any] = {}
    for axes, place in zip(panels, places):
        for (family, corpus, method), (value, entry) in points.items():
            if (family, corpus) == place:
                x = largest + _GAP if value is None else value
                mean, low, high = (100 * each for each in entry.ser)
                colour, marker = _style(method)
                drawn[METHODS[method].name] = axes.errorbar(
                    x, mean, yerr=[[mean - low], [high - mean]], color=colour, marker=marker,
                    capsize=3, linestyle="none",
                )  # fmt: skip
        ticks, names = _ticks(largest)
        axes.set_xticks(ticks, names)
        axes.set_xlim(-0.5, largest + _GAP + 0.5)
        axes.set_ylim(0, 110 * max(e.ser.high for key, e in entries.items() if key[:2] == place))
        title = f"{NAMES.get(place[1], place[1].upper())}, {place[0].upper()}"
        label_axes(axes, "log₁₀ of the ε that holds", "test SER, %", title=title, legend=False)
    figure.legend([*drawn.values()], [*drawn], loc="outside lower center", ncols=2,
                  frameon=False, fontsize=8)  # fmt: skip
    return figure


def _log10(entry: Entry) -> Optional[float]:
    """The largest log10 ε over seeds, conditions granted; None for ∞."""
    values = [granted(record, "log10_epsilon") for record in entry.records]
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) else None


def _style(method: str) -> Tuple[str, str]:
    """Colour and marker: what is calibrated, what is published, what is exact."""
    chosen = METHODS[method]
    if method == "sgd":
        return "0.3", "*"
    colour = GREEN if chosen.decay is None else VERMILION if chosen.is_published else BLUE
    return colour, _MARKERS[chosen.decay]


def _ticks(largest: float) -> Tuple[List[float], List[str]]:
    step = max(1, round(largest / 5))
    whole = list(range(0, int(largest) + 1, step))
    return [*map(float, whole), largest + _GAP], [*map(str, whole), "∞"]
