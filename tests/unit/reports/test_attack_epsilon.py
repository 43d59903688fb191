"""Attacks on several runs side by side: which ε is said, and whom each attack judged."""

import math
from dataclasses import replace

import pytest
from support.membership import made_scores
from support.tables import read_table

from edp_mx.attacks.directory import read_attack, write_outcome
from edp_mx.attacks.membership.thresholds import Guesses, threshold_attacks
from edp_mx.errors import UserError
from edp_mx.reports.attack_epsilon import compare_attacks, plot_attacks, points_of
from edp_mx.reports.summary import compare
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_json


def bound(log10, *conditions):
    epsilon = None if log10 is None else 10**log10
    return {"log10_epsilon": log10, "epsilon": epsilon, "conditions": list(conditions)}


def run_with(folder, generator, holds_if, **origin):
    """A run of known ε with one attack by the loss."""
    scores = made_scores(generator, 20, gap=1.0)
    scores = replace(scores, origin=replace(scores.origin, **origin))
    run = RunDirectory(folder)
    write_outcome(run, "threshold", threshold_attacks(scores), scores, facts={})
    privacy = {"as_published": bound(4.4), "holds": bound(None), "holds_if": holds_if}
    run.write("privacy", {**privacy, "delta": 1e-3})
    test = {"ser": 0.1, "intent_accuracy": 0.9, "slot_f1": 0.8}
    run.write("results", {"test": test})
    return run, scores


def test_runs_are_compared_by_epsilon(generator, tmp_path):
    run, _ = run_with(tmp_path / "run", generator, bound(None))
    points = points_of([run])
    assert [
        (p.attack, p.log10_epsilon("as_published"), p.log10_epsilon("holds_if")) for p in points
    ] == [("loss", 4.4, None)]
    lines = compare_attacks(points).splitlines()
    assert len(lines) == 3 and lines[2].split("|")[-3:-1] == ["         10^4.4 ", "            ∞ "]
    plot_attacks(points, tmp_path / "all.png")
    (row,) = read_table(tmp_path / "all.csv")
    assert float(row["auc"]) == points[0].auc["value"] and row["log10_holds_if"] == ""
    assert row["judges"] == "all members of train against test, drawn with --seed 3"
    assert (tmp_path / "all.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(UserError, match="was not attacked yet"):
        points_of([RunDirectory(tmp_path)])


def test_what_holds_on_a_condition_is_said_as_edp_mx_compare_says_it(generator, tmp_path):
    conditions = ("the words were public", "the lengths were"), ("the words were public",)
    bounds = [bound(math.log10(8), *conditions[0]), bound(9.9, *conditions[1]), bound(None)]
    runs = [run_with(tmp_path / f"run_{i}", generator, one)[0] for i, one in enumerate(bounds)]
    _, _, *rows, first, second = compare_attacks(points_of(runs)).splitlines()
    _, _, *others, other_first, other_second = compare(runs).splitlines()
    said = [row.split("|")[-2].strip() for row in rows]
    assert said == ["∞ (8*)", "∞ (10^9.9**)", "∞"]
    assert said == [row.split("|")[-3].strip() for row in others]
    assert (first, second) == (other_first, other_second)
    assert first == "* would hold if the words were public; the lengths were"
    plot_attacks(points_of(runs), tmp_path / "all.png")
    values = [row["log10_holds_if"] for row in read_table(tmp_path / "all.csv")]
    assert values == [str(math.log10(8)), "9.9", ""]


def test_attacks_on_different_utterances_are_marked(generator, tmp_path):
    run, scores = run_with(tmp_path / "one" / "run", generator, bound(None), size=20)
    same, _ = run_with(tmp_path / "two" / "run", generator, bound(None), size=20, weights="b" * 64)
    alike = compare_attacks(points_of([run, same]))
    assert "[1]" not in alike and len(alike.splitlines()) == 4
    guesses = [Guesses("LiRA online", "says", -scores.signals.loss)]
    for changed, footnote in (
        ({"size": 0}, "all members of train against test, drawn with --seed 3"),
        ({"seed": 4}, "at most 20 members (--size) of train against test, drawn with --seed 4"),
        ({"is_balanced": True}, "at most 20 members (--size) of train against test, equally many "
         "of each intent (--balanced), drawn with --seed 3"),
        ({"weights": "b" * 64}, "at most 20 members (--size) of train against test, drawn with "
         "--seed 3, by the weights bbbbbbbbbbbb…"),
    ):  # fmt: skip
        others = replace(scores, origin=replace(scores.origin, **changed))
        write_outcome(run, "lira", guesses, others, facts={})
        _, _, *rows, first, second = compare_attacks(points_of([run])).splitlines()
        assert ["loss [1]" in rows[0], "LiRA online [2]" in rows[1]] == [True, True]
        assert (
            first.startswith("[1] judges at most 20 members") and second == f"[2] judges {footnote}"
        )
    attack = read_attack(run.path / "attack-lira")
    write_json(run.path / "attack-lira" / "attack.json", {**attack, "origin": {}})
    with pytest.raises(UserError, match="attack.json lacks the origin of its scores .*: attack"):
        points_of([run])
