"""What a model is compared with: one that has learned nothing, and the run without privacy."""

from __future__ import annotations

from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple

from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError
from edp_mx.metrics.spans import spans_of
from edp_mx.runs.record import record_of, validation_cost
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.console_text import lines_of
from edp_mx.tasks.intent_slot.task import INTENT_SLOT
from edp_mx.tasks.task import Task

_NAMED = 5  # unknown labels that are named
WITHOUT_PRIVACY = (
    "Train for more epochs or with another training.learning_rate, and look at the loss in the "
    "run's curves.png."
)
WITH_PRIVACY = (
    "See whether it learns without privacy (configs/recipe/without_privacy.yaml). If it does, the "
    "noise hides what there is to learn: start from public {start}, take larger batches, more "
    "epochs or more utterances, or a larger epsilon{end}."
)
_WITH_LABELS = {
    "start": "utterances (docs/recipe.md)",
    "end": "; `edp-mx plan` says what to expect",
}
_TEXT_ALONE = {"start": "text (docs/generation.md)", "end": ""}  # of which no plan knows


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
    private = WITH_PRIVACY.format(**(_WITH_LABELS if task.has_labels else _TEXT_ALONE))
    next_step = {None: "", "none": f" {WITHOUT_PRIVACY}"}.get(mechanism, f" {private}")
    return lines_of(f"{shortfall.found}: {means}.{next_step}")


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
    return lines_of(
        f"{len(strange)} of {len(labels)} {what} that the model does not know "
        f"({', '.join(names[:_NAMED])}{more}), so that it cannot get them right."
    )


def without_privacy(run: RunDirectory) -> Optional[RunDirectory]:
    """Return a finished run without privacy in the same folder, whose three parts are the same.

    The parts are compared by their keyed fingerprints, so that utterances, labels and split are the
    same. Runs of the same model family come first; of several it is the one with the best score on
    the validation part. A run without privacy has none.
    """
    parts = run.fingerprints()
    if not parts or record_of(run).mechanism == "none":
        return None
    beside = (RunDirectory(path) for path in sorted(run.path.resolve().parent.iterdir()))
    family = record_of(run).family
    found: List[Tuple[bool, float, str, RunDirectory]] = []
    for other in (each for each in beside if each.path != run.path.resolve()):
        try:
            if other.has("results") and parts == other.fingerprints():
                record = record_of(other)
                if other.task is not run.task:
                    continue
                if record.mechanism == "none" and record.validation:
                    is_other = record.family != family
                    found.append((is_other, validation_cost(record), other.path.name, other))
        except (UserError, OSError, KeyError, TypeError):
            continue  # it is not a whole run of ours
    return min(found)[3] if found else None


def name_beside(run: RunDirectory, other: RunDirectory) -> str:
    """Return what a table calls the run without privacy beside a run."""
    family = record_of(other).family
    model = "" if family == record_of(run).family else f", another model: {family.upper()}"
    return f"without privacy ({other.path.name}{model})"


def describe_without_privacy(runs: Sequence[RunDirectory]) -> List[str]:
    """Return wrapped lines on the run without privacy beside each of some runs, each once.

    A run that is among `runs` is left out.
    """
    lines: List[str] = []
    shown = {run.path.resolve() for run in runs}
    for run in runs:
        other = without_privacy(run)
        if other is None or other.path in shown:
            continue
        shown.add(other.path)
        scores = other.task.sentence(other.scores())
        said = f"{name_beside(run, other)}: {scores}"
        lines += lines_of(said, rest="  ")
    return lines
