"""Readers: real corpora, own layouts, and one sentence with file and line for what is broken."""

import gzip
import json
from collections import Counter
from dataclasses import replace
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.jsonl import write_jsonl
from support.refusals import refused
from support.utterances import drawn_pairs, utterance_of

from edp_mx.data.labels import LabelsConfig, labels_of
from edp_mx.data.readers import files_of, read_utterances, require_own_split, stream_utterances
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.readers.nlu_eval import split_fields
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.metrics.spans import balanced

FIELDS = ("tokens", "tags", "intents")
COUNTS = {"atis": (4478, 500, 893), "snips": (13084, 700, 700)}


def parts_of(path):
    """The corpus' own parts."""
    parts = {}
    for part, utterance in stream_utterances(path):
        parts.setdefault(part, []).append(utterance)
    return parts


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_real_three_file_corpora_have_their_published_sizes(name, real_corpus):
    parts = parts_of(real_corpus(name))
    assert tuple(len(parts[p]) for p in ("train", "validation", "test")) == COUNTS[name]
    whole = read_utterances(real_corpus(name))
    assert whole == parts["train"] + parts["validation"] + parts["test"]
    assert len({u.id for u in whole}) == len(whole)


def test_real_atis_keeps_double_intents_as_one_label_and_each_string_once(real_corpus):
    utterances = read_utterances(real_corpus("atis"))
    assert sum("#" in u.intent for u in utterances) == 41
    keys = Counter(" ".join(u.tokens).lower() for u in utterances)
    assert len(utterances) - len(keys) == 398
    tokens = [token for u in utterances for token in u.tokens]
    assert len({id(token) for token in tokens}) == len(set(tokens))  # each string is kept once


def test_real_tokens_are_what_grep_sees(real_corpus):
    raw = (real_corpus("snips") / "test" / "seq.in").read_text(encoding="utf-8").split("\n")
    test = parts_of(real_corpus("snips"))["test"]
    assert ["".join(u.tokens) for u in test] == [line.replace(" ", "") for line in raw if line]


def test_real_nlu_eval_has_all_folds_once(real_corpus):
    utterances = read_utterances(real_corpus("nlu_eval"))
    assert len(utterances) == 11036
    assert len({u.intent for u in utterances}) == 64
    assert len({u.id for u in utterances}) == 11036
    first = next(u for u in utterances if u.intent == "qa_currency")
    assert first.id == "KFold_1/testset/csv/qa_currency.csv/2"
    assert first.tokens[-1] == "china" and first.slots[-1] == "B-place_name"
    with pytest.raises(UserError, match="no split of its own"):
        require_own_split("here", parts_of(real_corpus("nlu_eval")))


def three_files(folder, tokens="a\nb\n", tags="O\nO\n", intents="x\ny\n", users=None):
    folder.mkdir(parents=True, exist_ok=True)
    contents = {"seq.in": tokens, "seq.out": tags, "label": intents, "user": users}
    for name, content in contents.items():
        if content is not None:
            data = content if isinstance(content, bytes) else content.encode("utf-8")
            (folder / name).write_bytes(data)
    return folder


def test_trailing_spaces_carriage_returns_and_a_byte_order_mark(tmp_path):
    folder = three_files(
        tmp_path, "\ufeffto  Rome \r\na\u00a0b\u0085\r\n\r\n", "O B-x \r\nO\r\n", " a \r\nb\r\n\n"
    )
    assert read_utterances(folder) == [
        Utterance(("to", "Rome"), ("O", "B-x"), "a"),
        Utterance(("a\u00a0b\u0085",), ("O",), "b"),  # only blanks separate tokens
    ]


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        (("a\nb\n", "O\n"), r"seq\.out ends after line 1"),
        (("a\rb\r", "O\rO\r", "x\rx\r"), r"seq\.in, line 1: a carriage return within the line"),
        (("a\n",), r"seq\.in ends after line 1"),
        (("a\nb\n", "O\nO\n", "x\n"), r"label ends after line 1"),
        (("a\nb c\n",), r"seq\.in, line 2: 2 tokens but 1 slot tag"),
        (("a\nb\n", "O\nX-y\n"), r"seq\.in, line 2: 'X-y' is not a BIO tag"),
        (("a\n\nb\n", "O\n\nO\n", "x\n\ny\n"), r"seq\.in, line 2: the utterance is empty"),
        (("a\nb\n", "O\nO\n", "x\n \n"), r"seq\.in, line 2: the intent or label is missing"),
        ((b"a\n\xff\n",), r"seq\.in, line 2: not UTF-8"),
        (
            {"users": "ann\n"},
            r"user ends after line 1, but .* line 2: seq\.in, seq\.out, label, user",
        ),
        ({"users": "ann\n \n"}, r"seq\.in, line 2: the user is empty"),
    ],
)
def test_broken_files_side_by_side_name_file_and_line(tmp_path, contents, complaint):
    given = contents if isinstance(contents, dict) else dict(zip(FIELDS, contents))
    refused(three_files(tmp_path, **given), complaint)


