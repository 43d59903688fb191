"""The model card of an exported model: README.md with the front matter that model hubs read."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import yaml

from edp_mx.data.byte_level_bpe import END
from edp_mx.dp.accounting.ledger_account import LedgerAccount
from edp_mx.reports.explanation import NO_MECHANISM_PAGE, explain_by_section
from edp_mx.reports.ledger_report import account_of, is_without_privacy
from edp_mx.reports.table import render_table
from edp_mx.runs.ancestors import origin_of
from edp_mx.runs.exported.huggingface import needs_modeling
from edp_mx.runs.trained_run import TrainedRun
from edp_mx.runtime.console_text import count_of, lines_of
from edp_mx.tasks.confidence import Confidence

CARD = "README.md"
_LIBRARIES = {"onnx": "onnx", "huggingface": "transformers"}
# Of the page that `edp-mx explain` prints.
_SAID = ("WHO IS PROTECTED", "WHAT CAME IN WITHOUT NOISE, AND WHO CALLS IT PUBLIC",
         "DIFFERENCES FROM THE PLAN", "WHAT NO EPSILON HERE COVERS")  # fmt: skip
_PIPELINES = (("slots", "token-classification"), ("intents", "text-classification"))
_CARD = """\
---
{front}---

# {name}

{intro}

## Use

{use}

## Scores

On the test part of its corpus, {corpus}, beside the best constant answer:

{scores}

## Privacy

{privacy}

## Limits

{limits}
"""
_SCRIPT = """\
`python {script}.py "an utterance"` needs {needed}, and neither MXNet nor edp_mx.
From Python, in this folder:

```python
from {script} import Model
print(*Model().answers(["an utterance"]))
```"""
_PIPELINE = """\
```python
from transformers import pipeline
print(pipeline("{task}", "PATH_OF_THIS_FOLDER")("{text}"))
```"""


def model_card(trained: TrainedRun, *, to: str) -> str:
    """Return the card: what the model is, its scores, its privacy and its limits.

    Raises:
        UserError: the run has not trained to its end, or its ledger cannot be believed.
    """
    path = trained.run.path
    account = None if is_without_privacy(path) else account_of(path)
    front = _front(trained, to, is_private=account is not None and not account.spent.holds.reasons)
    return _CARD.format(
        front=yaml.safe_dump(front, sort_keys=False, allow_unicode=True),
        name=_name(trained),
        intro=_intro(trained),
        use=_use(trained, to),
        corpus=trained.config.data.corpus,
        scores=_scores(trained),
        privacy=_privacy(account),
        limits="\n".join(_limits(trained)),
    )


def _use(trained: TrainedRun, to: str) -> str:
    """Return how the model is asked."""
    has_pieces = trained.vocabulary.tokenizer is not None
    if to == "onnx":
        needed = f"numpy{', tokenizers' * has_pieces} and onnxruntime"
        return _SCRIPT.format(script="answer", needed=needed)
    if needs_modeling(trained):
        needed = "numpy, tokenizers, torch and transformers"
        return _SCRIPT.format(script="modeling", needed=needed)
    task = _pipeline(trained)
    texts = {"fill-mask": "a [MASK] text", "text-generation": f"{END}a prompt{END}"}
    return _PIPELINE.format(task=task, text=texts.get(task, "an utterance"))


def _pipeline(trained: TrainedRun) -> str:
    """Return what model hubs call the task."""
    if trained.model.most_continued is not None:
        return "text-generation"
    return next((tag for head, tag in _PIPELINES if head in trained.model.heads), "fill-mask")


def _front(trained: TrainedRun, to: str, *, is_private: bool) -> Dict[str, Any]:
    """Return the front matter; `is_private` where the ε that holds is finite."""
    config, task = trained.config, trained.task
    private = ["differential-privacy", config.privacy.mechanism] if is_private else []
    licences = {source.rpartition(", ")[2].lower() for source in _sources(trained)}
    corpus, test = config.data.corpus, trained.run.scores()
    pipeline = _pipeline(trained)
    metrics = [{"type": m.key, "name": m.name, "value": test[m.key]} for m in task.metrics]
    result = {
        "task": {"type": pipeline},
        "dataset": {"type": corpus, "name": corpus, "split": "test"},
        "metrics": metrics,
    }
    return {
        "license": licences.pop() if len(licences) == 1 else "unknown",
        "library_name": _LIBRARIES[to],
        "pipeline_tag": pipeline,
        "tags": ["edp_mx", config.model.family, *private],
        "metrics": [metric.key for metric in task.metrics],
        "model-index": [{"name": _name(trained), "results": [result]}],
    }


def _name(trained: TrainedRun) -> str:
    return trained.run.path.resolve().name


def _intro(trained: TrainedRun) -> str:
    """Return what the model is and where it comes from, in words."""
    labels, config, sources = trained.vocabulary, trained.config, _sources(trained)
    known = []
    if "intents" in trained.model.heads:
        known.append(f"{count_of(len(labels.intents), 'label')} of an utterance")
    if "slots" in trained.model.heads:
        known.append(count_of(sum(tag[:2] == "B-" for tag in labels.slots), "slot"))
    how = "without a privacy mechanism"
    if config.privacy.mechanism != "none":
        how = f"with the privacy mechanism {config.privacy.mechanism}"
    text = (
        f"A model for the task {config.task}, trained by edp_mx {how} (model.family "
        f"{config.model.family}, model.trained {config.model.trained}). "
    )
    text += f"It knows {' and '.join(known)}. " if known else ""
    text += f"It starts from {'; '.join(sources)}. " if sources else ""
    text += "`origin.json` has all that was read for it, as keyed hashes."
    return "\n".join(lines_of(text))


def _sources(trained: TrainedRun) -> List[str]:
    """Return the public encoders that it descends from: repository, revision and licence."""
    return [origin.source for origin in origin_of(trained.run.path) if origin.source]


def _scores(trained: TrainedRun) -> str:
    """Return the table of scores, and of the constant answer's where there are any."""
    task, test = trained.task, trained.run.scores()
    baseline: Optional[Any] = trained.run.results().baseline
    rows = [["this model", *(metric.of(test) for metric in task.metrics)]]
    if baseline:
        constant = [metric.of(baseline) for metric in task.metrics]
        rows.append([task.describe_constant(baseline), *constant])
    return render_table(["", *(metric.heading for metric in task.metrics)], rows)


