"""Tables, Hugging Face's records and text with spans: what they hold, and what is refused."""

import csv
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.jsonl import write_jsonl, write_records
from support.refusals import one_sentence, refused

from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.readers import read_utterances, require_own_split, stream_utterances
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.utterance import Utterance
from edp_mx.metrics.spans import balanced, spans_of

SPOKEN = list(make_utterances("communication", size=300, seed=3))


def table(utterances, path, columns=("text", "slots", "intent"), delimiter=","):
    """Quoted by the standard library."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow([*columns, "line"])
        for i, each in enumerate(utterances):
            writer.writerow([" ".join(each.tokens), " ".join(each.slots), each.intent, i])
    return path


def numbered(utterances, folder):
    """Hugging Face's records and what goes with them: the names of the labels."""
    tags = sorted({tag for each in utterances for tag in each.slots})
    intents = sorted({each.intent for each in utterances})
    features = {
        "ner_tags": {"feature": {"names": tags, "_type": "ClassLabel"}, "_type": "Sequence"},
        "label": {"names": intents, "_type": "ClassLabel"},
        "tokens": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "Sequence"},
    }
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    records = [
        {"id": 0, "tokens": each.tokens, "pos_tags": [7], "label": intents.index(each.intent),
         "ner_tags": [tags.index(tag) for tag in each.slots]}
        for each in utterances
    ]  # fmt: skip
    return write_records(folder / "numbered.jsonl", records)


def with_spans(utterance):
    starts = [len(" ".join([*utterance.tokens[:i], ""])) for i in range(len(utterance.tokens))]
    ends = [start + len(token) for start, token in zip(starts, utterance.tokens)]
    spans = [
        {"start": starts[span.start], "end": ends[span.end - 1], "label": span.type}
        for span in spans_of(utterance.slots)
    ]
    return {"text": " ".join(utterance.tokens), "spans": spans[::-1], "intent": utterance.intent}


def test_the_same_corpus_in_each_format_reads_the_same(tmp_path):
    write_jsonl(tmp_path / "own.jsonl", SPOKEN)
    named = ColumnsConfig(text="said", slots="BIO", intent="class")
    names = ColumnsConfig(label_names=str(tmp_path / "dataset_info.json"))
    wide = ("said", "BIO", "class")
    formats = {
        tmp_path / "own.jsonl": None,
        table(SPOKEN, tmp_path / "a.csv"): None,
        table(SPOKEN, tmp_path / "a.csv.gz"): None,
        table(SPOKEN, tmp_path / "semicolons.csv", delimiter=";"): None,
        table(SPOKEN, tmp_path / "a.tsv", wide, "\t"): named,
        table(SPOKEN, tmp_path / "b.csv", ("tokens", "ner_tags", "label")): None,
        numbered(SPOKEN, tmp_path): names,
        write_records(tmp_path / "spans.jsonl", map(with_spans, SPOKEN)): None,
    }
    for path, columns in formats.items():
        assert read_utterances(path, columns=columns) == SPOKEN, path
    assert read_utterances(tmp_path / "a.csv")[4].id == "a.csv/6"


def test_parts_quotes_line_ends_and_users_of_tables(tmp_path):
    rows = {
        "train": 'text,intent,slots,user\r\n"call, ""mum""\nnow",call,O B-who O,ann\r\n\r\n,,,\r\n',
        "test": "text,intent,slots,user\nhang up,end,O O,\n",
    }
    for part, text in rows.items():
        (tmp_path / f"{part}.csv").write_bytes(text.encode())
    parts = dict(stream_utterances(tmp_path))
    require_own_split(tmp_path, parts)
    assert parts["train"] == Utterance(("call,", '"mum"', "now"), ("O", "B-who", "O"), "call")
    assert [(each.id, each.user) for each in parts.values()] == [
        ("train/2", "ann"), ("test/2", "")]  # fmt: skip


