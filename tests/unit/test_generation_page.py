"""docs/generation.md: its rows are read as it says, and its code runs."""

import contextlib
import io
import re

import pytest
from support.documentation import ROOT, blocks

from edp_mx.data.readers import read_utterances
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.errors import UserError
from edp_mx.tasks.causal_lm.task import split_reply

PAGE = ROOT / "docs" / "generation.md"
ROWS = [
    [re.findall(r"`([^`]+)`", cell) for cell in line.strip("| ").split(" | ")]
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ")
]


def row(beginning):
    """The last two cells of the row of the table in which an example begins so."""
    return next(cells[1:] for cells in ROWS if cells[1:] and cells[1][:1] and
                cells[1][0].startswith(beginning))  # fmt: skip


def prompt_of(path, text, **columns):
    path.write_text(text)
    (found,) = read_utterances(path, columns=ColumnsConfig(**columns))
    return " ".join(split_reply(found.tokens)[0])


def test_each_example_row_is_read_as_the_page_says(tmp_path):
    (own,), _ = row('{"prompt"')
    assert prompt_of(tmp_path / "mine.jsonl", own) == 'city = "Rome"'
    (turn,), prompts = row('{"dialogue"')
    for reading, prompt in zip(("acts", "context"), prompts):
        assert prompt_of(tmp_path / "turns.jsonl", turn, prompt=reading) == prompt
    (meaning,), (prompt,) = row('"name[')
    assert prompt_of(tmp_path / "trainset.csv", f"mr,ref\n{meaning}\n") == prompt
    (triples,), (prompt,) = row('{"tripleset"')
    assert prompt_of(tmp_path / "dart-v1.1.1-full-train.json", f"[{triples}]") == prompt
    (persona, said, reply), (prompt,) = row("1 your persona")
    text = f"{persona}\n{said}\t{reply}\n"
    assert prompt_of(tmp_path / "train_self_original.txt", text) == prompt


def test_its_code_runs():
    (code,) = blocks(PAGE, "python")
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(code, {})
    except UserError as error:
        pytest.skip(str(error))  # the libraries are not installed
    assert "slot errors         0.00%  0 of 1 values missing" in printed.getvalue()
