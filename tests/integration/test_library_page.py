"""The programs of docs/library.md run as they stand, each by itself."""

import json
import re
import sys

import pytest
from support.documentation import ROOT, blocks, execute

PAGE = ROOT / "docs" / "library.md"


def run(number, folder):
    (folder / "mine.py").write_text(blocks(PAGE, "python")[number])
    return execute(f"{sys.executable} mine.py", folder)


def test_digits(tmp_path):
    (accuracy, epsilon) = re.fullmatch(
        r"(\d+)% at epsilon ([\d.]+) and delta 0.0001\n", run(0, tmp_path)
    ).groups()
    assert int(accuracy) > 80 and float(epsilon) == 8.0


def test_a_tagger_whose_folder_account_reads(tmp_path):
    *epochs, last = run(1, tmp_path).splitlines()
    assert len(epochs) == 4 and epochs[-1].endswith("epsilon 8.00")
    assert last.endswith("clipped by ghost norms")
    counted = json.loads(execute("edp-mx account tagger --json", tmp_path))
    assert counted["holds"]["epsilon"] == pytest.approx(8.0, abs=1e-3)
    (again,) = run(1, tmp_path).splitlines()  # nothing is left to train
    assert again == last


def test_a_bert(tmp_path):
    assert run(2, tmp_path) == "epsilon 8.00, clipped by ghost norms\n"


def test_there_are_three_programs():
    assert len(blocks(PAGE, "python")) == 3
