"""The attacks on the runs of a table: who is whose shadow, and what remains of an attack."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
from support.commands import CONFIGS, edp_mx
from support.membership import made_scores
from support.records import attack_of, changed, lines_in, record_of
from support.refusals import one_sentence

from edp_mx.attacks.directory import write_outcome
from edp_mx.attacks.membership.thresholds import Guesses
from edp_mx.config import dump_config
from edp_mx.runs.attack_files import ALIGNED
from edp_mx.runs.attack_records import collect_attacks, keep_whole
from edp_mx.runs.record import run_id
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.budget import Budget
from edp_mx.runtime.structured import unstructure
from experiments.tables.attacks import attack_cells, shadow_cells, want_runs
from experiments.tables.cells import Request, Table, cells_of
from experiments.tables.fill import fill


def finished(folder, cell, **changes):
    """A run of a cell, beside those that it has, without a model."""
    run = RunDirectory(folder / f"trial-{cell.trial.hash}")
    run.create("x", dump_config(cell.trial.config))
    record = record_of(cell.corpus, cell.family, cell.trial.config.privacy.mechanism)
    told = {"hash": cell.trial.hash, "name": cell.trial.config.name, **changes}
    record = changed(record, **told)
    cell.trial.records.append(record)
    run.write("record", record)
    run.write("results", {"test": record.test})
    return run


class Trainings:
    """Attacks are pretended: a shadow's path is noted, and an outcome is written; one fails."""

    def __init__(self, folder, generator, failing=3):
        self.folder, self.generator, self.failing, self.made = folder, generator, failing, []

    def train(self, trials, budget, *, on_end):
        assert trials and not any(trial.is_open for trial in trials)

    def run(self, words, log):
        run, option, shadow = words[words.index("attack") + 1 :][:3]
        self.made.append((run, shadow))
        if option != "--shadow":
            self.made[-1] = (run, option, shadow)
        if len(self.made) == self.failing:
            log.write_text("edp-mx attack: the shadow has diverged\n")
            return 2
        scores = made_scores(self.generator, 60, gap=1.0)
        values = np.where(scores.labels, 1.0, 0.0)
        name = "shadow" if option == "--shadow" else "lira"
        guess = Guesses("shadow classifier" if name == "shadow" else ALIGNED, "says", values)
        facts = {"shadow corpus": "snips", "shadow": "private-folder", "shadows": 16}
        attacked = RunDirectory(self.folder / run.split("/")[-1])
        write_outcome(attacked, name, [guess], scores, facts=facts)
        (attacked.path / f"attack-{name}" / "roc.csv").write_text("attack,fpr,tpr\n")
        return 0


def table_of(request, folder, **changes):
    """The trainings of a request, whose runs and records are in two folders below one."""
    places = folder / "runs", folder / "records"
    return Table(request, cells_of(request), shadow_cells(request), *places)._replace(**changes)


@pytest.fixture
def request_():
    methods = ("sgd", "edp_none")
    return Request(CONFIGS, ("atis",), ("clc",), methods, seeds=(0, 1), is_attacked=True)


