"""Records of finished runs: their hash, where they are found, and what is filtered."""

import json

import pytest
import yaml
from support.commands import edp_mx

from edp_mx.config import load_config
from edp_mx.errors import UserError
from edp_mx.reports.run_list import list_runs
from edp_mx.runs import record as records
from edp_mx.runs.attack_records import collect_attacks, keep_whole
from edp_mx.runs.record import keep, records_like, run_id, settings_hash, settings_of
from edp_mx.runs.records import collect, select
from edp_mx.runs.run_directory import RunDirectory

BOUND = {"epsilon": 8.0, "log10_epsilon": 0.903}
INFINITE = {"epsilon": None, "log10_epsilon": None}


def config_of(tmp_path, *settings):
    file = tmp_path / "empty.yaml"
    file.write_text("training: {epochs: 3}\n")
    return load_config(file, settings)


def hash_of(tmp_path, *settings, workers=2):
    return settings_hash(settings_of(config_of(tmp_path, *settings)), workers)


def made(name="a", *, settings=None, workers=2, corpus="atis", ser=0.1, corpus_files=None):
    settings = {"data.corpus": corpus, "training.epochs": 3, **(settings or {})}
    scores = {"ser": ser, "intent_accuracy": 1 - ser, "slot_f1": 0.5}
    return {
        "name": name, "hash": settings_hash(settings, workers), "results_version": 1,
        "date": "2026-01-02", "corpus": corpus, "family": "clc", "mechanism": "dp_sgd",
        "test": scores, "validation": scores, "as_published": BOUND, "holds": INFINITE,
        "holds_if": {**BOUND, "conditions": ["the vocabulary were public " * 4]}, "delta": 1e-4,
        "n": 100, "epochs": 3, "steps": 30, "seconds": 5.0, "workers": workers, "machine": {},
        "corpus_files": corpus_files, "settings": settings,
    }  # fmt: skip


def finished_run(path, record):
    """A run directory with no more than what is looked at here."""
    path.mkdir(parents=True)
    (path / "config.yaml").write_text("name: x\n")
    for name, value in (("results", {"test": {}}), ("record", record)):
        (path / f"{name}.json").write_text(json.dumps(value))
    return RunDirectory(path)


def test_the_hash_is_of_what_decides_a_result(tmp_path):
    plain = hash_of(tmp_path)
    assert len(plain) == 16 and plain == hash_of(tmp_path, "training.epochs=3")
    assert plain == hash_of(tmp_path, "name=other", "training.watchdog_seconds=5")
    assert plain == hash_of(tmp_path, "training.batch_size=64")  # the default, said aloud
    changed = ["training.epochs=4", "training.seed=1", "model.dropout=0.123", "data.corpus=snips",
               "model.family=bert", "privacy.mechanism=none"]  # fmt: skip
    others = [hash_of(tmp_path, each) for each in changed] + [hash_of(tmp_path, workers=1)]
    assert len({plain, *others}) == 8


def test_another_version_of_the_results_has_other_hashes(tmp_path, monkeypatch):
    plain = hash_of(tmp_path)
    monkeypatch.setattr(records, "RESULTS_VERSION", records.RESULTS_VERSION + 1)
    assert hash_of(tmp_path) != plain


