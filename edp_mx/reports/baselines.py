"""Whether a model is better than one that has learned nothing, and what to do if it is not."""

from __future__ import annotations

import textwrap
from typing import Any, Iterable, List, Mapping, Optional, Sequence

from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.metrics.spans import spans_of
from edp_mx.reports.table import WIDTH

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


def describe_baseline(baseline: Mapping[str, Any]) -> str:
    """Return the line on `results.json`'s baseline for the console.

    Example:
        >>> print(describe_baseline({"intent": "call", "ser": 0.75, "intent_accuracy": 0.5}))
        always "call" and no slots: SER 75.00 %, intent accuracy 50.00 %, slot F1 0 %
    """
    return (
        f'always "{baseline["intent"]}" and no slots: SER {100 * baseline["ser"]:.2f} %, '
        f"intent accuracy {100 * baseline['intent_accuracy']:.2f} %, slot F1 0 %"
    )


def verdict(
    scores: Mapping[str, Any], baseline: Mapping[str, Any], *, mechanism: Optional[str]
) -> List[str]:
    """Return wrapped lines that say that scores are no better than the baseline; none if they are.

    Args:
        scores: with `ser` and `intent_accuracy`, ratios.
        baseline: from `metrics.baseline`, of the same utterances.
        mechanism: that the run was trained with, to say what to do next; None if the utterances
            are not of the run's own corpus.
    """
    right, constant = (100 * each["intent_accuracy"] for each in (scores, baseline))
    ser, without_slots = (100 * each["ser"] for each in (scores, baseline))
    answer = f'always answering "{baseline["intent"]}"'
    if right <= constant < 100:
        than = "below" if right < constant else "the same as"
        found = f"Intent accuracy {right:.2f} % is {than} {answer} ({constant:.2f} %)"
        means = "nothing was learned" if mechanism else "the model is of no use here"
    elif ser > without_slots:
        found = f"SER {ser:.2f} % is above {answer} without any slot ({without_slots:.2f} %)"
        means = "it inserts more wrong slots than it gets right"
    else:
        return []
    next_step = {None: "", "none": f" {WITHOUT_PRIVACY}"}.get(mechanism, f" {WITH_PRIVACY}")
    return _wrap(f"{found}: {means}.{next_step}")


def unknown_labels(utterances: Iterable[Utterance], vocabulary: Vocabulary) -> List[str]:
    """Return wrapped lines on intents and slots that a model does not know, and so never answers.

    Args:
        utterances: annotated ones that are to be scored.
        vocabulary: that of the model.
    """
    known = {tag[2:] for tag in vocabulary.slots}
    intents = [utterance.intent for utterance in utterances]
    slots = [span.type for utterance in utterances for span in spans_of(utterance.slots)]
    return [
        *_unknown("utterances have an intent", intents, set(vocabulary.intents)),
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
