"""Comparison of a model with one that has learned nothing, and advice if it is no better."""

from __future__ import annotations

import textwrap
from typing import Any, Iterable, List, Mapping, Optional, Sequence

from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.metrics.spans import spans_of
from edp_mx.reports.table import WIDTH
from edp_mx.tasks.intent_slot.task import INTENT_SLOT
from edp_mx.tasks.task import Task

_NAMED = 5  # unknown labels that are named
WITHOUT_PRIVACY = (
    "Train for more epochs or with another training.learning_rate, and look at the loss in the "
    "run's curves.png."
)
WITH_PRIVACY = (
    "See whether it learns without privacy (configs/recipe/without_privacy.yaml). If it does, the "
    "noise hides what there is to learn: start from public utterances (docs/recipe.md), take "
    "larger batches, more epochs or more utterances, or a larger epsilon; `edp-mx plan` says what "
    "to expect."
)


def describe_baseline(baseline: Mapping[str, Any], task: Task = INTENT_SLOT) -> str:
    """Return the line on `results.json`'s baseline for the console.

    Example:
        >>> print(describe_baseline({"intent": "call", "ser": 0.75, "intent_accuracy": 0.5,
        ...                          "slot_f1": 0.0}))
        always "call" and no slots: SER 75.00 %, intent accuracy 50.00 %, slot F1 0.00 %
    """
    return f"{task.describe_constant(baseline)}: {task.sentence(baseline)}"


def verdict(
    scores: Mapping[str, Any],
    baseline: Mapping[str, Any],
    task: Task = INTENT_SLOT,
    *,
    mechanism: Optional[str],
) -> List[str]:
    """Return wrapped lines of warning if scores are no better than the baseline; else none.

    Args:
        scores: by the metrics of the task, as shares of 1.
        baseline: of the constant answer, on the same utterances.
        mechanism: that the run was trained with, to say what to do next; None if the utterances
            are not of the run's own corpus.
    """
    shortfall = task.shortfall(scores, baseline)
    if shortfall is None:
        return []
    means = shortfall.means if mechanism else "the model is of no use here"
    next_step = {None: "", "none": f" {WITHOUT_PRIVACY}"}.get(mechanism, f" {WITH_PRIVACY}")
    return _wrap(f"{shortfall.found}: {means}.{next_step}")


def unknown_labels(
    utterances: Iterable[Utterance], vocabulary: Vocabulary, task: Task = INTENT_SLOT
) -> List[str]:
    """Return wrapped lines on labels and slots that a model does not know, and so never answers."""
    known = {tag[2:] for tag in vocabulary.slots}
    intents = [utterance.intent for utterance in utterances]
    slots = [span.type for utterance in utterances for span in spans_of(utterance.slots)]
    return [
        *_unknown(f"utterances have {task.label}", intents, set(vocabulary.intents)),
        *_unknown("slots have a name", slots, known),
    ]


def _unknown(what: str, labels: Sequence[str], known: Iterable[str]) -> List[str]:
    strange = [label for label in labels if label not in known]
    if not strange:
        return []
    names = sorted(set(strange))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return _wrap(
        f"{len(strange)} of {len(labels)} {what} that the model does not know "
        f"({', '.join(names[:_NAMED])}{more}), so that it cannot get them right."
    )


def _wrap(text: str) -> List[str]:
    return textwrap.wrap(text, WIDTH, break_on_hyphens=False)
