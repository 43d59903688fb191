"""Readers of text to generate: what becomes prompt, reply and user, and what is refused."""

import gzip
import json
from collections import Counter

import pytest
from support.jsonl import write_records
from support.refusals import one_sentence, refused
from support.replies import PERSONA_CHAT, TRIPLES, TURNS, write_tables, write_triples, write_turns

from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.readers import read_utterances, stream_utterances
from edp_mx.data.readers.columns_config import NONE, ColumnsConfig
from edp_mx.data.utterance import REPLY
from edp_mx.metrics.quoted_values import missing_values, quoted_values
from edp_mx.tasks.causal_lm.task import split_reply


def sides(utterances):
    """(prompt, reply) of each, as text."""
    return [tuple(" ".join(side) for side in split_reply(each.tokens)) for each in utterances]


# ---------------------------------------------------------------------------- DSTC8's system turns
def test_the_acts_of_a_turn_are_its_prompt(tmp_path):
    found = read_utterances(write_turns(tmp_path / "train.jsonl"))
    assert sides(found) == [
        ("restaurants: request city", "In which city?"),
        ('restaurants: offer restaurant_name = "71 Saint Peter"; offer city = "San Jose"; '
         "inform has_live_music = False", "71 Saint Peter in San Jose, without live music."),
        ('movies: offer title = "Up", "The \\"Q\\""; offer_intent intent = PlayMovie',
         'Shall I play Up or The "Q"?'),
    ]  # fmt: skip
    assert [each.id for each in found] == [f"train.jsonl/{line}" for line in (1, 2, 3)]
    assert [each.user for each in found] == [turn["dialogue"] for turn in TURNS]
    assert {each.intent for each in found} == {"reply"}
    assert {slot for each in found for slot in each.slots} == {"O"}


def test_or_its_context(tmp_path):
    path = write_turns(tmp_path / "train.jsonl")
    found = read_utterances(path, columns=ColumnsConfig(prompt="context", intent=NONE))
    assert sides(found)[1] == (
        "user: I am hungry. system: In which city? user: San Jose.",
        "71 Saint Peter in San Jose, without live music.",
    )
    assert {each.intent for each in found} == {""}
    refused(path, "data.columns.prompt must be acts or context .*, not 'text'", prompt="text")


def test_the_values_of_a_prompt_are_found_again(tmp_path):
    found = sides(read_utterances(write_turns(tmp_path / "train.jsonl")))
    values = [quoted_values(prompt) for prompt, _ in found]
    assert values == [[], ["71 Saint Peter", "San Jose"], ["Up", 'The "Q"']]
    assert not any(missing_values(*pair) for pair in found)


def test_the_parts_of_a_folder_and_turns_without_a_word(tmp_path):
    for part in ("train", "dev", "test"):
        turns = [{**turn, "dialogue": f"{part}/{turn['dialogue']}"} for turn in TURNS]
        write_turns(tmp_path / f"{part}.jsonl", [*turns, {**turns[0], "text": " "}])
    config = DataConfig("mine", str(tmp_path), split="own")
    corpus = load_corpus(config)
    parts = (corpus.train, corpus.validation, corpus.test)
    assert [len(part) for part in parts] == [3, 3, 3]
    assert len({each.user for part in parts for each in part}) == 6


def test_another_reading_is_another_corpus_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("edp_mx.data.corpus.KEPT_FROM", 2)
    turns = [{**TURNS[0], "dialogue": word, "text": word} for word in "abcdefghijklmnopqrst"]
    path = str(write_turns(tmp_path / "a.jsonl", turns))
    for prompt, first in (("acts", "restaurants:"), ("context", "user:")):
        config = DataConfig("mine", path, split="80/10/10", columns=ColumnsConfig(prompt=prompt))
        assert {each.tokens[0] for each in load_corpus(config).utterances} == {first}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"acts": [["a", "b", "c"]]}, r'line 2: "acts" is not a list of \[service, act'),
        ({"acts": [["a", "b", "c", [1]]]}, 'line 2: "acts" is not a list of'),
        ({"acts": "a"}, 'line 2: "acts" is missing or no list'),
        ({"context": [3]}, 'line 2: "context" is not a list of turns'),
        ({"dialogue": None}, 'line 2: "dialogue" is missing or no str'),
        ({"acts": []}, "line 2: the prompt is empty"),
        ({"text": f"a {REPLY} b"}, r"line 2: the reply holds <\|reply\|>, which stands for"),
        ({"text": "a [SEP] b"}, r"line 2: the reply holds \[SEP\], which stands for"),
        ({"text": "a [MASK] b"}, r"line 2: the reply holds \[MASK\], which stands for"),
    ],
)
def test_a_broken_turn_is_refused_by_its_line(change, told, tmp_path):
    refused(write_turns(tmp_path / "a.jsonl", [TURNS[0], {**TURNS[1], **change}]), told)


