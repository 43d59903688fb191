"""Records of finished runs: their hash, where they are found, and what is filtered."""

import json
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest
from support.commands import ROOT, edp_mx
from support.records import attack_of, changed, lines_in
from support.refusals import one_sentence

from edp_mx.config import load_config
from edp_mx.reports.run_list import list_runs
from edp_mx.runs import record as records
from edp_mx.runs.attack_records import collect_attacks, keep_whole
from edp_mx.runs.file_types import Record
from edp_mx.runs.record import by_epoch, records_like, run_id, settings_hash, settings_of
from edp_mx.runs.record_files import put_attacks, put_runs, read_lines
from edp_mx.runs.records import collect, select
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.structured import structure, unstructure

RESULTS = ROOT / "results"
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
    return structure({
        "name": name, "hash": settings_hash(settings, workers), "results_version": 1,
        "date": "2026-01-02", "corpus": corpus, "family": "clc", "mechanism": "dp_sgd",
        "test": scores, "validation": scores, "as_published": BOUND, "holds": INFINITE,
        "holds_if": {**BOUND, "conditions": ["the vocabulary were public " * 4]}, "delta": 1e-4,
        "n": 100, "epochs": 3, "steps": 30, "seconds": 5.0, "workers": workers, "machine": {},
        "corpus_files": corpus_files, "settings": settings,
    }, Record)  # fmt: skip


def outcome_of(attack, name, success):
    """What is in `attack.json`."""
    result = {**unstructure(success), "name": name, "says": "", "balanced_accuracy": None,
              "best_balanced_accuracy": 0.5}  # fmt: skip
    return {"attack": attack, "run": "a", "facts": {}, "results": [result]}


def finished_run(path, record):
    """A run directory with no more than what is looked at here."""
    path.mkdir(parents=True)
    (path / "config.yaml").write_text("name: x\n")
    for name, value in (("results", {"test": {}}), ("record", unstructure(record))):
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
    again = changed(record, date="2030-01-01")
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
    elsewhere = changed(record, corpus_files={**known, "key": "another machine's"})
    assert found_among([elsewhere], config) == []
    corpus.write_text("another secret")
    assert found_among([record], config) == []


def test_runs_and_records_are_collected_once_and_filtered(tmp_path):
    first, second = made("a", ser=0.3), made("b", corpus="snips", ser=0.2)
    finished_run(tmp_path / "runs" / "deep" / "a", first)
    run = finished_run(tmp_path / "runs" / "b", second)
    (tmp_path / "runs" / "b" / "results.json").unlink()
    one_sentence("is not finished", keep_whole, run, tmp_path / "kept")
    run.write("results", {"test": {}})
    said = [f"{tmp_path}/kept/runs.jsonl: b-{second.hash}-{run_id(second)}"]
    for _ in range(2):
        assert keep_whole(run, tmp_path / "kept") == said
        assert list(map(json.loads, lines_in(tmp_path / "kept")[0])) == [unstructure(second)]
    (tmp_path / "kept" / "performance.json").write_text("[1]")
    found = collect([tmp_path / "runs", tmp_path / "kept"])
    assert [each.record.name for each in select(found, [], "score")] == ["b", "a"]
    for wheres, names in (
        (["corpus=snips"], "b"),
        (["corpus=*i*", "workers=2"], "ab"),
        (["training.epochs=3.0"], "ab"),
        (["training.batch_size=64"], "ab"),  # left at its default
        (["model.start_from=null", "corpus=atis"], "a"),
        (["training.epochs=4"], ""),
    ):
        assert [each.record.name for each in select(found, wheres)] == list(names)
    for wrong in (["corpora=atis"], ["corpus"]):
        one_sentence("--where", select, found, wrong)


def test_a_damaged_run_is_left_out_with_a_remark_unless_it_was_named_itself(tmp_path, caplog):
    for name in ("a", "b"):
        finished_run(tmp_path / "runs" / name, made(name))
    (tmp_path / "runs" / "a" / "results.json").write_text("{")
    assert [each.record.name for each in collect([tmp_path / "runs"])] == ["b"]
    assert f"{tmp_path}/runs/a is left out: " in caplog.text
    one_sentence("results.json", collect, [tmp_path / "runs" / "a"])


