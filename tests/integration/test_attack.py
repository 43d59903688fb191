"""`edp-mx attack` from end to end, on models that learn a few utterances by heart."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.commands import QUICKSTART, read
from support.tables import read_table

from edp_mx.attacks.membership.run_scores import compute_signals
from edp_mx.attacks.membership.scores import MembershipScores, hash_of
from edp_mx.attacks.settings_differences import OTHER_MODEL_SETTINGS, OTHER_SETTINGS
from edp_mx.cli import main
from edp_mx.runs.build import encode_part
from edp_mx.runs.trained_run import load_run

TINY = ["data.size=300", "data.embeddings.dimension=16", "model.hidden_size=16",
        "model.character_filters=4", "model.dropout=0", "training.epochs=20",
        "training.batch_size=16", "training.learning_rate=0.02"]  # fmt: skip


def attack(*arguments, code=0):
    """The command in this process; its exit code is checked."""
    assert main(["attack", *map(str, arguments)]) == code


def results(run, name):
    attacked = read(run / f"attack-{name}", "attack")
    return {result["name"]: result for result in attacked["results"]}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run, a shadow on another corpus, and the paper's attack of the one by the other."""
    folder = tmp_path_factory.mktemp("runs")
    for name, corpus in (("target", "communication"), ("shadow", "health")):
        arguments = ["train", str(QUICKSTART), "--run", str(folder / name), "--set", *TINY]
        assert main([*arguments, f"data.corpus={corpus}"]) == 0
    attack(folder / "target", "--shadow", folder / "shadow")
    return folder / "target", folder / "shadow"


def copy_of(run, folder):
    return Path(shutil.copytree(run, folder / run.name))


def test_members_are_told_from_others(runs):
    target, _ = runs
    assert results(target, "threshold")["loss"]["auc"]["value"] > 0.75
    assert results(target, "shadow")["shadow classifier"]["auc"]["value"] > 0.6


def test_the_scores_are_of_the_runs_own_parts(runs):
    target, _ = runs
    scores = MembershipScores.read(target / "scores.npz", weights=hash_of(target / "weights.npz"))
    split = read(target, "split")
    ids = np.array(scores.ids)
    assert set(ids[scores.is_member]) <= set(split["train"])
    assert set(ids[~scores.is_member & ~scores.is_reference]) <= set(split["test"])
    assert not set(ids[scores.is_reference]) & set(split["train"])
    assert scores.labels.sum() * 2 == len(scores.labels) > 150
    trained = load_run(target)
    by_id = {u.id: u for part in ("train", "test", "validation") for u in trained.part(part)}
    some = list(range(0, len(ids), 17))
    texts = {tuple(t.lower() for t in by_id[name].tokens) for name in ids}
    assert len(texts) == len(ids) and scores.unknown_words is None  # the words are public
    encoded = encode_part(trained.config, [by_id[ids[i]] for i in some], trained.vocabulary, "some")
    single = compute_signals(trained.model, encoded, batch_size=1, progress=lambda it, *_: it)
    for name, one in scores.signals._asdict().items():
        np.testing.assert_allclose(one[some], getattr(single, name), rtol=1e-3, atol=1e-4)
    assert [scores.intents[i] for i in some] == [by_id[ids[i]].intent for i in some]


def test_the_same_comes_out_of_the_saved_scores(runs, tmp_path, capsys):
    target, shadow = (copy_of(run, tmp_path) for run in runs)
    before = {name: results(target, name) for name in ("threshold", "shadow")}
    for name in before:
        shutil.rmtree(target / f"attack-{name}")
    attack(target, "--shadow", shadow, "--from-scores")
    said = " ".join(capsys.readouterr().out.split())  # lines are wrapped
    assert said.count("Somebody with the model tells members from others in ") == 2
    assert {name: results(target, name) for name in before} == before


def test_scores_that_do_not_go_with_the_run_are_refused(runs, tmp_path, capsys):
    target = copy_of(runs[0], tmp_path)
    whole = (target / "scores.npz").read_bytes()
    (target / "scores.npz").write_bytes(whole[:500])
    attack(target, "--from-scores", code=2)
    (target / "scores.npz").write_bytes(whole)
    (target / "weights.npz").write_bytes((runs[1] / "weights.npz").read_bytes())
    attack(target, "--from-scores", code=2)
    (target / "scores.npz").unlink()
    attack(target, "--from-scores", code=2)
    torn, other, missing = capsys.readouterr().err.strip().splitlines()
    assert "is torn" in torn and "of other weights" in other and "there is no" in missing


def test_a_configuration_is_trained_into_a_run_of_its_own(runs, tmp_path, capsys):
    target = copy_of(runs[0], tmp_path)
    attack(target, "--shadow", QUICKSTART, "--runs", tmp_path / "shadows", "--size", 40,
           "--balanced", "--json", "--set", *TINY, "training.epochs=1",
           "data.corpus=video")  # fmt: skip
    (shadow,) = (tmp_path / "shadows").iterdir()
    assert (shadow / "results.json").exists() and (shadow / "scores.npz").exists()
    threshold, paper = json.loads(capsys.readouterr().out)
    assert paper["facts"]["shadow corpus"] == "video"
    assert paper["facts"]["shadow"] == shadow.name
    assert paper["facts"]["shadow family"] == "clc" and paper["facts"][OTHER_MODEL_SETTINGS] == {}
    assert threshold["origin"]["is_balanced"] and threshold["results"][0]["members"] <= 40
    attack(target, "--shadow", "--runs", tmp_path / "none", "--set", "data.size=3", code=2)
    assert "too few utterances" in capsys.readouterr().err
    assert not list((tmp_path / "none").iterdir())  # a refused shadow leaves nothing


