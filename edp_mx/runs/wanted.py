"""A planned training, as far as measured runs can be compared with it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple, Optional, Tuple

from edp_mx.config import load_config
from edp_mx.models.checkpoints.config import read_config
from edp_mx.models.checkpoints.huggingface import CONFIG
from edp_mx.runs.file_types import Labels, Record
from edp_mx.runs.record import content_of
from edp_mx.runs.records import value_of
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.console_text import count_of

REACH_LABELS = 3.0  # the factor between the numbers of intents, or of slots, of near corpora
SAME, LIKE, OTHER = range(3)  # a start: the same, of its sizes, any other
_STARTS = ("model.start_from", "model.checkpoint", "data.embeddings.path")


def _sizes(family: str) -> Tuple[str, ...]:
    return () if family == "clc" else ("num_layers", "hidden_size")


class StartKind(NamedTuple):
    """A family and its start.

    Attributes:
        sizes: layers and width of a transformer; none of a CLC.
        content: `content_of` the run, checkpoint or word vectors; "" for random weights.
    """

    family: str
    sizes: Tuple[int, ...] = ()
    content: str = ""

    @classmethod
    def of(cls, record: Record) -> StartKind:
        """Return that of a run that was measured."""
        sizes = tuple(value_of(record, f"model.{key}") for key in _sizes(record.family))
        started = [record.settings[key] for key in _STARTS if record.settings.get(key)]
        return cls(record.family, sizes, started[0] if started else "")

    @classmethod
    def at(cls, folder: Path) -> StartKind:
        """Return that of a folder with a finished run, or with a BERT in Hugging Face's layout."""
        family: str = "bert"
        model: Any
        if (folder / CONFIG).is_file():
            model = read_config(folder / CONFIG).config
        else:
            model = load_config(RunDirectory.trained(folder).config).model
            family = model.family
        sizes = tuple(getattr(model, key) for key in _sizes(family))
        return cls(family, sizes, content_of(folder))

    def in_words(self) -> str:
        """Return family, sizes, and whether there is a start."""
        sizes = " of {} layers, {} wide,".format(*self.sizes) if self.sizes else ""
        return f"{self.family}{sizes} from {'a public start' if self.content else 'random weights'}"


def are_near(a: Labels, b: Labels) -> bool:
    """Return whether both numbers are within `REACH_LABELS`; 0 is near 0 alone."""
    pairs = ((a.intents, b.intents), (a.slots, b.slots))
    return all(max(pair) <= REACH_LABELS * min(pair) for pair in pairs)


def labels_apart(a: Labels, b: Labels) -> float:
    """Return the distance in the logarithms of both numbers."""
    pairs = ((a.intents, b.intents), (a.slots, b.slots))
    return sum(abs(math.log((1 + x) / (1 + y))) for x, y in pairs)


def labels_in_words(labels: Labels) -> str:
    slots = count_of(labels.slots, "slot") if labels.slots else "no slots"
    return f"{count_of(labels.intents, 'intent')} and {slots}"


class Wanted(NamedTuple):
    """What is planned: n units at ε = `epsilon` and δ = 1/(2n).

    Attributes:
        labels: None for any, as `start` is.
        units: what n counts.
    """

    n: int
    epsilon: float
    labels: Optional[Labels] = None
    start: Optional[StartKind] = None
    units: str = "utterances"

    def rank(self, start: StartKind) -> int:
        """Return SAME, LIKE (its family and sizes, both from something or not) or OTHER."""
        if start == self.start:
            return SAME
        ours, theirs = (
            each and (each.family, each.sizes, bool(each.content)) for each in (self.start, start)
        )
        return LIKE if ours == theirs else OTHER