def test_each_run_is_attacked_once_by_sgd_on_another_corpus(tmp_path, generator, request_):
    table = table_of(request_, tmp_path)
    cells, shadows = table.cells, table.shadows
    assert [(s.corpus, s.method, s.seed) for s in shadows] == [
        ("snips", "sgd", 0),
        ("snips", "sgd", 1),
    ]
    runs = {
        each.name: str(finished(tmp_path / "runs", each).path) for each in (*cells, *shadows[:1])
    }
    trainings, records = Trainings(table.runs, generator), table.records

    def attack(hours=math.inf):
        budget = Budget(hours=hours)
        return attack_cells(table, trainings, budget)

    said = attack()
    shadow = runs["snips_clc_sgd, seed 0"]
    assert trainings.made == [(runs["atis_clc_sgd, seed 0"], shadow),
                              (runs["atis_clc_edp_none, seed 0"], shadow)]  # fmt: skip
    assert said == [
        "atis_clc (sgd, edp_none), seed 1: the paper's attack: the run, or one that the attack "
        "needs, is not trained yet"
    ]

    finished(tmp_path / "runs", shadows[1])
    spent = attack(hours=0.0)
    assert spent == ["atis_clc (sgd, edp_none), seed 1: the paper's attack: not made yet"]
    assert len(trainings.made) == 2
    (failed,) = attack()
    assert failed == "atis_clc (sgd), seed 1: the paper's attack: the shadow has diverged"
    assert len(trainings.made) == 4  # the first two are not made again

    of_runs, kept = (list(map(json.loads, lines)) for lines in lines_in(records))
    assert len(of_runs) == len(kept) == 3 and {each["attack"] for each in kept} == {"shadow"}
    for each in kept:
        success = each["success"]["shadow classifier"]
        assert success["auc"]["value"] == 1.0 and "0.01" in success["tpr_at_fpr"]
        assert "private-folder" not in json.dumps(each) and each["shadow_corpus"] == "snips"
    assert {each.run for each in collect_attacks([tmp_path / "runs"])} == {
        each.run for each in collect_attacks([records])}  # fmt: skip

    shutil.rmtree(tmp_path / "runs")  # the records remain, and what has one is not missed
    (tmp_path / "runs").mkdir()
    (gone,) = attack()
    assert gone == (
        "atis_clc (sgd), seed 1: the paper's attack: of the run, or of one that the attack needs, "
        "only the record is left; see --retrain"
    )
    assert not any(each.trial.is_open for each in (*cells, *shadows))
    want_runs(table)
    wanted = {each.name for each in (*cells, *shadows) if each.trial.is_open}
    assert wanted == {"atis_clc_sgd, seed 1", "snips_clc_sgd, seed 1"}
    (sgd,) = (each for each in cells if each.name == "atis_clc_sgd, seed 1")
    sgd.trial.is_wanted_again = False
    lacking = replace(sgd.trial.config.data.embeddings, path="not-there.vec")
    data = replace(sgd.trial.config.data, embeddings=lacking)
    sgd.trial.config = replace(sgd.trial.config, data=data)
    shadows[1].trial.is_wanted_again = False
    want_runs(table)
    assert not sgd.trial.is_open  # it could not be trained
    assert not shadows[1].trial.is_open  # which nothing else needs


def test_a_run_that_is_made_again_for_one_attack_keeps_the_others(tmp_path, generator, request_):
    """LiRA lacks a run, whose attack by the shadow was made before: the shadow is not needed."""
    request_ = request_._replace(seeds=(0,))
    table = table_of(request_, tmp_path)
    cells, shadows = table.cells, table.shadows
    for each in (*cells, *shadows):
        finished(tmp_path / "runs", each)
    trainings, records = Trainings(table.runs, generator), table.records
    attack_cells(table, trainings, Budget())
    shutil.rmtree(tmp_path / "runs")
    want_runs(table)
    assert not any(each.trial.is_open for each in (*cells, *shadows))
    for is_attacked in (False, True):
        both = table._replace(request=request_._replace(lira=16, is_attacked=is_attacked))
        want_runs(both)
        assert all(each.trial.is_open for each in cells) and not shadows[0].trial.is_open
    for each in cells:
        each.trial.is_wanted_again = False
        finished(tmp_path / "runs", each, date="2030-01-01")
    trainings.made.clear()
    assert attack_cells(both, trainings, Budget()) == []
    assert [words[1] for words in trainings.made] == ["--lira", "--shadows-of"]
    first, second = (run_id(each) for each in cells[0].trial.records)
    made = [(each.run, each.attack) for each in collect_attacks([records])]
    assert (first, "shadow") in made and (second, "lira") in made and len(made) == 4


def test_a_shadow_that_is_trained_again_is_a_second_run_and_lends_new_shadow_models(
    tmp_path, generator, request_
):
    """LiRA on the SGD run has a record, but its shadow models are gone, and eDP-SGD needs them."""
    request_ = request_._replace(methods=("edp_none",), seeds=(0,), is_attacked=False, lira=16)
    table = table_of(request_, tmp_path)
    (cell,), (sgd,), folder, records = table[1:]
    run = finished(folder, sgd)
    trainings = Trainings(folder, generator)
    trainings.run(["attack", str(run.path), "--lira", "16"], None)
    keep_whole(run, records)
    before = sum(lines_in(records), [])
    assert len(before) == 2
    shutil.rmtree(folder)
    finished(folder, cell)
    want_runs(table)
    assert sgd.trial.is_open
    run = finished(folder, sgd, date="2030-01-01")
    trainings.made.clear()
    assert attack_cells(table, trainings, Budget()) == []
    assert [words[1:] for words in trainings.made] == [
        ("--lira", "16"),
        ("--shadows-of", str(run.path)),
    ]
    after = sum(lines_in(records), [])
    assert set(before) < set(after) and len(after) == 6


