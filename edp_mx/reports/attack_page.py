"""Self-contained HTML page of an attack: its explanation, its success, the pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Mapping

from edp_mx.attacks.directory import read_attack, read_guesses
from edp_mx.attacks.settings_differences import describe_differences
from edp_mx.reports.attack_pictures import plot_histograms, plot_roc
from edp_mx.reports.pages import encoded, render_page
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
PICTURES = {
    "roc": "ROC, both axes logarithmic; the straight line is chance.",
    "scores": "The scores of members and of non-members.",
}
HEADER = (
    "attack",
    "AUC %",
    "TPR % at FPR 1 %",
    "TPR % at FPR 0.1 %",
    "balanced accuracy %",
    "best in hindsight %",
)


def write_report(folder: Path) -> Path:
    """Draw the pictures of a finished attack, write `report.html` and return its path."""
    attack, guessed = read_attack(folder), read_guesses(folder)
    plot_roc(guessed, folder)
    plot_histograms(guessed, folder)
    write_page(
        folder,
        title=f"{attack['attack']} attack on {attack['run']}",
        explanation=EXPLANATIONS.get(attack["attack"], ""),
        header=HEADER,
        rows=attack_rows(attack),
        notes=_notes(attack),
        pictures=PICTURES,
        facts={
            **{f"scores: {key}": value for key, value in attack["origin"].items()},
            **attack["facts"],
        },
    )
    return folder / "report.html"


def write_page(
    folder: Path, *, pictures: Mapping[str, str], facts: Mapping[str, Any], **content: Any
) -> None:
    """Write `report.html` with the pictures inside it.

    Args:
        pictures: name of a `.png` in the folder -> its caption.
        facts: name -> value; differences of settings are put into words.
        content: title, explanation, notes, and the table's header and rows.
    """
    data = {name: encoded((folder / f"{name}.png").read_bytes()) for name in pictures}
    html = render_page(
        "attack.html",
        pictures=[(caption, data[name]) for name, caption in pictures.items()],
        facts=[
            (key, describe_differences(value) if isinstance(value, dict) else value)
            for key, value in facts.items()
        ],
        **content,
    )
    write_text(folder / "report.html", html)


def attack_rows(attack: Dict[str, Any]) -> List[List[str]]:
    """Return a row per result, for `HEADER`."""
    return [
        [
            result["name"],
            format_estimate(result["auc"]),
            *(format_estimate(tpr) for tpr in result["tpr_at_fpr"].values()),
            *(
                "" if result[key] is None else f"{100 * result[key]:.1f}"
                for key in ("balanced_accuracy", "best_balanced_accuracy")
            ),
        ]
        for result in attack["results"]
    ]


def warnings_of(facts: Dict[str, Any], about: str = SHADOWS) -> List[str]:
    """Return the sentence `about` if the models of an attack have other settings than the run."""
    unlike = {key: value for key, value in facts.items() if isinstance(value, dict) and value}
    return [about.format(f"{key}: {describe_differences(value)}") for key, value in unlike.items()]


def format_estimate(estimate: Dict[str, float]) -> str:
    """Return a rate and its interval in percent, e.g. "67.5 (66.1 to 68.9)"."""
    low, high = 100 * estimate["low"], 100 * estimate["high"]
    return f"{100 * estimate['value']:.1f} ({low:.1f} to {high:.1f})"


def _notes(attack: Dict[str, Any]) -> List[str]:
    first = attack["results"][0]
    notes = [
        f"{first['members']} members and {first['non_members']} non-members, each text once and on "
        f"one side only. Intervals: {100 * first['confidence']:.0f} %, bootstrap over utterances; "
        "they do not cover the variation between trained models.",
    ]
    if first["non_members"] < 10_000:
        notes.append(
            f"With {first['non_members']} non-members the smallest false-positive rate above 0 is "
            f"{1 / first['non_members']:.2g}; numbers at rates close to it rest on a few of them."
        )
    notes += [f"{result['name']}: {result['says']}." for result in attack["results"]]
    return [*warnings_of(attack["facts"]), *notes]
