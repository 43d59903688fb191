"""The attacks on the runs of a table: who is whose shadow, and what remains of an attack."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
from support.commands import CONFIGS, edp_mx
from support.membership import made_scores
from support.records import record_of

from edp_mx.attacks.directory import write_outcome
from edp_mx.attacks.membership.thresholds import Guesses
from edp_mx.attacks.tables import attack_cells, shadow_cells, want_runs
from edp_mx.config import dump_config
from edp_mx.runs.attack_records import collect_attacks
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.trainings import Budget, Limits
from edp_mx.runs.tables.cells import Request, cells_of


def finished(folder, cell):
    """A run of a cell, without a model."""
    run = RunDirectory(folder / f"trial-{cell.trial.hash}")
    run.create("x", dump_config(cell.trial.config))
    record = record_of(cell.corpus, cell.family, cell.trial.config.privacy.mechanism)
    cell.trial.record = {**record, "hash": cell.trial.hash, "name": cell.trial.config.name}
    run.write("record", cell.trial.record)
    run.write("results", {"test": record["test"]})
    return run


class Trainings:
    """Attacks are pretended: a shadow's path is noted, and an outcome is written."""

    def __init__(self, folder, generator):
        self.folder, self.generator, self.made = folder, generator, []

    def run(self, words, log):
        run, option, shadow = words[words.index("attack") + 1 :][:3]
        self.made.append((run, shadow))
        if option != "--shadow":
            self.made[-1] = (run, option, shadow)
        if len(self.made) == 3:
            log.write_text("edp-mx attack: the shadow has diverged\n")
            return 2
        scores = made_scores(self.generator, 60, gap=1.0)
        values = np.where(scores.labels, 1.0, 0.0)
        guess = Guesses("shadow classifier", "says", values)
        facts = {"shadow corpus": "snips", "shadow": "private-folder"}
        name = "shadow" if option == "--shadow" else "lira"
        write_outcome(RunDirectory(self.folder / run.split("/")[-1]), name, [guess], scores,
                      facts=facts)  # fmt: skip
        return 0


@pytest.fixture
def request_():
    methods = ("sgd", "edp_none")
    return Request(CONFIGS, ("atis",), ("clc",), methods, seeds=(0, 1), is_attacked=True)


def test_each_run_is_attacked_once_by_sgd_on_another_corpus(tmp_path, generator, request_):
    cells, shadows = cells_of(request_), shadow_cells(request_)
    assert [(s.corpus, s.method, s.seed) for s in shadows] == [
        ("snips", "sgd", 0),
        ("snips", "sgd", 1),
    ]
    runs = {
        each.name: str(finished(tmp_path / "runs", each).path) for each in (*cells, *shadows[:1])
    }
    trainings, records = Trainings(tmp_path / "runs", generator), tmp_path / "records"

    def attack(hours=math.inf):
        budget = Budget(Limits(hours=hours))
        return attack_cells(request_, cells, shadows, trainings, budget, records=records)

    said = attack()
    shadow = runs["snips_clc_sgd, seed 0"]
    assert trainings.made == [(runs["atis_clc_sgd, seed 0"], shadow),
                              (runs["atis_clc_edp_none, seed 0"], shadow)]  # fmt: skip
    named = [line.split(":")[0] for line in said]
    assert named == [f"attack on atis_clc_{name}, seed 1" for name in ("sgd", "edp_none")]
    assert all("needs snips_clc_sgd, seed 1, which is not trained yet" in line for line in said)

    finished(tmp_path / "runs", shadows[1])
    spent = attack(hours=0.0)
    assert all("not made yet" in line for line in spent) and len(trainings.made) == 2
    (failed,) = attack()
    assert failed == "attack on atis_clc_sgd, seed 1: the shadow has diverged"
    assert len(trainings.made) == 4  # the first two are not made again

    kept = {path.name: json.loads(path.read_text()) for path in records.glob("*.json")}
    assert len(kept) == 3 and all("attack-shadow" in name for name in kept)
    for each in kept.values():
        success = each["success"]["shadow classifier"]
        assert success["auc"]["value"] == 1.0 and "0.01" in success["tpr_at_fpr"]
        assert "private-folder" not in json.dumps(each) and each["shadow_corpus"] == "snips"
    assert {each["attacked_run"] for each in collect_attacks([tmp_path / "runs"])} == {
        each["attacked_run"] for each in collect_attacks([records])}  # fmt: skip

    shutil.rmtree(tmp_path / "runs")  # the records remain, and what has one is not missed
    (tmp_path / "runs").mkdir()
    (gone,) = attack()
    assert gone.startswith("attack on atis_clc_sgd, seed 1: needs atis_clc_sgd, seed 1, of which")
    assert "only the record is left; see --retrain" in gone
    assert not any(each.trial.is_open for each in (*cells, *shadows))
    want_runs(request_, cells, shadows, tmp_path / "runs", records)
    wanted = {each.name for each in (*cells, *shadows) if each.trial.is_open}
    assert wanted == {"atis_clc_sgd, seed 1", "snips_clc_sgd, seed 1"}
    (sgd,) = (each for each in cells if each.name == "atis_clc_sgd, seed 1")
    sgd.trial.is_wanted_again = False
    lacking = replace(sgd.trial.config.data.embeddings, path="not-there.vec")
    data = replace(sgd.trial.config.data, embeddings=lacking)
    sgd.trial.config = replace(sgd.trial.config, data=data)
    want_runs(request_, cells, shadows, tmp_path / "runs", records)
    assert not sgd.trial.is_open  # it could not be trained