def test_lira_by_fewer_shadow_models_than_are_asked_for_does_not_count(
    tmp_path, generator, request_
):
    request_ = request_._replace(methods=("sgd",), seeds=(0,), is_attacked=False, lira=16)
    table = table_of(request_, tmp_path, shadows=[])
    finished(table.runs, table.cells[0])
    trainings = Trainings(table.runs, generator)
    for count, made in ((16, 1), (8, 1), (64, 2)):
        more = table._replace(request=request_._replace(lira=count))
        assert attack_cells(more, trainings, Budget()) == []
        assert len(trainings.made) == made


def test_what_a_killed_call_left_is_kept_beside_the_run_before_and_the_attacks_on_it(
    tmp_path, generator, request_
):
    table = table_of(request_, tmp_path, shadows=[])
    cell, folder, records = table.cells[0], table.runs, table.records
    table = table._replace(cells=[cell])
    trainings = Trainings(folder, generator)
    run = finished(folder, cell)
    trainings.run(["attack", str(run.path), "--shadow", "x"], None)
    keep_whole(run, records)
    before = sum(lines_in(records), [])
    shutil.rmtree(folder)
    finished(folder, cell, date="2030-01-01")
    for _ in range(2):
        fill(table, trainings, Budget())
        after = sum(lines_in(records), [])
        assert set(before) < set(after) and len(after) == 3
    (new,) = set(after) - set(before)
    assert json.loads(new)["date"] == "2030-01-01"
    (attack,) = collect_attacks([records])
    assert attack.run == run_id(cell.trial.records[0])


@pytest.mark.parametrize("methods", [("sgd", "edp_none"), ("edp_none",)])
def test_lira_trains_its_shadow_models_once_and_all_methods_and_seeds_take_them(
    tmp_path, generator, request_, methods
):
    """Also where the table does not ask for SGD, whose settings the shadow models have."""
    request_ = request_._replace(methods=methods, seeds=(0, 1), is_attacked=False, lira=16)
    table = table_of(request_, tmp_path)
    cells, shadows = table.cells, table.shadows
    assert [s.name for s in shadows] == ["atis_clc_sgd, seed 0"] * ("sgd" not in methods)
    runs = {each.name: str(finished(tmp_path / "runs", each).path) for each in (*shadows, *cells)}
    trainings, records = Trainings(table.runs, generator, failing=None), table.records
    for _ in range(2):
        budget = Budget(at_once=2)
        assert attack_cells(table, trainings, budget) == []
    sgd = runs["atis_clc_sgd, seed 0"]
    others = sorted(path for path in (runs[each.name] for each in cells) if path != sgd)
    assert len(others) == 2 * len(methods) - ("sgd" in methods)
    assert trainings.made[0] == (sgd, "--lira", "16")
    assert sorted(trainings.made[1:]) == [(each, "--shadows-of", sgd) for each in others]
    assert [json.loads(line)["attack"] for line in lines_in(records)[1]] == ["lira"] * (
        1 + len(others)
    )


def test_too_few_shadow_models_are_refused_before_anything_is_trained(tmp_path):
    refused = edp_mx("experiments.table1", "--lira", 3, "--runs", tmp_path / "runs", code=2)
    assert "--lira is 3; it must be 4 or more" in refused.stderr and not any(tmp_path.iterdir())


def test_the_record_of_an_attack_is_kept_beside_that_of_its_run(tmp_path, generator, request_):
    cell = cells_of(request_)[0]
    run = finished(tmp_path / "runs", cell)
    Trainings(tmp_path / "runs", generator).run(["attack", str(run.path), "--shadow", "x"], None)
    said = edp_mx("runs", "keep", run.path, "--into", tmp_path / "kept").stdout.splitlines()
    name = f"atis_clc_sgd-{cell.trial.hash}-{run_id(cell.trial.records[0])}"
    assert said == [f"{tmp_path}/kept/runs.jsonl: {name}",
                    f"{tmp_path}/kept/attacks.jsonl: {name}, shadow"]  # fmt: skip


def test_a_shadow_that_the_table_has_is_not_trained_beside_it(request_):
    both = request_._replace(corpora=("atis", "snips"), lira=16)
    assert shadow_cells(both) == []
    assert len(shadow_cells(both._replace(methods=("edp_none",)))) == 4


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"auc": None}, "auc"),
        ({"auc": {"value": "much"}}, "auc.*value"),
        ({"tpr_at_fpr": {"0.01": {"value": None}}}, "tpr_at_fpr"),
    ],
)
def test_a_record_of_an_attack_that_was_changed_is_refused_by_its_name(tmp_path, changes, said):
    record = unstructure(attack_of(record_of()))
    record["success"][ALIGNED].update(changes)
    (tmp_path / "attacks.jsonl").write_text(json.dumps(record))
    one_sentence(f"attacks.jsonl, line 1.*{said}", collect_attacks, [tmp_path])