def dialogues(folder, name, turns):
    folder.mkdir(parents=True, exist_ok=True)
    document = [{"dialogue_id": name, "turns": turns}]
    (folder / "dialogues_001.json").write_text(json.dumps(document))


def spoken(speaker, text, *actions):
    frames = [{"service": "Movies_2", "slots": [], "actions": list(actions)}]
    return {"speaker": speaker, "utterance": text, "frames": frames}


ASK = {"act": "INFORM_INTENT", "slot": "intent", "values": ["FindMovies"]}
OFFER = {"act": "OFFER", "slot": "title", "values": ["Up"], "canonical_values": ["Up"]}


def test_dialogues_as_released_have_the_same_turns(tmp_path):
    turns = [spoken("USER", "A film?", ASK), spoken("SYSTEM", "See Up.", OFFER)]
    turns += [spoken("USER", "No.", ASK), spoken("SYSTEM", "", OFFER)]
    turns += [spoken("SYSTEM", "Up again!", OFFER)]
    for part in ("train", "dev"):
        dialogues(tmp_path / part, "1_0", turns)
    read = {}
    for prompt in ("acts", "context"):
        read[prompt] = read_utterances(tmp_path, columns=ColumnsConfig(prompt=prompt))
        users = [(each.id, each.user) for each in read[prompt]]
        assert users[:2] == [("train/1_0/2", "1_0"), ("train/1_0/5", "1_0")]
        assert users[2:] == [("dev/1_0/2", "dev_1_0"), ("dev/1_0/5", "dev_1_0")]
    prompt = 'movies: offer title = "Up"'
    assert sides(read["acts"])[:2] == [(prompt, "See Up."), (prompt, "Up again!")]
    assert sides(read["context"])[1][0] == "system: See Up. user: No. system:"
    assert [" ".join(each.tokens) for each in read_utterances(tmp_path)[:2]] == ["a film ?", "no ."]
    dialogues(tmp_path / "dev", "1_0", [spoken("SYSTEM", "See Up.", {"act": "OFFER"})])
    refused(tmp_path, 'dialogue 1_0, turn 1: expected "slot"', prompt="acts")


def test_a_prompt_is_cut_as_the_corpus_was():
    """At blanks, other than the users' turns of the same files."""
    config = DataConfig(corpus="dstc8", columns=ColumnsConfig(prompt="acts"))
    assert config.tokens_of('offer city = "Rome"') == ["offer", "city", "=", '"Rome"']


def test_the_released_dialogues_and_their_system_turns_agree(corpora, tmp_path):
    raw, turns = corpora / "dstc8" / "raw", corpora / "dstc8_nlg" / "train.jsonl.gz"
    if not (raw.exists() and turns.exists()):
        pytest.skip("DSTC8 is absent: see EDP_MX_DATA")
    users = {each.user for each in read_utterances(raw, columns=ColumnsConfig(prompt="acts"))}
    with gzip.open(turns, "rt") as file:
        lines = [line for line in file if line.split('"')[3].partition("/")[2] in users]
    (tmp_path / "turns.jsonl").write_text("".join(lines))
    for prompt in ("acts", "context"):
        columns = ColumnsConfig(prompt=prompt)
        released = [each.tokens for each in read_utterances(raw, columns=columns)]
        kept = [each.tokens for each in read_utterances(tmp_path, columns=columns)]
        assert released == kept and len(users) == 24


def test_the_sizes_of_the_system_turns(corpora):
    folder = corpora / "dstc8_nlg"
    if not folder.exists():
        pytest.skip("the system turns of DSTC8 are absent: see EDP_MX_DATA")
    read, missing = Counter(), 0
    users = {}
    for part, each in stream_utterances(folder):
        read[part] += 1
        users.setdefault(part, set()).add(each.user)
        missing += len(missing_values(*sides([each])[0]))
    # two turns of the test part have no text
    assert read == {"train": 111_878, "validation": 19_384, "test": 24_861}
    assert {part: len(names) for part, names in users.items()} == {
        "train": 12_174, "validation": 2_098, "test": 2_921}  # fmt: skip
    assert missing == 0


