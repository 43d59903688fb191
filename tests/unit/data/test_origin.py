"""Whether a corpus was read elsewhere: copied, cut, merged or changed, and what cannot be told."""

import random
from contextlib import suppress
from dataclasses import replace

import pytest
from support.jsonl import write_jsonl
from support.refusals import one_sentence

from edp_mx.data.checking import check
from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.fingerprint import fingerprint
from edp_mx.data.origin import (
    SAMPLE,
    AtHand,
    Origin,
    Read,
    beside,
    noted_sources,
    read_origin,
    sources_of,
    write_origin,
)
from edp_mx.data.text import digest
from edp_mx.data.utterance import Utterance


def said(*texts):
    return [Utterance((*text.split(),), ("O",) * len(text.split()), "x") for text in texts]


MINE, OTHERS = said(*(f"call number {i}" for i in range(300))), said(*(
    f"play song {i}" for i in range(20_000)
))  # fmt: skip


@pytest.fixture
def at_hand_of(tmp_path):
    """Compares a corpus with one that was read elsewhere."""

    def compare(utterances):
        write_jsonl(tmp_path / "mine.jsonl", utterances)
        data = DataConfig(corpus="mine", path=str(tmp_path / "mine.jsonl"), split="80/10/10")
        corpus = load_corpus(data)
        return lambda theirs: AtHand(data, corpus).is_in(theirs)

    return compare


@pytest.fixture
def at_hand(at_hand_of):
    """Compares the corpus of 300 utterances with one that was read elsewhere."""
    return at_hand_of(MINE)


def read(utterances, corpus="theirs"):
    return Read.at(corpus, ()).with_part(fingerprint(utterances)).with_texts_of(utterances)


@pytest.mark.parametrize(
    ("theirs", "is_own"),
    [
        (MINE[::-1], True),  # another order, and so another split
        ([replace(u, id="7", user="a", intent="y", slots=("B-a", "O", "O")) for u in MINE], True),
        (said(*("  ".join(u.tokens).upper() for u in MINE)), True),
        (said(*(f"call num ber-{i}." for i in range(300))), True),
        (MINE[:20], True),  # which is all that they have
        (MINE[:100] + OTHERS, True),  # a third of the corpus at hand
        (MINE[:3] + OTHERS, False),  # 1 %: what people say everywhere
        (OTHERS, False),
        (said("call number 1", "call number 2") + OTHERS[:3], False),  # by chance
    ],
    ids=["order", "labels", "case", "cut", "subset", "merged", "hardly", "none", "chance"],
)
def test_a_tenth_of_the_smaller_corpus_in_common_is_the_same_corpus(at_hand, theirs, is_own):
    shuffled = random.Random(1).sample(theirs, len(theirs))
    assert at_hand(read(shuffled)) is is_own


REPLIES = [f"the train number {i} leaves at noon" for i in range(300)]


@pytest.mark.parametrize(
    ("theirs", "is_own"),
    [
        (said(*REPLIES), True),  # as plain text
        (said(*(f"when {i} <|reply|> {reply}" for i, reply in enumerate(REPLIES))), True),
        (said(*(f"acts {i} [SEP] {reply}" for i, reply in enumerate(REPLIES))), True),
        (said(*(f"user: {reply} system: that is {reply}" for reply in REPLIES)), True),  # a turn
        (said(*(f"user: it is {reply}" for reply in REPLIES)), False),
        (said(*(f"offer {i} <|reply|> here you are" for i in range(300))), False),  # too short
    ],
    ids=["plain", "prompts", "second", "turns", "others", "short"],
)
def test_a_reply_is_told_with_another_prompt_or_none(at_hand_of, theirs, is_own):
    prompts = [f"offer number {i} at noon <|reply|> {reply}" for i, reply in enumerate(REPLIES)]
    assert at_hand_of(said(*prompts))(read(theirs)) is is_own


@pytest.mark.parametrize(
    ("size", "is_own"), [(20_000, False), (122_880, False), (122_881, None), (10**7, None)]
)
def test_of_a_text_so_large_that_its_sample_would_hardly_have_ours_nobody_can_tell(
    at_hand, size, is_own
):
    """4,096 of 122,880 lines are expected to have ten of our 300, if all of them were there."""
    assert at_hand(replace(read(OTHERS, "lines.txt"), size=size)) is is_own


