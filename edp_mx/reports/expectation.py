"""Expectations at an n and ε: scores with their sources, the settings, and the next command."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any, Dict, List, Sequence

from edp_mx.dp.accounting.samplers import SAMPLERS
from edp_mx.reports.calibration_report import CalibrationReport, rounded_up
from edp_mx.reports.summary import stated_note
from edp_mx.reports.table import command_lines
from edp_mx.runs.expected_scores import Expected
from edp_mx.runs.file_types import Record
from edp_mx.runs.measurements import SCORES, Measurement
from edp_mx.runs.recipe import Recipe
from edp_mx.runs.wanted import LIKE, OTHER, SAME, Wanted, labels_in_words
from edp_mx.runtime.console_text import count_of, lines_of
from edp_mx.runtime.structured import unstructure

_NAMES = {"ser": "SER", "intent_accuracy": "intents right", "slot_f1": "slot F1"}


@dataclass(frozen=True)
class Expectation:
    """The output of `edp-mx plan`."""

    wanted: Wanted
    expected: Sequence[Expected]
    recipe: Recipe
    calibration: CalibrationReport

    def lines(self) -> List[str]:
        return [
            f"DP-SGD with {count_of(self.wanted.n, 'utterance')} for training at ε = "
            f"{self.wanted.epsilon:g}, δ = {self.calibration.plan.delta:.3g},",
            "on the test part:",
            "",
            *say(self.expected, self.wanted),
            *(line for note in stated_note(self._records()) for line in lines_of(note)),
            "",
            *self._settings(),
            "",
            "next:",
            *command_lines(self.recipe.command(), indent=2),
            *lines_of(self._advice()),
        ]

    def to_dict(self) -> Dict[str, Any]:
        recipe, plan = self.recipe, self.calibration.plan
        return {
            "num_examples": recipe.num_examples,
            "target_epsilon": recipe.epsilon,
            "delta": plan.delta,
            "expected": [
                {
                    "corpus": each.corpus,
                    "start": each.start._asdict(),
                    "labels": each.labels and unstructure(each.labels),
                    "rank_of_start": each.rank,
                    **each.scores,
                    "records": [r.hash for point in each.points for r in point.records],
                    "remarks": list(each.remarks),
                }
                for each in self.expected
            ],
            "range": _ranges(self.expected),
            "notes": stated_note(self._records()),
            "caveat": _caveat(self.expected),
            "recipe": {
                "record": recipe.record.hash,
                "batch_size": recipe.batch_size,
                "epochs": plan.epochs,
                "steps_per_epoch": plan.steps_per_epoch,
                "noise_multiplier": plan.noise_multiplier,
                "command": recipe.command(),
            },
        }

    def _records(self) -> List[Record]:
        return [record for point in _points(self.expected) for record in point.records]

    def _settings(self) -> List[str]:
        recipe, plan = self.recipe, self.calibration.plan
        of_all = recipe.batch_size / recipe.num_examples
        trained = recipe.setting("model.trained") or "all"
        by_chance = SAMPLERS[recipe.setting("privacy.sampler")].by_chance
        drawn = "expected" if by_chance else "shuffled"
        return [
            f"settings of the nearest ({recipe.record.name}), counted anew for yours:",
            f"  batch of {recipe.batch_size:,} ({drawn}, {100 * of_all:.0f} % of the utterances), "
            f"{count_of(plan.epochs, 'epoch')} of {count_of(plan.steps_per_epoch, 'step')},",
            f"  rate {recipe.source.learning_rate:g}, clipping norm "
            f"{recipe.setting('privacy.max_grad_norm'):g}, trained: {trained}",
            f"  noise multiplier {rounded_up(plan.noise_multiplier)}, with which ε = "
            f"{self.calibration.holds.epsilon} holds:",
            *command_lines(recipe.calibration(), indent=4),
        ]

    def _advice(self) -> str:
        said = (
            f"mine.yaml describes your corpus and includes configs/model/"
            f"{self.recipe.source.family}.yaml (docs/own-corpus.md); its words and labels must be "
            "public for ε to hold."
        )
        if self.recipe.start is None and self.recipe.setting("model.start_from"):
            said += " START_FROM: a public encoder, or a run on public labels (docs/recipe.md)."
        return said


def say(expected: Sequence[Expected], wanted: Wanted) -> List[str]:
    """Return each corpus below the start that was trained from, and where its scores are from."""
    lines, expect = [], "Expect"
    if wanted.start and expected[0].rank == OTHER:
        lines = lines_of(f"Nothing near was measured for a {wanted.start.in_words()}. Others:")
        expect = "These have"
    for (rank, start), group in groupby(expected, key=lambda each: (each.rank, each.start)):
        yours = {SAME: ", yours", LIKE: ", of the sizes of yours"}.get(rank, "")
        lines += [f"{start.in_words()}{yours if wanted.start else ''}:"]
        for each in group:
            labels = f" ({labels_in_words(each.labels)})" if each.labels else ""
            lines += _indented(f"- {each.corpus}{labels}: {_scores(each)}", 2)
            for said in (*map(_record, each.points), *each.remarks):
                lines += _indented(said, 6)
    best = _ranges(expected)
    said = ", ".join(
        f"{_NAMES[name]} {100 * low:.0f}{f' to {100 * high:.0f}' * (high > low)} %"
        for name, (low, high) in best.items()
    )
    return [*lines, *lines_of(f"{expect} {said}. {_caveat(expected)}")]


def _indented(text: str, indent: int) -> List[str]:
    return lines_of(text, first=" " * indent, rest=" " * (indent + 2))


def _ranges(expected: Sequence[Expected]) -> Dict[str, List[float]]:
    """The least and the largest score over corpora, each with its best start of the nearest."""
    nearest = min(each.rank for each in expected)
    best: Dict[str, Expected] = {}
    for each in sorted(expected, key=lambda one: one.scores["ser"]):
        if each.rank == nearest:
            best.setdefault(each.corpus, each)
    scores = [_shown(each) for each in best.values()]
    found = {name: [one[name] for one in scores if name in one] for name in SCORES}
    return {name: [min(values), max(values)] for name, values in found.items() if values}


def _shown(each: Expected) -> Dict[str, float]:
    """The scores that say something: without slots, SER is the share of wrong intents."""
    has_slots = each.labels is None or each.labels.slots
    return each.scores if has_slots else {"intent_accuracy": each.scores["intent_accuracy"]}


def _scores(each: Expected) -> str:
    return ", ".join(f"{_NAMES[name]} {100 * v:.1f} %" for name, v in _shown(each).items())


def _caveat(expected: Sequence[Expected]) -> str:
    """Return a sentence on the origin of the numbers."""
    runs = {len(point.records) for point in _points(expected)}
    counts = f"{min(runs)} to {max(runs)}" if len(runs) > 1 else f"{min(runs)}"
    what = "single runs" if runs == {1} else f"{counts} runs each"
    return (
        f"They are {what}; yours may differ. Between "
        "measured runs, straight lines in log n and log ε. The settings were chosen by these "
        "corpora's own validation parts; a choice on yours costs privacy."
    )


def _points(expected: Sequence[Expected]) -> List[Measurement]:
    return list({p.records[0].hash: p for each in expected for p in each.points}.values())


def _record(point: Measurement) -> str:
    record = point.records[0]
    return f"{record.name}-{record.hash}: n = {point.n:,}, ε = {point.epsilon:g}"