@pytest.mark.slow  # unit tests hold the plan and its refusals
def test_lira_keeps_what_is_trained_and_refuses_other_settings(runs, tmp_path, capsys):
    target = copy_of(runs[0], tmp_path)
    small = ["--jobs", 2, "--set", "training.epochs=6", "training.learning_rate=0.01"]
    folder = target / "attack-lira"
    attack(target, "--lira", 4, "--from-scores", code=2)
    assert "there is no" in capsys.readouterr().err and not folder.exists()
    attack(target, "--lira", 4, *small)
    unlike = "training.epochs 6 instead of 20, training.learning_rate 0.01 instead of 0.02"
    shown = " ".join(capsys.readouterr().out.split())  # lines are wrapped
    assert unlike in shown and unlike in (folder / "report.html").read_text()
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("shadow-*.npz")}
    first = results(target, "lira")
    assert len(before) == 4 and not list(folder.glob("*.log")) and not list(folder.glob(".shadow*"))
    assert first["LiRA offline"]["auc"]["value"] > 0.6
    (folder / "shadow-002.npz").unlink()
    attack(target, "--lira", 4, "--from-scores", code=2)
    assert "attack-lira lacks shadows: finish" in capsys.readouterr().err
    attack(target, "--lira", 4, *small)
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("shadow-*.npz")}
    assert [name for name in after if after[name] != before[name]] == ["shadow-002.npz"]
    again = results(target, "lira")
    assert again["LiRA online"]["auc"]["value"] == pytest.approx(
        first["LiRA online"]["auc"]["value"], abs=0.02
    )
    attack(target, "--lira", 4, "--from-scores")
    assert results(target, "lira") == again
    twin = copy_of(runs[0], tmp_path / "twin")  # the same run: the same must come out
    attack(twin, "--shadows-of", target)
    assert results(twin, "lira") == again
    facts = read(twin / "attack-lira", "attack")["facts"]
    assert facts["shadows were trained for"] == target.name
    assert facts[OTHER_SETTINGS]["training.epochs"] == {"run": 20, "trained": 6}
    stranger = copy_of(runs[1], tmp_path)
    for wrong in ((twin, "--shadows-of", target, "--lira", 4), (stranger, "--shadows-of", target),
                  (target, "--shadows-of", twin)):  # fmt: skip
        attack(*wrong, code=2)
    errors = capsys.readouterr().err
    assert "leave out --lira" in errors and "trained on other utterances" in errors
    assert "there is no" in errors  # the twin has none of its own
    for options in ((6, *small), (4, "--set", "training.epochs=2"), (4, "--set", "data.size=200")):
        attack(target, "--lira", *options, code=2)
    attack(target, "--lira", 6, "--from-scores", code=2)
    errors = capsys.readouterr().err
    assert errors.count("holds shadows of other settings") == 2 and "own utterances" in errors
    assert "give --lira 4" in errors


def test_a_shadow_that_fails_says_why(runs, tmp_path, capsys):
    target = copy_of(runs[0], tmp_path)
    attack(target, "--lira", 4, "--jobs", 1, "--set", "training.batch_size=100000", code=2)
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "shadow 0 ended with code 1: training.batch_size: 100000 does not lie" in error


def test_canaries_that_are_repeated_are_exposed(runs, tmp_path, capsys):
    target = copy_of(runs[0], tmp_path)
    attack(target, "--canaries", "--canary-count", 2, "--candidates", 200,
           "--set", "training.epochs=5")  # fmt: skip
    folder = target / "attack-canaries"
    rows = read_table(folder / "exposure.csv")
    assert [int(row["repeats"]) for row in rows] == [1, 1, 10, 10, 100, 100]
    by_rank = [float(row["by_rank"]) for row in rows]
    assert max(by_rank) <= np.log2(201)
    assert min(by_rank[4:]) > 2 and max(by_rank[4:]) > 5  # by chance 1.44 bits; > 5 once in 32
    shown = " ".join(capsys.readouterr().out.split())  # lines are wrapped
    unlike = "training.epochs 5 instead of 20. The exposure is that of this model"
    assert unlike in shown and unlike in (folder / "report.html").read_text()
    assert "| 100 times" in shown and str(folder / "report.html") in shown
    assert not (folder / ".training").exists()


def test_runs_are_set_side_by_side(runs, tmp_path, capsys):
    target, shadow = runs
    attack("--compare", target, "--out", tmp_path / "all.png")
    assert "shadow classifier" in capsys.readouterr().out
    assert {row["attack"] for row in read_table(tmp_path / "all.csv")} == {
        "loss",
        "shadow classifier",
    }
    for wrong in (["--compare", shadow], ["--compare", target, "--out", "x.pdf"], [tmp_path],
                  [target, "--shadow", target], [target, "--shadow", tmp_path / "absent.yaml"],
                  [target, "--shadow", "--from-scores"], [target, "--lira", 2]):  # fmt: skip
        attack(*wrong, code=2)
    errors = capsys.readouterr().err
    assert len(errors.strip().splitlines()) == 7 and "Traceback" not in errors
    assert "is the attacked run itself" in errors


def test_a_run_that_has_not_ended_has_no_model(runs, tmp_path, capsys):
    target = copy_of(runs[0], tmp_path)
    (target / "results.json").unlink()
    attack(target, code=2)
    assert "is not finished" in capsys.readouterr().err