def test_a_fourth_file_names_users_and_counts_as_one_of_the_corpus(tmp_path):
    assert [u.user for u in read_utterances(three_files(tmp_path))] == ["", ""]
    assert [path.name for _, path in files_of(tmp_path)] == ["seq.in", "seq.out", "label"]
    three_files(tmp_path, users=" ann b \r\nbo\n\n")
    assert [u.user for u in read_utterances(tmp_path)] == ["ann b", "bo"]
    assert [path.name for _, path in files_of(tmp_path)] == ["seq.in", "seq.out", "label", "user"]


def test_own_splits_need_no_validation_part_but_train_and_test(tmp_path):
    for part in ("train", "test"):
        three_files(tmp_path / part, f"{part}\n", "O\n", "x\n")
    parts = parts_of(tmp_path)
    assert {part: len(found) for part, found in parts.items()} == {"train": 1, "test": 1}
    require_own_split(tmp_path, parts)
    assert parts["test"][0].id == "test/1"
    names = ("seq.in", "seq.out", "label")
    wanted = [tmp_path / part / name for part in ("train", "test") for name in names]
    assert [path for _, path in files_of(tmp_path)] == wanted


# ------------------------------------------------------------------------------------ JSON lines
text = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=6)
intent = text.map(lambda drawn: f" {drawn}x ")  # the blanks around it are none of its name
utterance = st.builds(
    utterance_of, drawn_pairs(text), intent, user=st.sampled_from(["", "ann", "bo b"])
)


@given(utterances=st.lists(utterance, max_size=5), is_packed=st.booleans())
def test_json_lines_round_trip(tmp_path_factory, utterances, is_packed):
    path = tmp_path_factory.mktemp("jsonl") / ("a.jsonl.gz" if is_packed else "a.jsonl")
    write_jsonl(path, utterances)
    found = read_utterances(path)
    tags = [[normalize("NFC", tag) for tag in u.slots] for u in utterances]
    whole = [
        replace(u, slots=balanced(t), intent=normalize("NFC", u.intent).strip())
        for u, t in zip(utterances, tags)
    ]
    assert found == whole and [u.user for u in found] == [u.user for u in utterances]


def test_a_label_is_the_same_in_both_forms_of_unicode(tmp_path):
    for accent in ("é", "e\u0301"):
        row = {"tokens": ["a"], "slots": [f"B-{accent}"], "intent": f"x{accent}"}
        (tmp_path / "a.jsonl").write_text(json.dumps(row))
        (found,) = read_utterances(tmp_path / "a.jsonl")
        assert (found.slots, found.intent) == (("B-é",), "xé")
        listed = tmp_path / "labels.json"
        listed.write_text(json.dumps({"slots": [accent], "intents": [f"x{accent}"]}))
        labels = labels_of([found], LabelsConfig("file", str(listed)), [])
        assert labels == (("O", "B-é", "I-é"), ("xé",))


GOOD = '{"tokens": ["a"], "slots": ["O"], "intent": "x"}\n'
FIRST_LINES = {"jsonl": GOOD, "csv": "answerid;scenario;intent;answer_annotation\n1;qa;x;fine\n"}


@pytest.mark.parametrize(
    ("kind", "line", "complaint"),
    [
        ("jsonl", "{", "not JSON"),
        ("jsonl", "[]", "not an object"),
        ("jsonl", '{"tokens": ["a"], "slots": ["O"]}', '"label" or "category" is missing'),
        ("jsonl", GOOD.replace("}", ', "slot": 1}'), 'unknown key "slot"'),
        (
            "jsonl",
            GOOD.replace('["a"]', "5"),
            '"tokens" is not a list of non-empty strings, nor a text',
        ),
        ("jsonl", GOOD.replace('"O"', '"O", "O"'), "1 token but 2 slot tags"),
        ("jsonl", GOOD.replace('"x"', '""'), "intent or label is missing"),
        ("jsonl", GOOD.replace('"x"', "1"), '"intent" holds the number 1'),
        ("jsonl", GOOD.replace("}", ', "user": ""}'), "the user is empty"),
        ("jsonl", GOOD.replace("}", ', "user": 7}'), '"user" must be a string'),
        ("csv", "1;qa;x;a [b : c", "unbalanced"),
        ("csv", "1;qa;x;a [b c]", "nameless"),
        ("csv", "1;qa;x", "3 columns but the header has 4"),
        ("csv", '1;qa;x;""', "utterance is empty"),
        ("csv", "1;;x;a", "scenario or the intent is empty"),
    ],
)
def test_a_broken_line_is_named_with_its_file(tmp_path, kind, line, complaint):
    before = FIRST_LINES[kind]
    (tmp_path / f"a.{kind}").write_text(f"{before}{line}\n")
    where = rf"a\.{kind}, line {before.count(chr(10)) + 1}"
    refused(tmp_path / f"a.{kind}", f"{where}: .*{complaint}")


