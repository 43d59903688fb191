"""Pictures of pages: the panels of figures as SVG, which take the page's colours and its width.

They are matplotlib's, since the same figure is also written as PNG, and a chart library in
JavaScript would lie in each page, where it could show no more of these few curves.
"""

from __future__ import annotations

import html
import io
import re
from typing import List, NamedTuple, Sequence

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "edp_mx"}  # text is text, ids are always alike
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_INK = re.compile("#000000|#4c4c4c")  # black, and dark grey ("0.3")
_LEFT_OUT = re.compile(r"<style.*?</style>|<metadata>.*?</metadata>|(?<=<g) id=\"[^\"]*\"", re.S)
_PADDING = 0.04  # inches


class Picture(NamedTuple):
    """Panels, side by side as far as the page is wide."""

    caption: str
    panels: Sequence[str]

    @classmethod
    def of(cls, caption: str, figure: Figure) -> Picture:
        """Cut a figure into its panels."""
        return cls(caption, panels_of(figure, caption))


def panels_of(figure: Figure, caption: str) -> List[str]:
    """Return each panel of a figure with one column, from above, and its legends, as SVG elements.

    Black and dark grey become the colour of the page's text.

    Args:
        caption: with it, and its own title, begins the text alternative of a panel.
    """
    figure.draw_without_rendering()  # settles where everything is
    figure.set_layout_engine("none")
    parts = [each for each in (*figure.axes, *figure.legends) if each.get_visible()]
    to_inches = figure.dpi_scale_trans.inverted()
    tight = [part.get_tightbbox() or part.get_window_extent() for part in parts]
    boxes = [box.transformed(to_inches).padded(_PADDING) for box in tight]
    found = []
    for part, box in zip(parts, boxes):
        for each in parts:
            each.set_visible(each is part)
        title, says = caption, "legend"
        if isinstance(part, Axes):  # all panels are as wide as the figure
            box = Bbox([[0, box.y0], [figure.get_figwidth(), box.y1]])
            title = ", ".join(filter(None, (caption, part.get_title())))
            says = f"{part.get_ylabel()} against {part.get_xlabel()}".strip()
        colon = " " if says.startswith("against") else ": "  # an axis without a name of its own
        found.append(_svg(figure, box, f"{title}{colon}{says}" if title else says))
    return found


def _svg(figure: Figure, box: Bbox, label: str) -> str:
    """A part of a figure, in inches, as an SVG element with a text alternative."""
    buffer = io.StringIO()
    with rc_context(_SETTINGS):
        figure.savefig(buffer, format="svg", bbox_inches=box, transparent=True,
                       metadata=_NO_METADATA)  # fmt: skip
    text = buffer.getvalue()
    text = _INK.sub("currentColor", _LEFT_OUT.sub("", text[text.index("<svg") :]))
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), text)
    return text.replace("<svg ", f'<svg role="img" aria-label="{html.escape(label)}" ', 1)