# -------------------------------------------------------------------------------------------- E2E
def test_each_reference_of_e2e_is_an_utterance(tmp_path):
    for name in ("trainset", "devset", "testset_w_refs"):
        write_tables(tmp_path / f"{name}.csv")
    (tmp_path / "testset.csv").write_text("MR\nname[The Mill]\n")  # has no references
    found = list(stream_utterances(tmp_path))
    assert Counter(part for part, _ in found) == {"train": 3, "validation": 3, "test": 3}
    table = 'name = "The Mill"; customer rating = "3 out of 5"; familyFriendly = yes'
    assert sides(each for _, each in found[:3]) == [
        (table, "The Mill, for children."),
        (table, "The Mill is rated 3 out of 5, and welcomes families."),
        ('name = "Café Rouge"; priceRange = "less than £20"', "Café Rouge is cheap."),
    ]
    assert [each.id for _, each in found[:2]] == ["train/2", "train/3"]
    assert sides(read_utterances(tmp_path / "trainset.csv")) == sides(e for _, e in found[:3])
    write_tables(tmp_path / "more.csv")
    refused(tmp_path, r"more\.csv would not be read, because a folder with parts holds nothing but")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (("name The Mill", "a"), r'line 3: "mr" is not of the form name\[value\]'),
        (("name[The Mill] near[b]", "a"), 'line 3: "mr" is not of the form'),
        (("", "a"), 'line 3: "mr" is not of the form'),
        (("name[The Mill]", ""), "line 3: the reply is empty"),
        (("name[The Mill]",), "line 3: 1 column but the header has 2"),
    ],
)
def test_a_broken_row_of_e2e_is_refused_by_its_line(row, told, tmp_path):
    refused(write_tables(tmp_path / "trainset.csv", [("name[a]", "a"), row]), told)


# ------------------------------------------------------------------------------------------- DART
def test_each_annotation_of_dart_is_an_utterance(tmp_path):
    for part in ("train", "dev", "test"):
        write_triples(tmp_path / f"dart-v1.1.1-full-{part}.json")
    found = list(stream_utterances(tmp_path))
    assert Counter(part for part, _ in found) == {"train": 3, "validation": 3, "test": 3}
    college = 'subject = "Mars Hill"; JOINED = "1973"; LOCATION = "Mars Hill, NC"'
    assert sides(each for _, each in found[:3]) == [
        (college, "Mars Hill joined in 1973."),
        (college, "In 1973 came Mars Hill."),
        ('subject = [TABLECONTEXT]; [TITLE] = "Mayors"; subject = "Airan"; MAYOR = "M. d\'Ison"',
         "M. d'Ison was mayor of Airan."),
    ]  # fmt: skip
    assert [each.id for _, each in found[:3]] == ["train/1/1", "train/1/3", "train/2/1"]
    write_triples(tmp_path / "dart-v1.0.0-full-train.json")
    refused(tmp_path, "would both be the part train; name one file")


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"annotations": TRIPLES[0]["annotations"]}, 'record 2: the list "tripleset" is missing'),
        ({**TRIPLES[0], "annotations": []}, 'record 2: the list "annotations" is missing or empty'),
        ({**TRIPLES[0], "tripleset": [["a", "b"]]}, 'record 2: "tripleset" is not a list of'),
        ({**TRIPLES[0], "annotations": [{"source": "a"}]}, 'record 2: annotation 1 has no "text"'),
    ],
)
def test_a_broken_record_of_dart_is_refused_by_its_number(record, told, tmp_path):
    refused(write_triples(tmp_path / "dart-v1.1.1-full-dev.json", [TRIPLES[0], record]), told)


# ------------------------------------------------------------------------------------ Persona-Chat
def test_a_turn_of_persona_chat_has_the_persona_and_three_turns_before_it(tmp_path):
    (tmp_path / "valid_self_original.txt").write_text(PERSONA_CHAT)
    with gzip.open(tmp_path / "train_self_original.txt.gz", "wt") as file:
        file.write(PERSONA_CHAT)
    found = list(stream_utterances(tmp_path))
    assert Counter(part for part, _ in found) == {"train": 4, "validation": 4}
    persona = "your persona: i like to ski. your persona: i have a dog."
    assert sides(each for _, each in found[:4]) == [
        (f"{persona} user: hi , how are you ?", "fine , and you ?"),
        (f"{persona} user: hi , how are you ? system: fine , and you ? user: fine . any pets ?",
         "a dog ."),
        (f"{persona} user: fine . any pets ? system: a dog . user: what is its name ?", "rex ."),
        ("partner's persona: i am old. user: hello .", "hello !"),
    ]  # fmt: skip
    users = [each.user for _, each in found]
    assert users == ["train/1"] * 3 + ["train/2"] + ["valid/1"] * 3 + ["valid/2"]
    (tmp_path / "train_self_revised.txt").write_text(PERSONA_CHAT)
    refused(tmp_path, "would both be the part train")


