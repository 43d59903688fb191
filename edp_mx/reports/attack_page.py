"""Self-contained HTML page of an attack: a verdict in words, its success, the pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence

from edp_mx.attacks.directory import read_guesses
from edp_mx.attacks.settings_differences import describe_differences
from edp_mx.reports.attack_pictures import plot_histograms, plot_roc
from edp_mx.reports.panels import Picture
from edp_mx.reports.report_parts import Part, PartTable, as_html
from edp_mx.reports.run_head import head_of, verdict_of
from edp_mx.runs.attack_files import AttackOutcome, AttackResult, Estimate
from edp_mx.runs.attack_records import read_attack
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.console_text import count_of
from edp_mx.runtime.files import write_text

EXPLANATIONS = {
    "threshold": "Attacks that need nothing but the model: a threshold on one number per "
    "utterance.",
    "shadow": "The paper's attack (the structure of Shokri et al. 2017): a shadow model whose "
    "members are known provides the training data of a classifier of members.",
    "lira": "The likelihood ratio attack (Carlini et al. 2022): shadow models trained on random "
    "halves of the same utterances show which outputs to expect for each utterance with it and "
    "without it in the training data.",
}
SHADOWS = "The shadow models have {}. With the settings of the run the attack may be stronger."
SCORES = (
    "Each bin of a score holds a twentieth of all utterances. Where members and non-members lie in "
    "it alike, at 5 %, the score tells nothing."
)
HEADER = ("attack", "AUC %", "TPR % at FPR 1 %", "TPR % at FPR 0.1 %", "balanced accuracy %",
          "best in hindsight %")  # fmt: skip


def write_report(folder: Path) -> Path:
    """Draw the pictures of a finished attack, write `report.html` and return its path."""
    attack, guessed = read_attack(folder), read_guesses(folder)
    pictures = [
        Picture.of(
            "ROC, both axes logarithmic; the straight line is chance", plot_roc(guessed, folder)
        ),
        Picture.of("Scores of members and non-members", plot_histograms(guessed, folder)),
    ]
    write_page(
        folder,
        title=f"{attack.attack} attack on {attack.run}",
        verdict=verdict_of(attack.results[0]),
        success=Part(
            "Success",
            [EXPLANATIONS.get(attack.attack, "")],
            tables=[
                PartTable.of_texts("Each attack, with its interval", HEADER, attack_rows(attack))
            ],
            notes=_notes(attack),
        ),
        pictures=Part("Pictures", [SCORES], pictures),
        facts={
            **{f"scores: {key}": value for key, value in (attack.origin or {}).items()},
            **attack.facts,
        },
        attacks=[attack],
    )
    return folder / "report.html"


def write_page(
    folder: Path,
    *,
    title: str,
    verdict: str,
    success: Part,
    pictures: Part,
    facts: Mapping[str, Any],
    attacks: Optional[Sequence[AttackOutcome]] = None,
) -> None:
    """Write `report.html`: the three numbers of the attacked run, the findings, and the method.

    Args:
        attacks: that the head shows; None for all on the run.
        facts: name -> value; differences of settings are put into words.
    """
    said = {
        key: describe_differences(value) if isinstance(value, dict) else value
        for key, value in facts.items()
    }
    done = Part("How it was done", tables=[PartTable.of_facts("Facts", said.items())])
    run = RunDirectory(folder.parent)
    page = as_html(title, verdict, [success, pictures, done], head_of(run, attacks))
    write_text(folder / "report.html", page)


def attack_rows(attack: AttackOutcome) -> List[List[str]]:
    """Return a row per result, for `HEADER`."""
    return [
        [
            result.name,
            format_estimate(result.auc),
            *(format_estimate(tpr) for tpr in result.tpr_at_fpr.values()),
            *(
                "" if share is None else f"{100 * share:.1f}"
                for share in (result.balanced_accuracy, result.best_balanced_accuracy)
            ),
        ]
        for result in attack.results
    ]


def warnings_of(facts: Mapping[str, Any], about: str = SHADOWS) -> List[str]:
    """Return the sentence `about` if the models of an attack have other settings than the run."""
    unlike = {key: value for key, value in facts.items() if isinstance(value, dict) and value}
    return [about.format(f"{key}: {describe_differences(value)}") for key, value in unlike.items()]


def format_estimate(estimate: Estimate) -> str:
    """Return a rate and its interval in percent, e.g. "67.5 (66.1 to 68.9)"."""
    low, high = 100 * estimate.low, 100 * estimate.high
    return f"{100 * estimate.value:.1f} ({low:.1f} to {high:.1f})"


def say_judged(result: AttackResult) -> str:
    """Return how many members and non-members an attack judged."""
    others = count_of(result.non_members, "non-member")
    return f"{count_of(result.members, 'member')} and {others}"


def _notes(attack: AttackOutcome) -> List[str]:
    first = attack.results[0]
    notes = [
        f"{say_judged(first)}, each text once and on one side only. Intervals: "
        f"{100 * first.confidence:.0f} %, bootstrap over utterances; they do not cover the "
        "variation between trained models."
    ]
    if first.non_members < 10_000:
        others = count_of(first.non_members, "non-member")
        notes.append(
            f"With {others} the smallest false-positive rate above 0 is "
            f"{1 / first.non_members:.2g}; numbers at rates close to it rest on a few of them."
        )
    notes += [f"{result.name}: {result.says}." for result in attack.results]
    return [*warnings_of(attack.facts), *notes]
