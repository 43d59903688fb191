"""Expectations at an n and ε: scores with their sources, the settings, and the next command."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any, Dict, List, Sequence

from edp_mx.data.config import PUBLIC_CORPORA
from edp_mx.data.synthetic import STANDINS
from edp_mx.dp.accounting.samplers import SAMPLERS
from edp_mx.reports.calibration_report import CalibrationReport, rounded_up
from edp_mx.reports.summary import stated_note
from edp_mx.reports.table import WIDTH, render_table
from edp_mx.runs.expected_scores import Expected
from edp_mx.runs.file_types import Record
from edp_mx.runs.measurements import SCORES, Measurement
from edp_mx.runs.recipe import Recipe

HEADER = ("corpus", "family", "SER %", "intents %", "F1 %", "read off n", "and ε")
_NAMES = {"ser": "SER", "intent_accuracy": "intents right", "slot_f1": "slot F1"}


@dataclass(frozen=True)
class Expectation:
    """The output of `edp-mx plan`."""

    expected: Sequence[Expected]
    recipe: Recipe
    calibration: CalibrationReport

    def lines(self) -> List[str]:
        """Return text lines."""
        recipe = self.recipe
        remarks = [f"- {e.corpus}, {e.family}: {'; '.join(e.remarks)}" for e in self.expected
                   if e.remarks]  # fmt: skip
        return [
            f"DP-SGD with {recipe.num_examples:,} utterances for training at ε = "
            f"{recipe.epsilon:g}, δ = {self.calibration.plan.delta:.3g}, on the test part:",
            "",
            render_table(HEADER, [_row(each) for each in self.expected]),
            "",
            *remarks,
            *say(self.expected, WIDTH),
            "",
            "read off these records:",
            *(f"  {_record(point)}" for point in _points(self.expected)),
            *(textwrap.fill(note, WIDTH) for note in stated_note(self._records())),
            "",
            *self._settings(),
            "",
            "next: " + recipe.command(),
            *textwrap.wrap(self._advice(), WIDTH),
        ]

    def to_dict(self) -> Dict[str, Any]:
        """Return strict JSON."""
        recipe, plan = self.recipe, self.calibration.plan
        return {
            "num_examples": recipe.num_examples,
            "target_epsilon": recipe.epsilon,
            "delta": plan.delta,
            "expected": [
                {
                    "corpus": each.corpus,
                    "family": each.family,
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
            f"{plan.epochs} epochs of {plan.steps_per_epoch} steps,",
            f"  rate {recipe.source.learning_rate:g}, clipping norm "
            f"{recipe.setting('privacy.max_grad_norm'):g}, trained: {trained}",
            f"  noise multiplier {rounded_up(plan.noise_multiplier)}, with which ε = "
            f"{self.calibration.holds.epsilon} holds:",
            f"    {recipe.calibration()}",
        ]

    def _advice(self) -> str:
        said = (
            f"mine.yaml describes your corpus and includes configs/model/"
            f"{self.recipe.source.family}.yaml (docs/own-corpus.md); its words and labels must be "
            "public for ε to hold."
        )
        if self.recipe.setting("model.start_from"):
            said += " START_FROM: a public encoder, or a run on public labels (docs/recipe.md)."
        return said


def say(expected: Sequence[Expected], width: int) -> List[str]:
    """Return the range of the scores and their origin, as lines of at most `width`."""
    said = [
        f"{_NAMES[name]} {100 * low:.0f}{f' to {100 * high:.0f}' * (high > low)} %"
        for name, (low, high) in _ranges(expected).items()
    ]
    families = len({each.family for each in expected}) > 1
    better = " (the better family of each)" if families else ""
    return [
        *textwrap.wrap(f"Expect, over the corpora, {', '.join(said)}{better}.", width),
        *textwrap.wrap(_caveat(expected), width),
    ]


def _ranges(expected: Sequence[Expected]) -> Dict[str, List[float]]:
    """The least and the largest score over corpora, of the better family of each."""
    better = {each.corpus: each for each in reversed(expected)}
    scores = [each.scores for each in better.values()]
    return {name: [f(one[name] for one in scores) for f in (min, max)] for name in SCORES}


def _caveat(expected: Sequence[Expected]) -> str:
    """Return a sentence on the origin of the numbers."""
    corpora = sorted({each.corpus for each in expected})
    is_public = set(corpora) <= {*PUBLIC_CORPORA, *STANDINS}
    runs = {len(point.records) for point in _points(expected)}
    counts = f"{min(runs)} to {max(runs)}" if len(runs) > 1 else f"{min(runs)}"
    what = "single runs" if runs == {1} else f"{counts} runs each"
    return (
        f"Measured on {', '.join(corpora)}{', public corpora' if is_public else ''}, {what}; "
        "yours may differ. Between measured runs, straight lines in log n and log ε. The "
        "settings were chosen by these corpora's own validation parts; a choice on yours costs "
        "privacy."
    )


def _points(expected: Sequence[Expected]) -> List[Measurement]:
    points = {p.condition: p for each in expected for p in each.points}
    return list(points.values())


def _row(each: Expected) -> List[str]:
    return [
        each.corpus,
        each.family,
        *(f"{100 * each.scores[name]:.1f}" for name in SCORES),
        " ".join(f"{n:,}" for n in sorted({point.n for point in each.points})),
        " ".join(f"{e:g}" for e in sorted({point.epsilon for point in each.points})),
    ]


def _record(point: Measurement) -> str:
    record = point.records[0]
    return (
        f"{record.name}-{record.hash}: n = {point.n:,}, ε = {point.epsilon:g}, SER "
        f"{100 * point.test['ser'].mean:.1f} %"
    )
