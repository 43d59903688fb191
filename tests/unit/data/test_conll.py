"""CoNLL: rows as xSID publishes them, other columns, and what is refused by its line."""

import gzip

import pytest
from support.refusals import refused

from edp_mx.data.checking import check
from edp_mx.data.readers import read_utterances, stream_utterances
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.utterance import Utterance

XSID = """\
# id: 1
# text-en: Will it rain today?
# text: Regnet es heute?
# intent: weather/find
1\tRegnet\tweather/find\tB-weather/attribute
2\tes\tweather/find\tO
3\theute\tweather/find\tB-datetime
4\t?\tweather/find\tO

# id: 2
# intent: alarm/set_alarm
1\t#\talarm/set_alarm\tO
2\t17\talarm/set_alarm\tB-datetime
3\tUhr\talarm/set_alarm\tI-datetime

# the end of the file
"""
READ = [
    Utterance(
        ("Regnet", "es", "heute", "?"), ("B-weather/attribute", "O", "B-datetime", "O"),
        "weather/find",
    ),
    Utterance(("#", "17", "Uhr"), ("O", "B-datetime", "I-datetime"), "alarm/set_alarm"),
]  # fmt: skip


@pytest.mark.parametrize("name", ["a.conll", "a.conll.gz", "a.bio"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_as_published(name, end, tmp_path):
    content = f"\ufeff{XSID}".replace("\n", end).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    found = read_utterances(tmp_path / name)
    assert found == READ and [u.id for u in found] == [f"{name}/1", f"{name}/10"]
    assert read_utterances(tmp_path, "conll") == READ


def test_two_columns_blanks_users_and_other_comments(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("#intent = call\n# user: ann\n# O\ncall O\nmum B-who\n\n# intent=end\n1 O\n")
    first, second = read_utterances(path)
    assert first.tokens == ("#", "call", "mum") and first.slots == ("O", "O", "B-who")
    assert (first.intent, first.user, second.tokens) == ("call", "ann", ("1",))
    named = ColumnsConfig(intent="user", user="intent")
    path.write_text("# intent: x\n# user: y\na O\n")
    (found,) = read_utterances(path, columns=named)
    assert (found.intent, found.user) == ("y", "x")


def test_columns_have_numbers_and_may_be_absent(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("# intent: x\nB-a call VB O\nO mum NN B-who\n")
    (found,) = read_utterances(path, columns=ColumnsConfig(tokens="2"))
    assert found == Utterance(("call", "mum"), ("O", "B-who"), "x")
    (found,) = read_utterances(path, columns=ColumnsConfig(tokens="2", slots="1"))
    assert found.slots == ("B-a", "O")
    (found,) = read_utterances(path, columns=ColumnsConfig(tokens="3", slots="none", intent="none"))
    assert found == Utterance(("VB", "NN"), ("O", "O"), "")
    for wrong in ("5", "0", "word"):
        refused(path, rf"line 1: data\.columns\.tokens must be .* '{wrong}'", tokens=wrong)


def test_parts_of_a_folder(tmp_path):
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.conll").write_text(XSID)
    assert [part for part, _ in stream_utterances(tmp_path)] == [
        part for part in ("train", "validation", "test") for _ in range(2)
    ]


BROKEN = [
    (XSID.replace("# intent: weather/find\n", ""), 'line 1: no comment "# intent: …" stands above'),
    (XSID.replace("2\tes", "3\tes"), "line 6: the first column has '3' in place of 2"),
    (XSID.replace("17\talarm/set_alarm\t", "17\t"), "line 13: 3 columns, but the file begins with"),
    (XSID.replace("\tUhr\t", "\t\t"), "line 14: 3 columns, but the file begins with 4"),
    (XSID.replace("B-datetime", "datetime"), "line 1: 'datetime' is not a BIO tag"),
    (f"{XSID}\n# intent: lost\n\n", "line 18: an intent without tokens in the lines below it"),
    (XSID.replace("?\tweather/find\tO\n\n# id: 2", "?\tweather/find\tO\n# id: 2"), "line 9: 3 col"),
]


@pytest.mark.parametrize(("content", "told"), BROKEN)
def test_what_is_broken_is_refused_by_file_and_line(content, told, tmp_path):
    path = tmp_path / "a.conll"
    path.write_text(content)
    refused(path, rf"a\.conll, {told}")


def test_no_token_of_a_broken_utterance_is_left_out_alone(tmp_path):
    path = tmp_path / "a.conll"
    path.write_bytes(XSID.replace("es\t", "\udcff\t").encode(errors="surrogateescape"))
    found = check(path)
    assert found.utterances == 1 and "line 6: not UTF-8 text" in found.errors[0]


def test_a_file_without_blank_lines_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("edp_mx.data.readers.conll.MOST_ROWS", 3)
    path = tmp_path / "a.conll"
    path.write_text("# intent: x\n" + "a O\n" * 4)
    refused(path, "line 4: 3 lines without a blank one")
