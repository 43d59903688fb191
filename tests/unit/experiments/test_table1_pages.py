"""The shipped pages of Table 1 are what the shipped records make."""

import re

import pytest
from support.commands import edp_mx
from support.documentation import ROOT


@pytest.mark.parametrize("page", ["table1", "table1_full_size"])
def test_the_page_is_what_its_command_makes_of_the_records(page, tmp_path, monkeypatch):
    written, out = (ROOT / "results" / f"{page}.md").read_text("utf-8"), tmp_path / "page.md"
    command = re.search(r"python -m (experiments\.table1) (.*?)`", written)
    monkeypatch.chdir(ROOT)
    edp_mx(command[1], *command[2].split(), "--dry-run", "--runs", tmp_path / "runs",
           "--out", out)  # fmt: skip
    assert out.read_text("utf-8") == written
