"""The methods of Table 1 in pictures: a row of panels for each corpus and family."""

from __future__ import annotations

from itertools import product
from typing import Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from edp_mx.reports.figures import BLUE, GREEN, VERMILION, build_figure, build_panels, label_axes
from edp_mx.reports.panels import Picture, panels_of
from experiments.tables.methods import CORPORA, FAMILIES, METHODS
from experiments.tables.paper import name_of
from experiments.tables.query import Entry, Key

_PLACES = [*product(FAMILIES, CORPORA)]
_SHAPES = {"none": ("o", "-"), "linear": ("^", "--"), "exponential": ("s", ":"), None: ("D", "-.")}


class Style(NamedTuple):
    """The style of a method: its colour shows its promise, the rest its decay."""

    color: str
    marker: str
    linestyle: str


class Panel(NamedTuple):
    """The content of one panel of each row.

    Attributes:
        x, y: the names of the axes, with their units.
        has: whether a method has anything to draw.
        frame: sets the axes, once all methods are drawn.
    """

    x: str
    y: str
    has: Callable[[Entry], bool]
    draw: Callable[[Axes, Entry, Style], None]
    frame: Callable[[Axes], object]
    title: str = ""


def pictures_by_place(entries: Mapping[Key, Entry], panels: Sequence[Panel]) -> List[Picture]:
    """Return a picture with a legend per family and corpus, without panels that lack numbers.

    Empty where no method has anything to draw.
    """
    pictures = []
    for family, corpus in sorted({key[:2] for key in entries}, key=_place_in_table):
        here = {key[2]: entry for key, entry in entries.items() if key[:2] == (family, corpus)}
        shown = [panel for panel in panels if any(map(panel.has, here.values()))]
        if not shown:
            continue
        name = f"{name_of(corpus)}, {family.upper()}"
        drawn: Dict[str, Style] = {}
        figure, places = build_panels(len(shown), 3.0, 2.6, columns=1)
        for axes, panel in zip(places, shown):
            for method in filter(lambda each: panel.has(here[each]), here):
                panel.draw(axes, here[method], style_of(method))
                drawn[method] = style_of(method)
            panel.frame(axes)
            label_axes(axes, panel.x, panel.y, title=panel.title, legend=False)
        pictures.append(Picture(name, [*panels_of(figure, name), *_legend(drawn)]))
    return pictures


def style_of(method: str) -> Style:
    """Return the colour of the paper's noise, of less, of exact or of SGD, and a decay's shapes."""
    chosen = METHODS[method]
    if method == "sgd":
        return Style("0.3", "*", "-")
    colour = GREEN if chosen.decay is None else VERMILION if chosen.is_in_paper else BLUE
    return Style(colour, *_SHAPES[chosen.decay])


def _place_in_table(place: Tuple[str, str]) -> Tuple[int, str]:
    """Where Table 1 has a family and corpus; others come last."""
    return (_PLACES.index(place) if place in _PLACES else len(_PLACES), str(place))


def _legend(drawn: Mapping[str, Style]) -> List[str]:
    """The names of the methods, in the order of Table 1."""
    lines = [
        Line2D([], [], label=METHODS[name].name, **drawn[name]._asdict())
        for name in METHODS
        if name in drawn
    ]
    figure, (axes,) = build_figure(3.8, 0.25 * len(lines) + 0.2)
    axes.set_visible(False)
    figure.legend(handles=lines, loc="center", frameon=False, fontsize=9, handlelength=3.5)
    return panels_of(figure, "")
