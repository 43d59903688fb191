"""JSON that nothing else could write again, or that would fill a memory, is refused."""

import subprocess
import time
from pathlib import Path

import pytest
from support.refusals import one_sentence

from edp_mx.runtime import json_text
from edp_mx.runtime.json_text import NotJSON, parse_json, read_json


@pytest.mark.parametrize(
    "text, value",
    [
        ('{"a": [1, 2.5, null, "\\ud83d\\ude00"]}', {"a": [1, 2.5, None, "😀"]}),
        ('"\\\\ud800"', "\\ud800"),  # an escaped backslash, then letters
        ('"[[["', "[[["),
        ("[" * 99 + "]" * 99, None),
        (b'"\xc3\xa9"', "é"),
        ('"' + "9" * 5000 + '"', "9" * 5000),
    ],
)
def test_what_is_json_is_read(text, value):
    assert value is None or parse_json(text) == value
    parse_json(text)


@pytest.mark.parametrize(
    "text, reason, line",
    [
        ("[" * 200_000, "nested too deeply", None),
        ("[" * 400 + "]" * 400, "nested more than 100 deep", None),
        ('{"a":' * 200 + "1" + "}" * 200, "nested more than 100 deep", None),
        ('[\n"\\ud800"]', "half a character", 2),
        ('{\n\n"\\udc00x": 1}', "half a character", 3),
        ('"\\\\ud83d\\ude00"', "half a character", 1),  # behind an escaped backslash
        ("[1,\n" + "9" * 5000 + "]", "a number of 5000 digits", None),
        ("-" + "9" * 31, "a number of 32 digits", None),
        ("1e999", "more than a number can hold", None),
        ("NaN", "NaN is no number", None),
        ('[{"a": {"b": 1, "c": 2, "b": 1}}]', "the key 'b' is there twice", None),
        ("[-Infinity]", "-Infinity is no number", None),
        (b'{"a":\n"\xff"}', "not UTF-8 text, byte 7", 2),
        (b"\xff\xfe[\x00]\x00", "not UTF-8", 1),
        ('{"a": 1,\n}', "Expecting property name", 2),
        ("", "Expecting value", 1),
    ],
)
def test_what_is_none_is_refused_with_its_line(text, reason, line, tmp_path):
    with pytest.raises(NotJSON, match=reason) as error:
        parse_json(text)
    assert error.value.line == line
    file = tmp_path / "a.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    told = one_sentence(reason, read_json, file)
    assert told.startswith(f"{file}, line {line}: " if line else f"{file}: ")


def test_too_many_values_and_too_many_bytes_are_not_read(monkeypatch, tmp_path):
    with pytest.raises(NotJSON, match="lists and objects"):
        parse_json("[" + "{}," * 2**21 + "0]")
    monkeypatch.setattr(json_text, "MOST_BYTES", 100)
    (tmp_path / "a.json").write_text(f'"{"a" * 100}"')
    one_sentence("longer than 100 bytes", read_json, tmp_path / "a.json")


def test_a_pipe_is_not_waited_for(tmp_path):
    subprocess.run(["mkfifo", tmp_path / "a.json"], check=True)
    one_sentence("is not a file", read_json, tmp_path / "a.json")


def test_a_large_hostile_text_costs_little(tmp_path):
    before = time.process_time()
    with pytest.raises(NotJSON):
        parse_json('["' + "[" * 20_000_000 + '"' + ",[" * 2_000_000)
    assert time.process_time() - before < 20


def test_nothing_else_reads_json():
    """Every other module goes through `json_text`, apart from what this program has just made.

    Scripts that an export ships do without this program.
    """
    found = subprocess.run(
        ["grep", "-rlE", r"json\.loads?\(", "--include=*.py", "--exclude-dir=shipped", "edp_mx"],
        capture_output=True, text=True, check=False,
        cwd=Path(json_text.__file__).parents[2],
    )  # fmt: skip
    ours = {"edp_mx/runs/record.py", "edp_mx/data/fasttext_training.py",
            "edp_mx/dp/privacy/ghost/graph.py", "edp_mx/runtime/messages.py",
            "edp_mx/data/byte_level_bpe.py"}  # fmt: skip
    assert set(found.stdout.split()) == ours
