"""Pictures of records, each with a page that has the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Sequence

from edp_mx.errors import UserError
from edp_mx.reports.figures import save_figure
from edp_mx.reports.rate_map import plot_by_batch_and_rate
from edp_mx.reports.ser_plots import Plot, plot_by_epsilon, plot_by_utterances
from edp_mx.runs.file_types import Record
from edp_mx.runs.measurements import Measurement, chosen, measurements
from edp_mx.runtime.files import write_text

CHOSEN = (
    "Of several settings the one with the least SER on the validation part is shown; of several "
    "runs the mean, and from the least to the largest."
)


class Kind(NamedTuple):
    """A picture: its contents, its function, and the records that it needs."""

    name: str
    title: str
    explanation: str
    draw: Callable[[Sequence[Measurement]], Optional[Plot]]
    needs: str
    is_of_chosen: bool = True


KINDS = (
    Kind("ser_by_epsilon", "SER against ε", CHOSEN, plot_by_epsilon,
         "a run with a finite ε for an utterance, at most 100, at δ = 1/(2n)"),
    Kind("ser_by_utterances", "SER against the number of utterances", CHOSEN, plot_by_utterances,
         "a run at ε = 3 or 8 for an utterance, at δ = 1/(2n)"),
    Kind("batch_and_rate", "Batch size and learning rate",
         "The least SER on the validation part over all other settings that were tried with a "
         "batch size and a learning rate (rounded to one digit); how many, stands in the last "
         "column.", plot_by_batch_and_rate,
         "runs with two batch sizes at one rate and two rates at one size, at one n and ε",
         is_of_chosen=False),
)  # fmt: skip


def write_plots(records: Sequence[Record], folder: Path) -> List[str]:
    """Write the pictures that there are records for as NAME.png and NAME.md; refuse none at all.

    Returns:
        A line for each picture: where it is, or what it lacks.
    """
    measured = measurements(records)
    best = chosen(measured)
    said, is_any = [], False
    for kind in KINDS:
        plot = kind.draw(best if kind.is_of_chosen else measured)
        if plot is None:
            said.append(f"{kind.name} is not drawn: it needs {kind.needs}, and no record has that")
            continue
        is_any, picture = True, folder / f"{kind.name}.png"
        save_figure(plot.figure, picture)
        page = f"# {kind.title}\n\n![{kind.title}]({picture.name})\n\n{plot.table}\n\n"
        write_text(picture.with_suffix(".md"), f"{page}{kind.explanation}\n")
        said.append(f"{picture}, and its numbers in {picture.with_suffix('.md')}")
    if not is_any:
        raise UserError(
            f"none of the {len(records)} records found can be drawn: each picture needs runs that "
            f"can be compared, the first {KINDS[0].needs}"
        )
    return said