@pytest.mark.parametrize("header", ["text,label,user", "Text,Label,User", "SENTENCE,INTENT,USER"])
def test_the_usual_names_may_be_in_upper_case(header, tmp_path):
    (tmp_path / "mine.csv").write_text(f"{header}\na b,x,ann\n")
    (found,) = read_utterances(tmp_path / "mine.csv", columns=ColumnsConfig(slots="none"))
    assert (found.tokens, found.intent, found.user) == (("a", "b"), "x", "ann")


def test_of_two_names_that_differ_in_case_the_usual_one_is_read(tmp_path):
    (tmp_path / "mine.csv").write_text("Text,text,label\na,b,x\n")
    (found,) = read_utterances(tmp_path / "mine.csv", columns=ColumnsConfig(slots="none"))
    assert found.tokens == ("b",)
    refused(tmp_path / "mine.csv", 'the column "LABEL", which data.columns.intent names',
            slots="none", intent="LABEL")  # fmt: skip


def test_spans_cut_words_and_touching_spans_stay_apart(tmp_path):
    record = {"text": "(to New York, ASAP!)", "intent": "go", "label": "ignored", "spans": [
        {"start": 4, "end": 12, "label": "city"}, {"start": 14, "end": 16, "label": "time"},
        {"start": 16, "end": 18, "label": "time", "id": 3}]}  # fmt: skip
    (found,) = read_utterances(write_records(tmp_path / "a.jsonl", [record]))
    assert found.tokens == ("(to", "New", "York", ",", "AS", "AP", "!)")
    assert found.slots == ("O", "B-city", "I-city", "O", "B-time", "B-time", "O")
    assert found.intent == "go"


@given(st.lists(st.sampled_from(["O", "B-x", "I-x", "B-y", "I-y"]), min_size=1, max_size=7))
def test_what_is_balanced_has_the_same_spans_and_opens_each(tags):
    whole = balanced(tags)
    assert spans_of(whole) == spans_of(tags) and balanced(whole) == whole
    assert sum(tag[0] == "B" for tag in whole) == len(spans_of(tags))


@pytest.mark.parametrize("layout", ["own.jsonl", "a.csv", "seq.in"])
def test_unbalanced_tags_are_repaired_or_refused_in_any_layout(tmp_path, layout):
    said = Utterance(("call", "mum", "now"), ("O", "I-who", "I-time"), "call")
    write_jsonl(tmp_path / "own.jsonl", [said])
    table([said], tmp_path / "a.csv")
    for name, text in (("seq.in", "call mum now"), ("seq.out", "O I-who I-time"), ("label", "x")):
        (tmp_path / name).write_text(text)
    path = tmp_path if layout == "seq.in" else tmp_path / layout
    assert read_utterances(path)[0].slots == ("O", "B-who", "B-time")
    refused = DataConfig("mine", str(path), columns=ColumnsConfig(unbalanced="refuse"))
    one_sentence(rf"{layout}, line \d: 'I-who' continues no slot", load_corpus, refused)