def test_what_lies_at_a_path_counts_and_the_path_does_not(tmp_path):
    for name, text in (("a", "one"), ("b", "one"), ("c", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights.npz").write_text(text)
        (tmp_path / name / "rank_0.log").write_text(name)
    a, b, c = (hash_of(tmp_path, f"model.start_from={tmp_path / name}") for name in "abc")
    assert a == b != c
    settings = settings_of(config_of(tmp_path, f"model.start_from={tmp_path / 'a'}"))
    assert str(tmp_path) not in json.dumps(settings)


def test_a_saved_configuration_has_the_hash_of_the_one_it_was_saved_from(tmp_path):
    from edp_mx.config import dump_config

    config = config_of(tmp_path, "privacy.mechanism=dp_sgd", "privacy.target_epsilon=3")
    saved = tmp_path / "saved.yaml"
    saved.write_text(dump_config(config))
    assert settings_of(load_config(saved)) == settings_of(config)


def found_among(known, config, workers=2):
    return list(records_like(known, config, workers=workers))


def test_records_are_found_by_their_settings_and_workers(tmp_path):
    config = config_of(tmp_path, "training.epochs=5")
    record = made(settings=settings_of(config))
    again = {**record, "date": "2030-01-01"}
    assert found_among([made(), record, again], config) == [record, again]
    assert found_among([made(), record], config, workers=1) == []
    assert found_among([record], config_of(tmp_path)) == []


def test_a_record_of_a_corpus_of_ones_own_needs_the_same_files(tmp_path):
    corpus = tmp_path / "mine.jsonl"
    corpus.write_text("a secret")
    config = config_of(tmp_path, f"data.path={corpus}")
    settings = settings_of(config)
    assert records.content_of(corpus) not in json.dumps(settings)  # it would confirm a guess
    known = records.keyed(records.content_of(corpus))
    record = made(settings=settings, corpus_files=known)
    assert found_among([record], config) == [record]
    elsewhere = {**record, "corpus_files": {**known, "key": "another machine's"}}
    assert found_among([elsewhere], config) == []
    corpus.write_text("another secret")
    assert found_among([record], config) == []


def test_runs_and_records_are_collected_once_and_filtered(tmp_path):
    first, second = made("a", ser=0.3), made("b", corpus="snips", ser=0.2)
    finished_run(tmp_path / "runs" / "deep" / "a", first)
    run = finished_run(tmp_path / "runs" / "b", second)
    (tmp_path / "runs" / "b" / "results.json").unlink()
    with pytest.raises(UserError, match="is not finished"):
        keep(run, tmp_path / "kept")
    run.write("results", {"test": {}})
    path = keep(run, tmp_path / "kept")
    assert path.name == f"b-{second['hash']}-{run_id(second)}.json"
    assert json.loads(path.read_text()) == second
    assert keep(run, tmp_path / "kept") == path
    (tmp_path / "kept" / "performance.json").write_text("[1]")
    found = collect([tmp_path / "runs", tmp_path / "kept"])
    assert [each.record["name"] for each in select(found, [], "ser")] == ["b", "a"]
    for wheres, names in (
        (["corpus=snips"], "b"),
        (["corpus=*i*", "workers=2"], "ab"),
        (["training.epochs=3.0"], "ab"),
        (["training.batch_size=64"], "ab"),  # left at its default
        (["model.start_from=null", "corpus=atis"], "a"),
        (["training.epochs=4"], ""),
    ):
        assert [each.record["name"] for each in select(found, wheres)] == list(names)
    for wrong in (["corpora=atis"], ["corpus"]):
        with pytest.raises(UserError, match="--where"):
            select(found, wrong)


def test_a_second_run_with_the_same_settings_is_kept_beside_the_first(tmp_path):
    """The first by an older version, whose attack does not say which of the two it was made on."""
    first, kept = made("a", ser=0.3), tmp_path / "kept"
    kept.mkdir()
    stem = f"a-{first['hash']}"
    (kept / f"{stem}.json").write_text(json.dumps(first))
    success = {"x": {"auc": {"value": 0.6}, "tpr_at_fpr": {"0.01": {"value": 0.02}}}}
    attack = {"attack": "t", "attacked_run": first["hash"], "name": "a", "success": success}
    (kept / f"{stem}-attack-t.json").write_text(json.dumps(attack))
    before = {path: path.read_text() for path in kept.iterdir()}

    second = {**first, "test": {**first["test"], "ser": 0.2}}
    run = finished_run(tmp_path / "run", second)
    folder = run.path / "attack-t"
    folder.mkdir()
    result = {**success["x"], "name": "x", "members": 9, "non_members": 9, "confidence": 0.95}
    result["auc"] = {"value": 0.7}
    outcome = {"attack": "t", "facts": {}, "results": [result]}
    (folder / "attack.json").write_text(json.dumps(outcome))
    (folder / "roc.csv").write_text("attack,fpr,tpr\nx,0.0,0.25\nx,1.0,1.0\n")
    for _ in range(2):
        said = edp_mx("runs", "keep", run.path, "--into", kept).stdout.split()
        stem_2 = f"{stem}-{run_id(second)}"
        assert said == [str(kept / f"{stem_2}.json"), str(kept / f"{stem_2}-attack-t.json")]
        assert {path: path.read_text() for path in before} == before
        assert len(list(kept.iterdir())) == 4

    assert [each.record["test"]["ser"] for each in select(collect([kept]), [], "ser")] == [0.2, 0.3]
    found = {each["run"]: each["success"]["x"]["auc"]["value"] for each in collect_attacks([kept])}
    assert found == {run_id(first): 0.6, run_id(second): 0.7}

    old = finished_run(tmp_path / "old", first)  # its record stays where the older version left it
    assert keep_whole(old, kept) == [kept / f"{stem}.json"] and len(list(kept.iterdir())) == 4


def test_a_record_without_epochs_gets_those_of_its_run_s_log(tmp_path):
    old = made("a")
    run = finished_run(tmp_path / "run", old)
    path = keep(run, tmp_path / "kept")
    assert json.loads(path.read_text()) == old  # there is no log either
    rows = [{"epoch": i, "ser": 100 / (i + 1), "loss": 1.23456 * i, "noise_multiplier": None,
             "clipped_fraction": 0.5, "seconds": 3.0, "processor_seconds": None if i == 7 else 2.5}
            for i in range(200)]  # fmt: skip
    run.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for places in (["kept", "run"], ["run", "kept"]):
        (found,) = collect([tmp_path / name for name in places])
        kept = found.record["by_epoch"]
        assert list(kept) == ["epoch", "loss", "validation_ser", "clipped_fraction",
                              "processor_seconds"]  # fmt: skip
        assert len(kept["epoch"]) == 60 and (kept["epoch"][0], kept["epoch"][-1]) == (1, 200)
        assert kept["epoch"] == sorted(set(kept["epoch"]))
        for epoch, loss, ser in zip(kept["epoch"], kept["loss"], kept["validation_ser"]):
            assert loss == pytest.approx(1.23456 * (epoch - 1), rel=1e-3)
            assert ser == pytest.approx(1 / epoch, rel=1e-3)
    assert "by_epoch" in json.loads(keep(run, tmp_path / "kept").read_text())
    assert path.stat().st_size < 10_000


def test_an_attack_is_kept_once_its_curve_is_drawn(tmp_path):
    """The numbers are written a second before the curve."""
    run = finished_run(tmp_path / "run", made("a"))
    folder = run.path / "attack-threshold"
    found = {"name": "loss", "auc": 0.5, "tpr_at_fpr": {}, "members": 9, "non_members": 9}
    folder.mkdir()
    (folder / "attack.json").write_text(
        json.dumps({"attack": "t", "facts": {}, "results": [{**found, "confidence": 0.95}]})
    )
    assert len(keep_whole(run, tmp_path / "kept")) == 1
    (folder / "roc.csv").write_text("attack,fpr,tpr\nloss,0.0,0.25\nloss,1.0,1.0\n")
    _, path = keep_whole(run, tmp_path / "kept")
    assert json.loads(path.read_text())["roc"]["tpr"]["loss"][0] == 0.25


def test_the_table_fits_a_terminal(tmp_path):
    name = "nlu_eval_clc_edp_exponential-20260101-120000"
    finished_run(tmp_path / name, made(name, ser=2.75))
    table = list_runs(collect([tmp_path]))
    assert all(len(line) <= 80 for line in table.splitlines()), table
    assert "nlu_" in table and "275.00" in table and "∞ (8*)" in table


def test_a_run_from_before_there_were_records_is_listed(tmp_path):
    run = RunDirectory(tmp_path / "old")
    config = {
        "name": "old",
        "data": {"corpus": "atis", "path": "/private/place"},
        "model": {},
        "privacy": {"mechanism": "none"},
        "training": {"checkpoint": "best_on_validation"},
    }
    run.path.mkdir()
    run.config.write_text(yaml.safe_dump(config))
    rows = [{"ser": ser, "intent_accuracy": 90.0, "slot_f1": 50.0} for ser in (40.0, 30.0, 35.0)]
    run.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run.write("environment", {"num_workers": 2, "started": "2025-01-02T03:04:05+0000"})
    bounds = dict.fromkeys(("as_published", "holds", "holds_if"), INFINITE)
    run.write("privacy", {**bounds, "delta": 0.1, "num_examples": 9, "steps": 12, "epochs": 4})
    test = {"ser": 0.25, "intent_accuracy": 0.5, "slot_f1": 0.5}
    run.write("results", {"test": test, "training_seconds": 7.04})
    (found,) = collect([tmp_path])
    assert found.record["hash"] is None and found.record["test"] == test
    assert found.record["validation"] == {"ser": 0.3, "intent_accuracy": 0.9, "slot_f1": 0.5}
    assert found.record["by_epoch"] == {"epoch": [1, 2, 3], "validation_ser": [0.4, 0.3, 0.35]}
    assert (found.record["epochs"], found.record["steps"], found.record["date"]) == (
        3, 9, "2025-01-02")  # fmt: skip
    assert "private" not in json.dumps(found.record)


def test_a_checkpoint_is_the_same_whoever_keyed_its_origin(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    without = records.content_of(tmp_path)
    (tmp_path / "origin.json").write_text('{"origin": []}')
    assert records.content_of(tmp_path) == without
    (tmp_path / "vocab.txt").write_text("a")
    assert records.content_of(tmp_path) != without
