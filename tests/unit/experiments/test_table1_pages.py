"""The shipped pages of Table 1 are what the shipped records make."""

import re

import pytest
from support.commands import edp_mx
from support.documentation import ROOT

from edp_mx.runs.records import collect
from experiments.pages.table1_page import from_other_starts
from experiments.tables.methods import method_of
from experiments.tables.query import query


@pytest.mark.parametrize("page", ["table1", "table1_full_size"])
def test_the_page_is_what_its_command_makes_of_the_records(page, tmp_path, monkeypatch):
    written, out = (ROOT / "results" / f"{page}.md").read_text("utf-8"), tmp_path / "page.md"
    command = re.search(r"python -m (experiments\.table1) (.*?)`", written)
    monkeypatch.chdir(ROOT)
    edp_mx(command[1], *command[2].split(), "--dry-run", "--runs", tmp_path / "runs",
           "--out", out)  # fmt: skip
    assert out.read_text("utf-8") == written


def test_runs_from_another_pre_training_differ_in_nothing_else_and_count_in_no_row():
    records = [each.record for each in collect([ROOT / "results"])]
    small = [each for each in records if each.settings.get("model.hidden_size") == 128]
    found = query(small)
    used = {id(record) for entry in found.values() for record in entry.records}
    others = from_other_starts(small, found)
    assert {each.corpus for each in others} >= {"atis", "dstc8"}
    for each in others:
        row = found[each.family, each.corpus, method_of(each)].records[0]
        kept = {k: v for k, v in each.settings.items() if not k.startswith("privacy.")}
        of_row = {k: v for k, v in row.settings.items() if not k.startswith("privacy.")}
        differing = {k for k in kept.keys() | of_row.keys() if kept.get(k) != of_row.get(k)}
        assert {"model.checkpoint"} <= differing <= {"model.checkpoint", "training.seed"}
        assert id(each) not in used