def test_a_folder_of_json_lines_is_split_by_its_names(tmp_path):
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.jsonl").write_text(GOOD)
    assert [u.id for u in read_utterances(tmp_path)] == ["train/1", "dev/1", "test/1"]
    assert [len(p) for p in parts_of(tmp_path).values()] == [1, 1, 1]


@pytest.mark.parametrize("name", ["valid", "validation", "dev", "val"])
def test_the_validation_part_has_many_names(tmp_path, name):
    for part in ("train", name, "test"):
        three_files(tmp_path / part)
    assert [len(p) for p in parts_of(tmp_path).values()] == [2, 2, 2]


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["train.jsonl", "test.jsonl", "evaluation.jsonl"], r"evaluation\.jsonl would not be read"),
        (["train-00000-of-00002.jsonl", "test.jsonl"], r"train-00000-of-00002\.jsonl would not be"),
        (["train.jsonl", "valid.jsonl", "dev.jsonl"], "would both be the validation part"),
        (["mine.jsonl", "mine.jsonl.gz"], "have the same name"),
        (["train.csv", "train.tsv"], "have the same name"),
        (["train/seq.in", "more/seq.in"], "more would not be read"),
        (["train/dialogues_001.json", "more/dialogues_001.json"], "more would not be read"),
    ],
)
def test_nothing_in_a_folder_is_passed_over_or_read_twice(tmp_path, names, complaint):
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(GOOD.encode()) if name.endswith("gz") else GOOD.encode())
    refused(tmp_path, complaint)


def test_a_quotation_mark_in_a_table_with_tabs_takes_in_no_other_row(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('text\tintent\n"hello there\tgreet\nbye\tbye\nthe end"\tbye\n')
    with pytest.raises(
        UserError, match=r"a\.tsv, line 2: a cell that begins with a quotation mark"
    ):
        read_utterances(path, columns=ColumnsConfig(slots="none"))
    path.write_text('text\tintent\n"say ""hello"""\tgreet\n')
    (utterance,) = read_utterances(path, columns=ColumnsConfig(slots="none"))
    assert utterance.tokens == ("say", '"hello"')


# ---------------------------------------------------------------------------------- SNIPS' JSON
def snips_file(folder, name, chunks, encoding="utf-8", intent="PlayMusic"):
    (folder / intent).mkdir(parents=True, exist_ok=True)
    document = {intent: [{"data": chunks}]}
    data = json.dumps(document, ensure_ascii=False, indent=1).encode(encoding)
    (folder / intent / name).write_bytes(data)


@pytest.mark.parametrize(
    ("chunks", "words", "tags"),
    [
        ([("Play ", ""), ("Making Out", "track"), (" by me", "")],
         "Play Making Out by me", "O B-track I-track O O"),
        ([("A", "artist"), (" ", ""), ("B", "artist"), (" C", "artist")],
         "A B C", "B-artist B-artist B-artist"),  # entities that touch stay apart
        ([("my ", ""), ("song", "item"), ("s, please", "")], "my song s, please", "O B-item O O"),
        ([("Cita Rom", "list"), ("á", "list"), ("ntica", "list")],
         "Cita Romántica", "B-list I-list"),  # chunks that begin in mid-word
    ],
)  # fmt: skip
def test_snips_chunks_become_bio(tmp_path, chunks, words, tags):
    pieces = [{"text": t, "entity": e} if e else {"text": t} for t, e in chunks]
    snips_file(tmp_path, "train_PlayMusic_full.json", pieces)
    (utterance,) = read_utterances(tmp_path)
    assert (" ".join(utterance.tokens), " ".join(utterance.slots)) == (words, tags)


def test_a_snips_file_may_have_several_intents(tmp_path):
    said = {"data": [{"text": "go"}]}
    (tmp_path / "a.json").write_text(json.dumps({"Play": [said, said], "Stop": [said]}))
    found = read_utterances(tmp_path / "a.json")
    assert [(each.id, each.intent) for each in found] == [
        ("a.json/1", "Play"), ("a.json/2", "Play"), ("a.json/3", "Stop")
    ]  # fmt: skip


def test_snips_folder_reads_the_full_file_once_in_both_encodings(tmp_path):
    snips_file(tmp_path, "train_PlayMusic_full.json", [{"text": "Clásicos"}], "latin-1")
    snips_file(tmp_path, "train_PlayMusic.json", [{"text": "Clásicos"}])
    snips_file(tmp_path, "validate_PlayMusic.json", [{"text": "Clásicos"}])
    snips_file(tmp_path, "Snips_metrics.json", [{"text": "no"}])
    parts = parts_of(tmp_path)
    assert {part: len(found) for part, found in parts.items()} == {"train": 1, "test": 1}
    require_own_split(tmp_path, parts)
    assert parts["train"][0].tokens == parts["test"][0].tokens == ("Clásicos",)
    assert parts["train"][0].id == "PlayMusic/train_PlayMusic_full.json/1"
    assert parts["train"][0].intent == "PlayMusic"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"A": [\n}', "line 2: not JSON"),
        ("[]", "line 1: not an object"),
        ('{"A": [{"data": [{"text": "a"}]}, {}]}', 'utterance 2 of A: the list "data" is missing'),
        ('{"A": [{"data": [{"entity": "a"}]}]}', 'utterance 1 of A: a chunk lacks its "text"'),
    ],
)
def test_broken_snips_files_name_file_and_place(tmp_path, content, complaint):
    path = tmp_path / "a.json"
    path.write_text(content)
    refused(path, rf"a\.json.*{complaint}")


