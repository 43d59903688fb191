"""Pictures, pages and comparisons of attacks: what they show is what was measured."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from support.membership import made_scores
from support.records import PRIVACY, changed, record_of
from support.refusals import one_sentence
from support.tables import read_table

from edp_mx.attacks.directory import read_guesses, write_outcome
from edp_mx.attacks.membership.roc import roc_curve, tpr_within
from edp_mx.attacks.membership.thresholds import Guesses, threshold_attacks
from edp_mx.reports.attack_epsilon import compare_attacks, plot_attacks, points_of
from edp_mx.reports.attack_page import write_report
from edp_mx.reports.attack_pictures import MOST_POINTS, plot_canaries, plot_roc
from edp_mx.reports.exposure_page import exposure_rows, write_exposure_report
from edp_mx.reports.figures import build_figure, draw_histograms, exponent_ticks
from edp_mx.reports.run_head import verdict_of
from edp_mx.reports.summary import compare
from edp_mx.runs.attack_records import attack_records_of, read_attack
from edp_mx.runs.file_types import Privacy
from edp_mx.runs.recount import privacy_of
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_json
from edp_mx.runtime.structured import unstructure


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """A run directory with one attack in it, measured and drawn."""
    generator, tmp_path = np.random.default_rng(8), tmp_path_factory.mktemp("attacked")
    scores = made_scores(generator, 60, gap=1.5, reference=10)
    run = RunDirectory(tmp_path / "run")
    outcome = write_outcome(run, "threshold", threshold_attacks(scores), scores, facts={"x": 1})
    folder = run.path / "attack-threshold"
    write_report(folder)
    return run, folder, outcome, scores


def test_what_is_written_is_what_was_measured(attacked):
    _, folder, outcome, scores = attacked
    attack, guessed = read_attack(folder), read_guesses(folder)
    assert unstructure(attack) == json.loads(json.dumps(outcome))
    assert [row["id"] for row in read_table(folder / "guesses.csv")] == list(scores.ids[:120])
    for result in attack.results:
        values = guessed.scores[result.name]
        assert result.auc.value == pytest.approx(roc_auc_score(guessed.is_member, values))
        assert result.auc.low <= result.auc.value <= result.auc.high


def test_few_others_tell_nothing_of_rare_false_alarms(attacked):
    result = replace(read_attack(attacked[1]).results[0], non_members=100)
    assert "With one false alarm in 100 others" in verdict_of(result)
    few = verdict_of(replace(result, non_members=99))
    assert "Nobody can tell from 99 others who is found" in few and "With one" not in few


def test_the_numbers_of_the_pictures(attacked):
    _, folder, _, _ = attacked
    guessed = read_guesses(folder)
    points = [row for row in read_table(folder / "roc.csv") if row["attack"] == "loss"]
    curve = roc_curve(guessed.scores["loss"], guessed.is_member)
    assert [float(p["fpr"]) for p in points] == pytest.approx(curve.fpr)
    assert [float(p["tpr"]) for p in points] == pytest.approx(curve.tpr)
    bins = [row for row in read_table(folder / "scores.csv") if row["attack"] == "margin"]
    for side in ("members", "non_members"):
        assert sum(int(row[side]) for row in bins) == 60
    for name in ("roc", "scores"):
        assert (folder / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


def test_names_are_escaped(generator, tmp_path):
    scores = made_scores(generator, 10, gap=0.5)
    run = RunDirectory(tmp_path / "<b>&run")
    guesses = [Guesses("<u>", "says", scores.signals.loss)]
    write_outcome(run, "threshold", guesses, scores, facts={"<i>": "&"})
    html = write_report(run.path / "attack-threshold").read_text()
    assert not any(tag in html for tag in ("<u>", "<i>", "<b>")) and "&lt;u&gt;" in html


def test_the_page_begins_with_a_verdict_in_words(attacked):
    _, folder, outcome, scores = attacked
    html = (folder / "report.html").read_text()
    members, others = -scores.signals.loss[:60], -scores.signals.loss[60:120]
    pairs = np.mean(members[:, None] > others[None, :])  # of losses that are all different
    assert outcome["results"][0]["name"] == "loss"
    assert f"members from others in {100 * pairs:.0f} of 100 pairs; chance is 50" in html
    assert html.count('<svg role="img"') == 2 + len(outcome["results"]) and "<img" not in html


def test_bins_hold_equally_many_however_long_the_tail():
    values = np.exp(np.arange(400) / 20.0)
    values[:3] = -math.inf
    is_member = np.arange(400) % 2 == 0
    _, (axes,) = build_figure(3, 3)
    bins = draw_histograms(axes, values, is_member, ("members", "others"))
    assert len(bins) == 20 and all(9 <= members <= 11 for _, _, members, _ in bins)
    assert sum(others for *_, others in bins) == 200
    ((_, _, *alone),) = draw_histograms(axes, np.ones(6), is_member[:6], ("members", "others"))
    assert alone == [3, 3]


def test_canaries_without_a_finite_score_have_no_picture(tmp_path):
    for scores, names in (
        ("inf", ["canaries.csv"]),
        ("0.5", ["canaries.csv", "scores.csv", "scores.png"]),
    ):
        (tmp_path / "canaries.csv").write_text(f"is_member,score\n1,{scores}\n0,inf\n")
        plot_canaries(RunDirectory(tmp_path))
        assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_the_record_of_an_attack_has_the_curve(attacked):
    run, _, outcome, _ = attacked
    run.write("record", changed(record_of(), hash="0", name="x"))
    (record,) = attack_records_of(run)
    place = record.roc.fpr.index(0.1)
    guessed = read_guesses(run.path / "attack-threshold")
    for result in outcome["results"]:
        curve = roc_curve(guessed.scores[result["name"]], guessed.is_member)
        found = record.roc.tpr[result["name"]]
        assert found[-1] == 1.0 and found[place] == pytest.approx(tpr_within(curve, 0.1), abs=1e-4)


def test_long_curves_keep_their_shape(generator, tmp_path):
    scores = made_scores(generator, 4000, gap=0.5)
    run = RunDirectory(tmp_path / "run")
    guesses = [Guesses("loss", "says", -scores.signals.loss)]
    write_outcome(run, "threshold", guesses, scores, facts={})
    guessed = read_guesses(run.path / "attack-threshold")
    plot_roc(guessed, tmp_path)
    points = read_table(tmp_path / "roc.csv")
    assert len(points) <= MOST_POINTS
    thin = np.array([[float(p["fpr"]), float(p["tpr"])] for p in points])
    whole = roc_curve(guessed.scores["loss"], guessed.is_member)
    assert thin[0].tolist() == [0, 0] and thin[-1].tolist() == [1, 1]
    for fpr in (0.001, 0.01, 0.1, 0.5):
        near = np.interp(fpr, thin[:, 0], thin[:, 1])
        assert near == pytest.approx(tpr_within(whole, fpr), abs=0.005)


def test_exposure_by_repeats(tmp_path):
    def canary(repeats, by_rank, by_fit):
        return {"repeats": repeats, "tokens": ["a", "1"], "slots": ["O", "B-x"], "intent": "i",
                "loss": 0.5, "rank": 1.0, "candidates": 100, "by_rank": by_rank,
                "by_fit": by_fit}  # fmt: skip

    canaries = [canary(1, 1.0, 2.0), canary(1, 3.0, 2.0), canary(10, 6.0, None)]
    assert exposure_rows(canaries) == [
        ["once", "2.00 ± 1.41", "2.00 ± 0.00", "2"],
        ["10 times", "6.00", "no fit", "1"],
    ]
    value = {"run": "mine", "settings": {"digits": 7}, "canaries": canaries}
    write_json(tmp_path / "exposure.json", value)
    write_exposure_report(tmp_path)
    assert [float(row["by_rank"]) for row in read_table(tmp_path / "exposure.csv")] == [
        1.0,
        3.0,
        6.0,
    ]
    html = (tmp_path / "report.html").read_text()
    assert "canaries in mine" in html and "settings other than" not in html


def bound(log10, *conditions):
    epsilon = None if log10 is None else 10**log10
    return {"log10_epsilon": log10, "epsilon": epsilon, "conditions": list(conditions)}


@pytest.fixture(autouse=True)
def believed(monkeypatch):
    """Take `privacy.json` as it stands; the runs here have no ledger, and an ε of our choice."""
    for module in ("attack_epsilon", "run_head", "summary"):
        name = f"edp_mx.reports.{module}.privacy_of"
        monkeypatch.setattr(name, lambda run, notes: run.load(Privacy))


def run_with(folder, generator, holds_if, **origin):
    """A run of known ε with one attack by the loss."""
    scores = made_scores(generator, 20, gap=1.0)
    scores = replace(scores, origin=replace(scores.origin, **origin))
    run = RunDirectory(folder)
    write_outcome(run, "threshold", threshold_attacks(scores), scores, facts={})
    privacy = {"as_published": bound(4.4), "holds": bound(None), "holds_if": holds_if}
    run.write("privacy", {**PRIVACY, **privacy, "delta": 1e-3})
    run.config.write_text("name: run\n")
    test = {"ser": 0.1, "intent_accuracy": 0.9, "slot_f1": 0.8}
    run.write("results", {"test": test})
    return run, scores


def test_the_page_has_the_scores_and_the_epsilon_of_its_run(generator, tmp_path, monkeypatch):
    run, _ = run_with(tmp_path / "run", generator, bound(0.9, "the words were public"))
    html = write_report(run.path / "attack-threshold").read_text()
    values = re.findall(r'class="value">([^<]*) <small>([^<]*)</small>', html)
    (auc,) = {each.auc.value for each in read_attack(run.path / "attack-threshold").results[:1]}
    assert values == [("10.00 %", "SER"), ("7.94*", "ε"), (f"{100 * auc:.1f} %", "AUC")]
    assert "* Only if the words were public; otherwise ∞." in html and "at δ = 0.001" in html
    monkeypatch.setattr("edp_mx.reports.run_head.privacy_of", privacy_of)
    html = write_report(run.path / "attack-threshold").read_text()
    assert "No ε: " in html and "ledger.jsonl is missing" in html and "7.94" not in html


def test_runs_are_compared_by_epsilon(generator, tmp_path):
    run, _ = run_with(tmp_path / "run", generator, bound(None))
    points = points_of([run])
    assert [
        (p.attack, p.log10_epsilon("as_published"), p.log10_epsilon("holds_if")) for p in points
    ] == [("loss", 4.4, None)]
    lines = compare_attacks(points).splitlines()
    assert len(lines) == 3 and lines[2].split("|")[-3:-1] == ["         25,100 ", "            ∞ "]
    (tmp_path / "all.csv").write_text("of,the,user\n")
    one_sentence("all.csv, which is written with", plot_attacks, points, tmp_path / "all.png")
    (tmp_path / "all.csv").unlink()
    for _ in range(2):  # our own file is written anew
        plot_attacks(points, tmp_path / "all.png")
    (row,) = read_table(tmp_path / "all.csv")
    assert float(row["auc"]) == points[0].auc.value and row["log10_holds_if"] == ""
    assert row["judges"] == "all members of train against test, drawn with --seed 3"
    assert (tmp_path / "all.png").read_bytes()[:4] == b"\x89PNG"
    one_sentence("was not attacked yet", points_of, [RunDirectory(tmp_path)])


def test_what_holds_on_a_condition_is_said_as_edp_mx_compare_says_it(generator, tmp_path):
    conditions = ("the words were public", "the lengths were"), ("the words were public",)
    bounds = [bound(math.log10(8), *conditions[0]), bound(9.9, *conditions[1]), bound(None)]
    runs = [run_with(tmp_path / f"run_{i}", generator, one)[0] for i, one in enumerate(bounds)]
    for run in runs:
        run.config.write_text("name: x\ndata: {corpus: atis}\nprivacy: {mechanism: dp_sgd}\n")
    _, _, *rows, first, second = compare_attacks(points_of(runs)).splitlines()
    _, _, *others, _, other_first, other_second, weak = compare(runs).splitlines()
    assert "above 100 is no protection" in weak
    said = [row.split("|")[-2].strip() for row in rows]
    assert said == ["8ᵃ", "7.9 bnᵇ", "∞"]
    assert said == [row.split("|")[-2].strip() for row in others]
    assert (first, second) == (other_first, other_second)
    assert first == "ᵃ only if the words were public; the lengths were; otherwise ∞"
    plot_attacks(points_of(runs), tmp_path / "all.png")
    values = [row["log10_holds_if"] for row in read_table(tmp_path / "all.csv")]
    assert values == [str(math.log10(8)), "9.9", ""]


def test_a_comparison_of_other_utterances_or_models_says_so(generator, tmp_path):
    runs = [run_with(tmp_path / name, generator, bound(None))[0] for name in ("one", "two")]
    for run, family, digest in zip(runs, ("clc", "bert"), ("a", "b")):
        run.write("privacy", {**run.read("privacy"), "mechanism": "none"})
        run.config.write_text("name: x\ndata: {corpus: atis}\nprivacy: {mechanism: none}\n"
                              f"model: {{family: {family}}}\n")  # fmt: skip
        parts = {"test": {"key": "k", "digest": digest}}
        run.write("environment", {"num_workers": 1, "fingerprints": parts})
        run.write("record", record_of("atis", family, mechanism="none"))
    said = compare(runs)
    assert "The test parts differ" in said and "The families differ (one clc, two bert)." in said
    assert "differ" not in compare(runs[:1]) and "differ" not in compare([runs[0], runs[0]])


def test_attacks_on_different_utterances_are_marked(generator, tmp_path):
    run, scores = run_with(tmp_path / "one" / "run", generator, bound(None), size=20)
    same, _ = run_with(tmp_path / "two" / "run", generator, bound(None), size=20, weights="b" * 64)
    alike = compare_attacks(points_of([run, same]))
    assert "[1]" not in alike and len(alike.splitlines()) == 4
    guesses = [Guesses("LiRA online", "says", -scores.signals.loss)]
    for other, footnote in (
        ({"size": 0}, "all members of train against test, drawn with --seed 3"),
        ({"seed": 4}, "at most 20 members (--size) of train against test, drawn with --seed 4"),
        ({"is_balanced": True}, "at most 20 members (--size) of train against test, equally many "
         "of each intent (--balanced), drawn with --seed 3"),
        ({"weights": "b" * 64}, "at most 20 members (--size) of train against test, drawn with "
         "--seed 3, by the weights bbbbbbbbbbbb…"),
    ):  # fmt: skip
        others = replace(scores, origin=replace(scores.origin, **other))
        write_outcome(run, "lira", guesses, others, facts={})
        _, _, *rows, first, second = compare_attacks(points_of([run])).splitlines()
        assert ["loss [1]" in rows[0], "LiRA online [2]" in rows[1]] == [True, True]
        assert (
            first.startswith("[1] judges at most 20 members") and second == f"[2] judges {footnote}"
        )
    attack = read_attack(run.path / "attack-lira")
    write_json(run.path / "attack-lira" / "attack.json", {**unstructure(attack), "origin": {}})
    one_sentence("attack.json lacks the origin of its scores .*: attack", points_of, [run])


def test_infinity_has_a_place_of_its_own():
    for exponents in ([], [0.9], [-1.3, 8.0], [0.0, 3.5, 10.4]):
        places, names = exponent_ticks(exponents)
        assert names[-1] == "∞" and names.count("∞") == 1
        assert all(places[-1] - place >= 0.499 for place in [*places[:-1], *exponents])
        assert exponent_ticks(exponents, has_infinity=False)[0] == places[:-1]
