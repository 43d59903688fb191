"""Tables of the scores of each label, and of the labels that are taken for each other."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from edp_mx.data.utterance import Utterance
from edp_mx.metrics.by_label import OfLabel, by_intent, by_slot, confusions
from edp_mx.reports.run_list import shortened
from edp_mx.reports.table import render_table

WIDEST, MOST = 36, 15  # of a name; confusions that are shown


def label_tables(
    references: Sequence[Utterance], hypotheses: Sequence[Utterance], *, label: str
) -> str:
    """Return the tables as text, with most errors first; `label` is what one is called."""
    found = label_scores(references, hypotheses)
    tables = [_table(label, found["labels"])]
    if found["slots"]:
        tables.append(_table("slot", found["slots"]))
    if found["confusions"]:
        rows = [[shortened(one, WIDEST), shortened(other, WIDEST), str(count)]
                for one, other, count in found["confusions"][:MOST]]  # fmt: skip
        tables.append(render_table((label, "found instead", "times"), rows))
    return "\n\n".join(tables)


def label_scores(
    references: Sequence[Utterance], hypotheses: Sequence[Utterance]
) -> Dict[str, List[Any]]:
    """Return the `OfLabel` of labels and of slots, and all confusions."""
    wanted, found = ([each.intent for each in side] for side in (references, hypotheses))
    tags = ([each.slots for each in side] for side in (references, hypotheses))
    return {
        "labels": by_intent(wanted, found),
        "slots": by_slot(*tags),
        "confusions": confusions(wanted, found),
    }


def label_scores_as_json(
    references: Sequence[Utterance], hypotheses: Sequence[Utterance]
) -> Dict[str, List[Any]]:
    found = label_scores(references, hypotheses)
    for key in ("labels", "slots"):
        found[key] = [{**of._asdict(), "f1": of.f1} for of in found[key]]
    return found


def _table(label: str, found: Sequence[OfLabel]) -> str:
    header = (label, "there", "found", "precision %", "recall %", "F1 %")
    rows = [
        [
            shortened(of.label, WIDEST),
            str(of.wanted),
            str(of.found),
            *(f"{100 * share:.1f}" for share in (of.precision, of.recall, of.f1)),
        ]
        for of in found
    ]
    return render_table(header, rows)