def test_a_second_run_with_the_same_settings_is_kept_beside_the_first(tmp_path):
    """The first with its attack in files of their own."""
    first, old, kept = made("a", ser=0.3), tmp_path / "old", tmp_path / "kept"
    old.mkdir()
    (old / "a.json").write_text(json.dumps(unstructure(first)))
    attack = unstructure(attack_of(first, "t", "x"))
    (old / "attacks.jsonl").write_text(json.dumps(attack))
    add = ["experiments.records", "add", old, "--into", kept]
    assert edp_mx(*add).stdout == "1 run and 1 attack added; there already were 0 and 0\n"
    assert edp_mx(*add).stdout == "0 runs and 0 attacks added; there already were 1 and 1\n"
    before = lines_in(kept)
    assert [[json.loads(line) for line in lines] for lines in before] == [
        [unstructure(first)],
        [attack],
    ]

    second = changed(first, test={**first.test, "ser": 0.2})
    run = finished_run(tmp_path / "run", second)
    folder = run.path / "attack-t"
    folder.mkdir()
    success = attack_of(first, "t", "x", auc=0.7).success["x"]
    (folder / "attack.json").write_text(json.dumps(outcome_of("t", "x", success)))
    (folder / "roc.csv").write_text("attack,fpr,tpr\nx,0.0,0.25\nx,1.0,1.0\n")
    for _ in range(2):
        edp_mx("runs", "keep", run.path, "--into", kept)
        for lines, one in zip(lines_in(kept), before):
            assert len(lines) == 2 and set(one) < set(lines)

    assert [each.record.test["ser"] for each in select(collect([kept]), [], "score")] == [0.2, 0.3]
    found = {each.run: each.success["x"].auc.value for each in collect_attacks([kept])}
    assert found == {run_id(first): 0.6, run_id(second): 0.7}

    (old / "a.json").write_text(json.dumps(unstructure(changed(first, delta=2e-4))))
    whole = lines_in(kept)
    said = edp_mx(*add, code=2).stderr
    assert f"a ({run_id(first)}) exists and differs, so nothing was added" in said
    said = edp_mx(*add[:3], "--into", tmp_path / "grids.jsonl", code=2).stderr
    assert "there are attacks too" in said and lines_in(kept) == whole


def test_records_keep_their_order_so_that_a_new_one_is_one_added_line(tmp_path):
    names = ["b", "a_b", "c", "a", "a-b"]
    for name in names:
        before = lines_in(tmp_path)[0]
        put_runs(tmp_path / "runs.jsonl", [made(name)])
        after = lines_in(tmp_path)[0]
        assert [line for line in after if line in before] == before
    assert [json.loads(line)["name"] for line in after] == ["a-b", "a", "a_b", "b", "c"]
    assert after[0].startswith('{"name": "a-b", ') and (tmp_path / "runs.jsonl").stat().st_size


@pytest.mark.parametrize("folder", [RESULTS, RESULTS / "tradeoff"], ids=lambda path: path.name)
def test_committed_records_are_written_again_byte_for_byte(folder, tmp_path):
    for name, put in (("runs.jsonl", put_runs), ("attacks.jsonl", put_attacks)):
        put(tmp_path / name, read_lines(folder / name))
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def add_one(name, folder):
    put_runs(folder / "runs.jsonl", [made(name)])


def test_two_processes_that_keep_records_at_once_lose_none(tmp_path):
    names = [f"run_{number}" for number in range(12)]
    with ProcessPoolExecutor(4, get_context("fork")) as pool:
        list(pool.map(partial(add_one, folder=tmp_path), names))
    assert {json.loads(line)["name"] for line in lines_in(tmp_path)[0]} == {*names}


@pytest.mark.parametrize("damage, said", [
    (lambda line: line[: len(line) // 2], "not JSON"),
    (lambda line: line.replace('"n": 100', '"n": "many"'), "n: 'many' is not a whole number"),
    (lambda _: '{"a": 1}', "is no record"),
])  # fmt: skip
def test_a_torn_line_is_refused_with_its_file_and_number_and_nothing_is_added(
    tmp_path, damage, said
):
    path = tmp_path / "runs.jsonl"
    for name in "abc":
        add_one(name, tmp_path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], damage(lines[2])]))
    whole = path.read_bytes()
    for read in (lambda: collect([tmp_path]), lambda: add_one("d", tmp_path)):
        one_sentence(rf"runs\.jsonl, line 3.*{said}", read)
    assert path.read_bytes() == whole