def test_a_sample_is_of_the_distinct_texts_with_the_lowest_digests():
    texts = [f"text {i}" for i in range(10_000)]
    said = [Utterance(tuple(text.split()), ("O", "O"), "x") for text in texts]
    whole = read([*said, *(replace(each, tokens=("TEXT", each.tokens[1])) for each in said)])
    lowest = sorted(map(digest, texts))[:SAMPLE]
    assert whole.size == 20_000 and whole.count_in(lowest) == (SAMPLE, SAMPLE)


def test_what_another_machine_hashed_goes_by_its_name_or_cannot_be_told(
    at_hand, tmp_path, monkeypatch
):
    monkeypatch.setenv("EDP_MX_KEY", str(tmp_path / "another.key"))
    mine, theirs = read(MINE, "mine"), read(MINE)
    monkeypatch.delenv("EDP_MX_KEY")
    assert at_hand(mine) is True and at_hand(theirs) is None
    assert at_hand(replace(theirs, key=read(MINE).key)) is False  # its hashes are others
    assert at_hand(replace(read(MINE), salt="0" * 32)) is False


def test_stand_ins_are_told_by_their_seeds(tmp_path):
    data = DataConfig(corpus="health", size=100, split_seed=3)
    corpus = load_corpus(data)
    for name, seed, is_own in (("health", 3, True), ("health", 4, False), ("video", 3, False)):
        theirs = Read.of(DataConfig(corpus=name, size=9, split_seed=seed))
        assert AtHand(data, corpus).is_in(theirs) is is_own


def test_an_origin_comes_back_as_it_was_written_and_tells_no_text(tmp_path):
    line = (Origin("B", "dp_sgd", 3.5, "checkpoint", (read(MINE), Read("health", seed=2))),
            Origin("A", "unknown"))  # fmt: skip
    path = beside(tmp_path / "a.jsonl.gz")
    write_origin(path, line)
    assert read_origin(path) == line and path.name == "a.jsonl.gz.origin.json"
    for text in (str(tmp_path), "number", f"{digest('call number 7'):x}"):
        assert text not in path.read_text()
    assert read_origin(tmp_path / "nothing.json") == ()


def test_a_file_that_could_not_be_written_anew_keeps_the_sources_of_the_old_one(tmp_path):
    out = tmp_path / "merged.jsonl"
    for name, is_written in (("health", True), ("video", False), ("communication", True)):
        with suppress(OSError), noted_sources(out, [(name, MINE)], seed=1):
            if not is_written:
                raise OSError("the disk is full")
        found = [read.corpus for origin in read_origin(beside(out)) for read in origin.corpora]
        wanted = {"health": ["health"], "video": ["health", "video"]}
        assert found == wanted.get(name, [name])


def test_a_folder_and_a_checked_copy_keep_what_merged_corpora_were_made_of(tmp_path):
    (tmp_path / "start").mkdir()
    merged = tmp_path / "start" / "train.jsonl"
    with noted_sources(merged, [("health", MINE)], seed=1):
        write_jsonl(merged, MINE)
    check(merged, out=tmp_path / "sound.jsonl")
    for path in (merged, merged.parent, tmp_path / "sound.jsonl"):
        assert [read.corpus for read in sources_of(path)] == ["health"], path
    assert sources_of(tmp_path / "nothing") == ()


@pytest.mark.parametrize(
    "content",
    [
        '{"origin": [{"name": "A", "how": "none", "epsilon": "1"}]}',
        "[]",
        '{"origin": [{"name": "A"}]}',
        '{"origin": 3}',
        "{",
    ],
)
def test_a_damaged_origin_is_refused_by_its_path(tmp_path, content):
    (tmp_path / "origin.json").write_text(content)
    one_sentence(r"origin\.json", read_origin, tmp_path / "origin.json")


def test_without_the_key_nothing_but_the_size_is_told():
    """Not even that two are of the same corpus, nor how many texts are repeated."""
    first, second, repeated = read(MINE), read(MINE), read(MINE[:5] * 60)
    size = len(MINE)
    for one in (first, second, repeated):
        assert (one.size, len(one.sample)) == (size, 12 * size)
    assert first.part != second.part and first.count_in([]) == (0, size)
    hashes = [{one.sample[i : i + 12] for i in range(0, 12 * size, 12)} for one in (first, second)]
    assert not hashes[0] & hashes[1]
    digests = [digest(" ".join(u.tokens)) for u in MINE]
    assert [one.count_in(digests)[0] for one in (first, second, repeated)] == [size, size, 5]
