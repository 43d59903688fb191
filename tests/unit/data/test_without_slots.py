"""A corpus without a column of slots: read without them, with one remark, and never by mistake."""

import logging

import pytest
from support.jsonl import write_records
from support.refusals import refused

from edp_mx.data.config import DataConfig, SplitConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.readers import read_utterances
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

CALL = {"text": "call mum", "intent": "call"}
SPANS = {**CALL, "spans": [{"start": 5, "end": 8, "label": "who"}]}


def test_it_is_read_with_one_remark_that_names_the_columns(tmp_path, caplog):
    path = tmp_path / "a.csv"
    path.write_text("text,intent,shop\ncall mum,call,Rome\nhang up,end,Oslo\n")
    for _ in range(2):  # a command may read a corpus twice
        first, second = read_utterances(path)
    assert first == Utterance(("call", "mum"), ("O", "O"), "call") and second.intent == "end"
    (said,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert said.getMessage() == (
        f'{path}, line 1: no column "slots", "ner_tags" or "spans", so the corpus is read without '
        "slots. There are text, intent, shop; if one of these holds the slots, name it by "
        "data.columns.slots (--columns slots=NAME)"
    )


def test_whoever_says_that_there_are_none_is_told_nothing(tmp_path, caplog):
    path = write_records(tmp_path / "a.jsonl", [CALL])
    (found,) = read_utterances(path, columns=ColumnsConfig(slots="none"))
    assert found.slots == ("O", "O") and not caplog.records


@pytest.mark.parametrize(
    "other",
    [
        {"bio": "O B-who"},
        {"bio": ["O", "I-who"]},
        {"bio": [0, 3]},
        {"bio": [{"start": 5, "end": 8, "entity": "who"}]},
    ],
)
def test_a_column_that_looks_like_slots_is_not_passed_over(other, tmp_path):
    path = write_records(tmp_path / "a.jsonl", [CALL, {**CALL, **other}])
    refused(path, r'a\.jsonl, line 2: the key "bio" looks like slots but')
    assert len(read_utterances(path, columns=ColumnsConfig(slots="none"))) == 2


def test_other_columns_do_not_look_like_slots(tmp_path):
    more = {"city": "Oslo", "when": "O so late", "count": 2, "tags": [], "pos": ["VB", "NN"]}
    path = write_records(tmp_path / "a.jsonl", [{**CALL, **more}, {**CALL, "size": "O"}])
    assert len(read_utterances(path)) == 2


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ((CALL, SPANS), r"line 2: there are slots here, but .*a\.jsonl, line 1 has none; give"),
        ((SPANS, CALL), r'line 2: the key "slots" or "ner_tags" or "spans" is missing, but .*li'),
    ],
)
def test_slots_are_in_all_records_or_in_none(records, told, tmp_path):
    path = write_records(tmp_path / "a.jsonl", records)
    refused(path, told)
    assert len(read_utterances(path, columns=ColumnsConfig(slots="none"))) == 2


def test_parts_and_a_test_file_beside_the_corpus_do_as_its_first_record(tmp_path):
    (tmp_path / "parts").mkdir()
    write_records(tmp_path / "parts" / "train.jsonl", [SPANS])
    write_records(tmp_path / "parts" / "test.jsonl", [CALL])
    refused(tmp_path / "parts", r"test\.jsonl, line 1: the key .*/train\.jsonl, line 1 h")
    train = write_records(tmp_path / "train.jsonl", [SPANS] * 30)
    test = write_records(tmp_path / "test.jsonl", [CALL])
    with pytest.raises(UserError, match=r"test\.jsonl, line 1: the key .* is missing"):
        load_corpus(DataConfig("mine", str(train), split=SplitConfig(test=str(test))))
