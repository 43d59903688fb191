"""Configurations that were made to do harm: one sentence each, quickly, in little memory."""

import os
import time

import pytest
from support.refusals import one_sentence

from edp_mx.errors import MOST_QUOTED, MOST_SAID, UserError
from edp_mx.runtime.yaml_tree import override, read_layers, read_mapping

BOMB = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(8 * [f'*{old}'])}]\n" for old, new in zip("abcdefgh", "bcdefghi")
)


@pytest.mark.parametrize(
    "content, words",
    [
        (BOMB, "line 2: not YAML .*an alias; write the value out"),
        ("a: &a {b: *a}\n", "line 1: not YAML .*an alias"),
        ("day: 2001-99-99\n", "not YAML"),
        ("x: !!int x\n", "not YAML"),
        ("x: !!python/object/apply:os.system [ls]\n", "line 1: not YAML"),
        ("[" * 100_000, "not YAML"),
        ("x: 'a\x00b'\n", "not YAML"),
        ("# " + "x" * 2**20, "larger than the 1,048,576 bytes"),
        ("a: 1\nx: 010\n", "line 2: not YAML .010 stands for 8 in YAML; quote it"),
        ("x: 1:30\n", "line 1: not YAML .1:30 stands for 90"),
        ("x: -1:30.5\n", "line 1: not YAML .-1:30.5 stands for -90.5"),
    ],
    ids=[
        "aliases",
        "of itself",
        "date",
        "tag",
        "object",
        "deep",
        "NUL",
        "large",
        "octal",
        "time",
        "seconds",
    ],
)
def test_what_no_configuration_holds_is_refused(tmp_path, content, words):
    path = tmp_path / "a.yaml"
    path.write_text(content)
    assert str(path) in one_sentence(words, read_mapping, path)


def test_a_number_that_yaml_reads_as_another_is_refused_on_the_command_line_too():
    one_sentence("the value is not YAML .010 stands for 8", override, {}, {}, "data.size=010")


def test_what_only_looks_like_such_a_number_is_read(tmp_path):
    (tmp_path / "a.yaml").write_text('a: 0\nb: 0.5\nc: 0x10\nd: "010"\ne: -0\nf: a:30\ng: 00.5\n')
    read, _ = read_mapping(tmp_path / "a.yaml")
    assert list(read.values()) == [0, 0.5, 16, "010", 0, "a:30", 0.5]


@pytest.mark.timeout(60)
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.yaml")
    for path in (tmp_path / "a.yaml", tmp_path):
        one_sentence("is not a file", read_mapping, path)


@pytest.mark.timeout(60)
def test_includes_that_double_are_counted(tmp_path):
    for i in range(25):
        (tmp_path / f"{i}.yaml").write_text(f"include: [{i + 1}.yaml, {i + 1}.yaml]\n")
    (tmp_path / "25.yaml").write_text("a: 1\n")
    started = time.process_time()
    one_sentence("0.yaml includes more than 100 files", read_layers, [tmp_path / "0.yaml"])
    assert time.process_time() - started < 10


def test_only_yaml_is_included(tmp_path):
    (tmp_path / "secret").write_text("password: hunter2\n")
    (tmp_path / "a.yaml").write_text("include: [secret]\n")
    words = "line 1: include: .*secret is not named as YAML"
    assert "hunter2" not in one_sentence(words, read_layers, [tmp_path / "a.yaml"])


@pytest.mark.parametrize("text", ["a=2001-99-99", "a=!!int x", "a=" + "[" * 100_000, "a=*b"])
def test_an_override_that_is_no_value_is_refused(text):
    one_sentence("the value is not YAML", override, {}, {}, text)


def test_a_sentence_is_short_and_moves_no_terminal():
    said = str(UserError(f"x is {'a' * 300_000!r}, not \x1b[31mred\x07\u009b or \ud800: line\n2"))
    assert said == f"x is '{'a' * MOST_QUOTED}…', not \\x1b[31mred\\x07\\x9b or \\ud800: line\n2"
    assert str(UserError(said)) == said and said.encode("utf-8")
    assert len(str(UserError("b" * 300_000))) == MOST_SAID == 1000
    listed = ", ".join(f"name{n}" for n in range(10_000))
    long = str(UserError(f"a.yaml, line 3: no such names: {listed}; leave them out"))
    assert len(long) == MOST_SAID and long.startswith("a.yaml, line 3: no such names: name0, ")
    assert long.endswith(", name9999; leave them out") and long.count(" … ") == 1
    assert str(UserError(long)) == long
    quoted = "a 'short' value, an isn't, \"" + "c" * MOST_QUOTED + '"'
    assert str(UserError(quoted)) == quoted
