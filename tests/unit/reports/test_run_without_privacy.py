"""The run without privacy beside a run: of the same utterances, chosen by validation."""

import json

from support.records import record_of

from edp_mx.reports.baselines import describe_without_privacy, without_privacy
from edp_mx.runs.run_directory import RunDirectory

PARTS = {part: {"key": "k", "digest": part} for part in ("train", "validation", "test")}


def made(tmp_path, name, parts=PARTS, **changes):
    run = RunDirectory(tmp_path / name)
    run.path.mkdir()
    run.config.write_text(f"name: {name}\n")
    record = record_of("mine", "clc", **{"mechanism": "none", **changes})
    run.write("environment", {"fingerprints": parts})
    run.write("record", record)
    run.write("results", {"test": record.test})
    return run


def test_it_has_the_same_parts_no_mechanism_and_the_best_validation(tmp_path):
    mine = made(tmp_path, "mine", mechanism="dp_sgd", ser=0.5)
    assert without_privacy(mine) is None
    made(tmp_path, "other_split", {**PARTS, "train": {"key": "k", "digest": "x"}}, ser=0.01)
    made(tmp_path, "other_mechanism", mechanism="edp_sgd", ser=0.01)
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "results.json").write_text("[]")
    (tmp_path / "broken" / "environment.json").write_text(json.dumps({"fingerprints": PARTS}))
    (tmp_path / "a file").write_text("")
    assert without_privacy(mine) is None and describe_without_privacy([mine]) == []
    made(tmp_path, "worse", ser=0.1, validation=0.3)
    better = made(tmp_path, "better", ser=0.2, validation=0.2)  # its test part says otherwise
    assert without_privacy(mine).path == better.path
    record = record_of("mine", "bert", mechanism="none", validation=0.1)
    made(tmp_path, "of_another_family").write("record", record)  # comes last, though it is better
    assert without_privacy(mine).path == better.path
    lines = describe_without_privacy([mine, made(tmp_path, "mine_2", mechanism="dp_sgd")])
    said = " ".join(line.strip() for line in lines)
    assert said == "without privacy (better): SER 20.00 %, intent accuracy 90.00 %, slot F1 80.00 %"


def test_what_is_compared_already_is_not_repeated(tmp_path):
    runs = [made(tmp_path, "mine", mechanism="dp_sgd"), made(tmp_path, "free")]
    assert describe_without_privacy(runs) == []
    made(tmp_path, "free_2")
    assert describe_without_privacy(runs[1:]) == []  # it is without privacy itself


def test_runs_of_versions_without_fingerprints_have_no_sibling(tmp_path):
    old = made(tmp_path, "old", {}, mechanism="dp_sgd")
    made(tmp_path, "older", {})
    assert without_privacy(old) is None