def test_a_dialogue_without_persona_is_told_from_plain_text(tmp_path):
    (tmp_path / "a.txt").write_text("1 hi .\thello .\t\tyes .|hello .\n")
    assert sides(read_utterances(tmp_path / "a.txt")) == [("user: hi .", "hello .")]
    (tmp_path / "b.txt").write_text("1 egg and\t2 spoons\nof sugar\n")
    refused(tmp_path / "b.txt", "line 2: a line begins with its number in the dialogue, 2 or 1")
    (tmp_path / "c.txt").write_text("1 egg\n")
    assert read_utterances(tmp_path / "c.txt", columns=ColumnsConfig(intent=NONE))[0].tokens == (
        "1", "egg")  # fmt: skip


@pytest.mark.parametrize(
    ("last", "told"),
    [
        ("3 again", "line 8: neither a persona nor a turn with a tab before its reply"),
        ("4 late\tyes", "line 8: a line begins with its number in the dialogue, 3 or 1"),
        ("3 again\t", "line 8: the reply is empty"),
    ],
)
def test_a_broken_line_of_persona_chat_is_refused(last, told, tmp_path):
    (tmp_path / "train.txt").write_text(f"{PERSONA_CHAT}{last}\n")
    refused(tmp_path / "train.txt", told)


# ---------------------------------------------------------------------------------- one's own table
ROWS = [{"prompt": 'size = "12 m"', "reply": "It is 12 m  long."}, {"prompt": "a", "reply": "b"}]


def own(folder, name, keys=("prompt", "reply"), more=()):
    path = folder / name
    rows = [dict(zip(keys, row.values()), **dict(more)) for row in ROWS]
    if ".jsonl" in name:
        return write_records(path, rows)
    return write_tables(path, [tuple(row.values()) for row in rows], tuple(rows[0]))


@pytest.mark.parametrize("name", ["mine.csv", "mine.jsonl"])
def test_a_table_of_ones_own_has_a_prompt_and_a_reply(name, tmp_path):
    wanted = [('size = "12 m"', "It is 12 m long."), ("a", "b")]
    assert sides(read_utterances(own(tmp_path, name))) == wanted
    named = own(tmp_path, name, ("question", "answer"), {"text": "x", "user": "ann"}.items())
    found = read_utterances(named, columns=ColumnsConfig(prompt="question", reply="answer"))
    assert sides(found) == wanted
    assert {(each.user, each.intent) for each in found} == {("ann", "reply")}


def test_a_label_and_tokens_of_a_prompt_are_kept(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"prompt": ["a b", "c"], "reply": "d", "label": "x"}))
    (found,) = read_utterances(path)
    assert (found.tokens, found.intent) == (("a b", "c", REPLY, "d"), "x")


def test_a_corpus_that_has_a_text_is_read_as_before(tmp_path):
    path = tmp_path / "a.csv"
    for more in ("prompt,reply", "prompt,x"):
        path.write_text(f"text,slots,intent,{more}\ncall mum,O O,call,a,b\n")
        assert read_utterances(path)[0].tokens == ("call", "mum")


@pytest.mark.parametrize("at_first", [True, False])
def test_one_corpus_has_replies_or_texts_but_not_both(at_first, tmp_path):
    reply = {"prompt": "a", "reply": "b"}
    rows = [reply, {**reply, "text": "call mum", "label": "call"}]
    path = write_records(tmp_path / "mine.jsonl", rows if at_first else rows[::-1])
    told = "a text is read here, but" if at_first else "a prompt and its reply are read here, but"
    refused(path, f"line 2: {told}")
    assert len(read_utterances(path, columns=ColumnsConfig(prompt="prompt"))) == 2


@pytest.mark.parametrize(
    ("text", "told", "settings"),
    [
        ("prompt,reply\na,\n", "line 2: the reply is empty; remove the utterance", {}),
        ("prompt,reply\n,a\n", "line 2: the prompt is empty", {}),
        (f"prompt,reply\n{REPLY} a,b\n", "line 2: the prompt holds", {}),
        ("prompt,reply\na,b,c\n", "line 2: 3 columns but the header has 2", {}),
        ("prompt,answer\na,b\n",
         'line 1: the column "reply" is missing beside "prompt"; data.columns.reply can name', {}),
        ("text,slots,intent\na,O,b\n", 'line 1: the column "reply" is missing beside "text"',
         {"prompt": "text"}),
        ("prompt,answer\na,b\n", 'line 1: the column "said", which data.columns.reply names',
         {"reply": "said"}),
    ],
)  # fmt: skip
def test_a_bad_row_of_ones_own_table_is_refused_by_its_line(text, told, settings, tmp_path):
    (tmp_path / "mine.csv").write_text(text)
    refused(tmp_path / "mine.csv", told, **settings)


def test_an_utterance_without_a_reply_is_refused():
    one_sentence(r'"call mum" has no token <\|reply\|> between', split_reply, ("call", "mum"))