# ------------------------------------------------------------------------------------- NLU-Eval
FULL_HEADER = (
    "userid;answerid;scenario;intent;status;answer_annotation;notes;suggested_entities;"
    "answer_normalised;answer;question"
)


def full_row(annotation, status="", scenario="qa", intent="currency"):
    return f'1;2;{scenario};{intent};{status};{annotation};;;"x; y";"it\'s "so"";"what?"'


def test_full_release_with_its_quirks(tmp_path):
    rows = [
        FULL_HEADER,
        full_row('"how much is [currency_name: euro]"'),
        full_row("irrelevant", status="IRR_XL"),
        full_row("don't [ time : 9:30  am ], ok", scenario="alarm", intent="set"),
        full_row('"say ""hi"" to [person : t\'so]"', scenario="email", intent="send"),
    ]
    folder = tmp_path / "AnnotatedData"
    folder.mkdir()
    (folder / "NLU-Data-Home-Domain-Annotated-All.csv").write_text("\n".join(rows))
    euro, alarm, quoted = read_utterances(tmp_path)
    assert (euro.tokens[-1], euro.slots[-1], euro.intent) == (
        "euro", "B-currency_name", "qa_currency",
    )  # fmt: skip
    assert alarm.tokens == ("don't", "9:30", "am", ",", "ok")
    assert alarm.slots == ("O", "B-time", "I-time", "O", "O")
    assert quoted.tokens == ("say", '"hi"', "to", "t'so")
    assert alarm.id.endswith("Annotated-All.csv/4")


def test_training_sets_of_folds_are_passed_over(tmp_path):
    header = "answerid;scenario;intent;answer_annotation"
    for where in ("KFold_1/testset/csv", "KFold_2/testset/csv", "KFold_1/trainset"):
        (tmp_path / where).mkdir(parents=True)
        (tmp_path / where / "alarm_set.csv").write_text(f"{header}\n1;alarm;set;wake me")
    assert [u.id for u in read_utterances(tmp_path)] == [
        "KFold_1/testset/csv/alarm_set.csv/2",
        "KFold_2/testset/csv/alarm_set.csv/2",
    ]


@given(st.lists(st.text('a;"', max_size=6), min_size=2))
def test_doubled_quotes_and_semicolons_are_read_strictly(fields):
    quoted = ";".join('"' + field.replace('"', '""') + '"' for field in fields)
    assert split_fields(quoted, len(fields)) == fields


# -------------------------------------------------------------------------------------- layouts
def test_what_is_not_there_torn_or_in_no_layout_is_refused(tmp_path):
    (three_files(tmp_path / "two") / "label").unlink()
    write_jsonl(tmp_path / "twice.jsonl", [Utterance(("a",), ("O",), "x", "7")] * 2)
    (tmp_path / "torn.jsonl.gz").write_bytes(gzip.compress(GOOD.encode() * 1000)[:-20])
    (tmp_path / "columns.csv").write_text("answerid;scenario;answer_annotation\n")
    (tmp_path / "empty").mkdir()
    for name, layout, complaint in (
        ("two", "auto", "label is missing"),
        ("twice.jsonl", "auto", "'7' occurs twice"),
        ("torn.jsonl.gz", "auto", r"cannot read .*torn\.jsonl\.gz"),
        ("columns.csv", "auto", r'columns\.csv, line 1: the column "intent" is missing'),
        ("nowhere", "auto", "does not exist"),
        ("empty", "auto", "no known layout"),
        ("empty", "nlu_eval", "no file in the layout nlu_eval"),
    ):
        refused(tmp_path / name, complaint, layout)