def test_a_file_with_records_of_runs_and_attacks_loses_none(tmp_path):
    path = tmp_path / "both.jsonl"
    put_attacks(path, [attack_of(made("a"))])
    put_runs(tmp_path / "runs.jsonl", [made("a")])
    path.write_text(path.read_text() + (tmp_path / "runs.jsonl").read_text())
    whole = path.read_bytes()
    one_sentence("holds other records, too", put_runs, path, [made("b")])
    one_sentence("holds other records, too", put_attacks, path, [attack_of(made("b"))])
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "options, said",
    [
        (("keep", "{run}", "--where", "corpus=atis"), "leave out --where"),
        (("keep", "{run}", "--sort", "score", "--json"), "leave out --sort, --json"),
        (("plot", "{run}", "--out", "{run}", "--json"), "leave out --json"),
    ],
)
def test_options_that_nothing_would_read_are_refused(tmp_path, options, said):
    run = finished_run(tmp_path / "run", made("a"))
    assert said in edp_mx("runs", *(each.format(run=run.path) for each in options), code=2).stderr


def test_what_lies_below_kept_records_is_not_among_them(tmp_path):
    """Such as those of the trade-off below results/."""
    add_one("a", tmp_path)
    add_one("b", tmp_path / "tradeoff")
    (found,) = collect([tmp_path])
    assert found.place == tmp_path / "runs.jsonl" / f"a-{found.record.hash}-{run_id(made('a'))}"


def test_a_record_has_sixty_epochs_of_its_run_s_log_at_most():
    rows = [{"epoch": 1 + i, "ser": 100 / (i + 1), "loss": 1.23456 * i, "noise_multiplier": None,
             "clipped_fraction": 0.5, "processor_seconds": None if i == 7 else 2.5}
            for i in range(200)]  # fmt: skip
    kept = by_epoch(rows, made().task)
    assert list(kept) == ["epoch", "loss", "validation_ser", "clipped_fraction",
                          "processor_seconds"]  # fmt: skip
    assert len(kept["epoch"]) == 60 and (kept["epoch"][0], kept["epoch"][-1]) == (1, 200)
    assert list(kept["epoch"]) == sorted(set(kept["epoch"]))
    for epoch, loss, ser in zip(kept["epoch"], kept["loss"], kept["validation_ser"]):
        assert loss == pytest.approx(1.23456 * (epoch - 1), rel=1e-3)
        assert ser == pytest.approx(1 / epoch, rel=1e-3)


def test_a_record_has_the_scores_of_what_was_written(tmp_path):
    run = finished_run(tmp_path / "run", made("a"))
    keep_whole(run, tmp_path / "kept")
    run.write("generated", {"bleu": 0.25, "beams": 4})
    keep_whole(run, tmp_path / "kept")
    (line,) = lines_in(tmp_path / "kept")[0]  # in place of the one before
    assert json.loads(line)["written"]["bleu"] == 0.25
    (found,) = collect([tmp_path / "kept", run.path])
    assert found.record.written == {"bleu": 0.25, "beams": 4}


def test_an_attack_is_kept_once_its_curve_is_drawn(tmp_path):
    """The numbers are written a second before the curve."""
    run = finished_run(tmp_path / "run", made("a"))
    folder = run.path / "attack-threshold"
    success = attack_of(made("a")).success["LiRA online, aligned"]
    folder.mkdir()
    (folder / "attack.json").write_text(json.dumps(outcome_of("t", "loss", success)))
    assert len(keep_whole(run, tmp_path / "kept")) == 1
    (folder / "roc.csv").write_text("attack,fpr,tpr\nloss,0.0,0.25\nloss,1.0,1.0\n")
    assert len(keep_whole(run, tmp_path / "kept")) == 2
    (line,) = lines_in(tmp_path / "kept")[1]
    assert json.loads(line)["roc"]["tpr"]["loss"][0] == 0.25


def test_the_table_fits_a_terminal(tmp_path):
    name = "nlu_eval_clc_edp_exponential-20260101-120000"
    finished_run(tmp_path / name, made(name, ser=2.75))
    table = list_runs(collect([tmp_path]))
    assert all(len(line) <= 80 for line in table.splitlines()), table
    assert "nlu_" in table and "275.00" in table and "8ᵃ" in table


def test_a_checkpoint_is_the_same_whoever_keyed_its_origin(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    without = records.content_of(tmp_path)
    (tmp_path / "origin.json").write_text('{"origin": []}')
    assert records.content_of(tmp_path) == without
    (tmp_path / "vocab.txt").write_text("a")
    assert records.content_of(tmp_path) != without
