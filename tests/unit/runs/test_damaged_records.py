"""A record of another type anywhere is refused in a sentence, or read like any other."""

import copy
import json

import pytest
from support.records import attack_of, kept, record_of
from support.times import times_row

from edp_mx.errors import UserError
from edp_mx.reports.records_page import environments_of
from edp_mx.reports.run_list import list_runs
from edp_mx.runs.attack_records import collect_attacks
from edp_mx.runs.expected_scores import exact_runs
from edp_mx.runs.records import SORTS, collect, select
from edp_mx.runtime.structured import unstructure
from experiments.pages.table1 import table1
from experiments.pages.table2 import table2_page
from experiments.tables.query import query
from experiments.tables.times import read_times

GONE = object()
OTHERS = [GONE, None, True, "x", -1, [1], {"a": 1}]
RECORD = {**unstructure(record_of()), "machine": {"cores": 2, "packages": {"numpy": "1"},
                                         "blas": {"numpy": {"kernels": "Haswell"}}},
          "by_epoch": {"epoch": [1, 2], "loss": [1.0, None]}}  # fmt: skip
ATTACK = unstructure(
    attack_of(
        record_of(), title="lira", shadows=4, roc={"fpr": [0.1, 1], "tpr": {"lira": [0.2, 1]}}
    )
)


def places(value, place=()):
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if (
        isinstance(value, list)) else ()  # fmt: skip
    for key, each in inner:
        yield from places(each, (*place, key))


def changed(value, place, other):
    value = copy.deepcopy(value)
    inner = value
    for key in place[:-1]:
        inner = inner[key]
    if other is GONE:
        del inner[place[-1]]
    else:
        inner[place[-1]] = other
    return value


def read_records(folder):
    found = collect([folder])
    for sort in SORTS:
        select(found, [], sort)
    list_runs(found)
    records = [each.record for each in found]
    exact_runs(records)
    entries = query(records, collect_attacks([folder]))
    table1(entries, list(entries))
    environments_of(each.machine for each in records)


def read_table2(folder):
    table2_page(read_times(folder / "times.json"), [])


@pytest.mark.parametrize("name, value, read", [
    ("0.json", RECORD, read_records),
    ("attacks.jsonl", ATTACK, read_records),
    ("times.json", [times_row()], read_table2),
], ids=["record", "attack", "times"])  # fmt: skip
def test_no_damage_is_a_fault_of_the_program(name, value, read, tmp_path):
    kept(tmp_path, [record_of(), record_of(mechanism="none")])
    (tmp_path / name).write_text(json.dumps(value))
    read(tmp_path)
    refused = 0
    for place in list(places(value))[1:]:
        for other in OTHERS:
            (tmp_path / name).write_text(json.dumps(changed(value, place, other)))
            try:
                read(tmp_path)
            except UserError as error:
                refused += 1
                assert "\n" not in str(error)
                assert name in str(error) or place[-1] == "family"
    assert refused >= 100


def test_columns_of_different_lengths_are_refused(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(changed(RECORD, ("by_epoch", "epoch"), [1])))
    with pytest.raises(UserError, match=r"a\.json: by_epoch has columns that differ in length"):
        collect([tmp_path])