def test_a_run_that_is_trained_again_is_attacked_again_in_all_ways(tmp_path, generator, request_):
    """LiRA lacks a run, whose attack by the shadow was made before: the shadow is needed too."""
    request_ = request_._replace(seeds=(0,))
    cells, shadows = cells_of(request_), shadow_cells(request_)
    for each in (*cells, *shadows):
        finished(tmp_path / "runs", each)
    trainings, records = Trainings(tmp_path / "runs", generator), tmp_path / "records"
    attack_cells(request_, cells, shadows, trainings, Budget(Limits()), records=records)
    shutil.rmtree(tmp_path / "runs")
    want_runs(request_, cells, shadows, tmp_path / "runs", records)
    assert not any(each.trial.is_open for each in (*cells, *shadows))
    want_runs(request_._replace(lira=16), cells, shadows, tmp_path / "runs", records)
    assert all(each.trial.is_open for each in (*cells, *shadows))


@pytest.mark.parametrize("methods", [("sgd", "edp_none"), ("edp_none",)])
def test_lira_trains_its_shadow_models_once_and_all_methods_take_them(
    tmp_path, generator, request_, methods
):
    """Also where the table does not ask for SGD, whose settings the shadow models have."""
    request_ = request_._replace(methods=methods, seeds=(0,), is_attacked=False, lira=16)
    cells, shadows = cells_of(request_), shadow_cells(request_)
    assert [s.name for s in shadows] == ["atis_clc_sgd, seed 0"] * ("sgd" not in methods)
    runs = {each.name: str(finished(tmp_path / "runs", each).path) for each in (*shadows, *cells)}
    trainings, records = Trainings(tmp_path / "runs", generator), tmp_path / "records"
    for _ in range(2):
        budget = Budget(Limits(at_once=2))
        assert attack_cells(request_, cells, shadows, trainings, budget, records=records) == []
    sgd, private = runs["atis_clc_sgd, seed 0"], runs["atis_clc_edp_none, seed 0"]
    assert trainings.made == [(sgd, "--lira", "16"), (private, "--shadows-of", sgd)]
    assert len(list(records.glob("*-attack-lira.json"))) == 2


def test_too_few_shadow_models_are_refused_before_anything_is_trained(tmp_path):
    refused = edp_mx("table1", "--lira", 3, "--runs", tmp_path / "runs", code=2)
    assert "--lira is 3; it must be 4 or more" in refused.stderr and not any(tmp_path.iterdir())


def test_the_record_of_an_attack_is_kept_beside_that_of_its_run(tmp_path, generator, request_):
    cell = cells_of(request_)[0]
    run = finished(tmp_path / "runs", cell)
    Trainings(tmp_path / "runs", generator).run(["attack", str(run.path), "--shadow", "x"], None)
    said = edp_mx("runs", "keep", run.path, "--into", tmp_path / "kept").stdout.split()
    assert [name.split("/")[-1] for name in said] == [
        f"atis_clc_sgd-{cell.trial.hash}.json",
        f"atis_clc_sgd-{cell.trial.hash}-attack-shadow.json",
    ]


def test_a_shadow_that_the_table_has_is_not_trained_beside_it(request_):
    both = request_._replace(corpora=("atis", "snips"), lira=16)
    assert shadow_cells(both) == []
    assert len(shadow_cells(both._replace(methods=("edp_none",)))) == 4