def _privacy(account: Optional[LedgerAccount]) -> str:
    """Return what `edp-mx explain` says, without its table."""
    if account is None:
        return "\n".join(NO_MECHANISM_PAGE.splitlines()[:2])
    sections = dict(explain_by_section(account))
    parts = ["\n".join(sections["IN SHORT"])]
    for title in _SAID:
        if title in sections:
            parts.append(f"### {title.capitalize()}\n\n" + "\n".join(sections[title]))
    return "\n\n".join(parts)


def _limits(trained: TrainedRun) -> List[str]:
    """Return what a user of the model must know, a sentence or two each."""
    data, vocabulary = trained.config.data, trained.vocabulary
    pieces = "" if vocabulary.tokenizer is None else f" or {data.max_pieces} word pieces"
    cut = {"blanks": "at blanks", "punctuation": "into words and punctuation marks"}[data.cut]
    found = [
        f"A text is cut {cut}; what is beyond {data.max_tokens} tokens{pieces} is not read.",
        *_answers(trained),
        "The scores are those of texts like the ones that it was trained on.",
    ]
    return [line for text in found for line in lines_of(text, first="- ", rest="  ")]


def _answers(trained: TrainedRun) -> Tuple[str, str]:
    """Return what the model says to what it does not understand, and what its answers tell."""
    answering: Any = trained.model.answering
    if not trained.task.has_labels:
        return (
            "What it writes is likely, and need not be true, also about what it never read of.",
            "Membership attacks read the probabilities of pieces: do not show them to strangers.",
        )
    told = "Membership attacks read confidences: do not show strangers more than two digits."
    if answering in (None, Confidence()):
        return (
            "It always answers with a label that it knows, also to what is about something else, "
            "and confidences are not calibrated."
        ), told
    return (
        f'It answers "{answering.out_of_scope}" below a confidence of {answering.threshold:g}, at '
        f"a temperature of {answering.temperature:g}. No ε covers these two numbers, which would "
        "tell of private utterances if they were chosen on some."
    ), told