HEAD = "text,intent,slots\n"
NUMBERS = {"tokens": ["a"], "ner_tags": [1], "intent": "x"}
SPANS = {"text": "call mum", "intent": "call"}


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.csv", f"{HEAD}a,x\n", "line 2: 2 columns but the header has 3"),
        ("a.csv", f"{HEAD}a,x,O\n\na b,x,O\n", "line 4: 2 tokens but 1 slot tag"),
        ("a.csv", f'{HEAD}"a" b,x,O\n', "line 2: not a row of a table .* twice"),
        ("a.csv", f'{HEAD}a,x,O\n"a\nb,x,O\n', "line 3: not a row of a table"),
        ("a.csv", f"{HEAD}a,,O\n", "line 2: the intent or label is missing"),
        ("a.csv", f"{HEAD},x,\n", "line 2: the utterance is empty"),
        ("a.csv", f"{HEAD}a,x,city\n", "line 2: 'city' is not a BIO tag"),
        ("a.csv", f"{HEAD}a,x,1\n", "line 2: '1' is not a BIO tag"),
        ("a.tsv", "text\tslots\na\tO\n",
         'line 1: the column "intent" or "label" or "category" is missing; there are text, slots, '
         r"of which data\.columns\.intent \(--columns intent=NAME\) can name another"),
        ("a.tsv", "said\tslots\tintent\n", 'line 1: the column "text" or .*"tokens" is missing'),
        ("a.jsonl", NUMBERS, r'line 1: "ner_tags" holds the number 1; let data\.columns\.label_na'),
        ("a.jsonl", {**NUMBERS, "ner_tags": ["O"], "intent": True}, '"intent" holds True'),
        ("a.jsonl", {**NUMBERS, "tokens": [1]}, '"tokens" is not a list of'),
        ("a.jsonl", {**NUMBERS, "ner_tags": [None]}, '"ner_tags" is not a list of'),
        ("a.jsonl", {**NUMBERS, "ner_tags": [True]}, '"ner_tags" is not a list of'),
        ("a.jsonl", {**NUMBERS, "ner_tags": ["O"], "intent": None}, "intent or label is missing"),
        ("a.jsonl", {**SPANS, "spans": [{"start": 5, "end": 9, "label": "a"}]},
         "line 1: the span 5 to 9 overlaps another, .* has 8 characters"),
        ("a.jsonl", {**SPANS, "spans": [{"start": 4, "end": 5, "label": "a"}]}, "holds no word"),
        ("a.jsonl", {**SPANS, "spans": [{"start": 0, "end": 4, "label": "a"}] * 2}, "overlaps"),
        ("a.jsonl", {**SPANS, "spans": [{"start": 0, "end": 4}]}, r'"spans" is not a list of {"st'),
        ("a.jsonl", {**SPANS, "spans": 5}, '"spans" is not a list of'),
        ("a.jsonl", {**SPANS, "text": 5, "spans": []}, '"spans" needs the text beside it'),
        ("a.jsonl", {**SPANS, "text": "", "spans": []}, "the utterance is empty"),
    ],
)  # fmt: skip
def test_a_bad_row_is_one_sentence_with_file_and_line(tmp_path, name, content, complaint):
    text = content if isinstance(content, str) else f"{json.dumps(content)}\n"
    (tmp_path / name).write_text(text)
    assert refused(tmp_path / name, complaint).startswith(f"{tmp_path / name}, line ")


@pytest.mark.parametrize(
    ("settings", "names", "complaint"),
    [
        ({"text": "said"}, None, r'"said", which data\.columns\.text names, is missing; there are'),
        ({}, {"ner_tags": ["O"]}, 'line 1: "ner_tags" holds the number 1, but .* for 0 to 0'),
        ({}, {"other": ["O"]}, '"ner_tags" holds the number 1; let'),
        ({}, {"ner_tags": "O"}, "needs lists of names"),
        ({}, ["O"], "needs lists of names"),
    ],
)
def test_settings_that_do_not_fit_the_records_are_refused(tmp_path, settings, names, complaint):
    path = write_records(tmp_path / "a.jsonl", [NUMBERS])
    if names is not None:
        (tmp_path / "names.json").write_text(json.dumps(names))
        settings = {**settings, "label_names": str(tmp_path / "names.json")}
    refused(path, complaint, **settings)


def test_other_names_of_labels_are_another_corpus_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("edp_mx.data.corpus.KEPT_FROM", 2)
    records = [{**NUMBERS, "tokens": [word]} for word in "abcdefghijklmnopqrst"]
    config = DataConfig(
        "mine",
        str(write_records(tmp_path / "a.jsonl", records)),
        columns=ColumnsConfig(label_names=str(tmp_path / "names.json")),
    )
    for tag in ("B-x", "B-y"):
        (tmp_path / "names.json").write_text(json.dumps({"ner_tags": ["O", tag]}))
        assert {each.slots for each in load_corpus(config).utterances} == {(tag,)}
