"""Words and labels that count as public are not read from the corpus itself."""

import json

import pytest
from support.jsonl import write_jsonl
from support.refusals import one_sentence
from support.utterances import say

from edp_mx.config import ExperimentConfig, load_config
from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.labels import LabelsConfig
from edp_mx.data.merging import Wanted, merge
from edp_mx.data.origin import AtHand
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.sources import public_sample, refuse_private_lists
from edp_mx.data.vocabulary import VocabularyConfig
from edp_mx.errors import UserError
from edp_mx.runs.build import vocabulary_for


@pytest.mark.parametrize("path", ["{data}/atis", "{data}/atis/train", "{data}"])
def test_a_public_corpus_that_was_found_by_its_name_is_no_sample_of_itself(
    tmp_path, monkeypatch, path
):
    monkeypatch.setenv("EDP_MX_DATA", str(tmp_path))
    (tmp_path / "atis").mkdir()
    sample = VocabularyConfig("sample", path.format(data=tmp_path))
    with pytest.raises(UserError, match=r"data\.vocabulary\.path must not be .*with the corpus"):
        refuse_private_lists(DataConfig(corpus="atis", vocabulary=sample))
    other = VocabularyConfig("sample", str(tmp_path / "snips"))
    refuse_private_lists(DataConfig(corpus="atis", vocabulary=other))
    refuse_private_lists(DataConfig(corpus="health", vocabulary=sample))  # drawn, not read


def test_a_public_sample_is_read_by_the_corpus_own_columns(tmp_path):
    path = tmp_path / "public.jsonl"
    path.write_text(json.dumps({"said": "call mum", "BIO": ["O", "B-who"], "class": "call"}))
    columns = ColumnsConfig(text="said", slots="BIO", intent="class")
    (found,) = public_sample(DataConfig(corpus="mine", path="a", columns=columns), str(path))
    assert found.tokens == say("call mum").tokens and found.slots == ("O", "B-who")


@pytest.mark.parametrize("shared, is_own", [(0, False), (2, False), (9, False), (10, True)])
@pytest.mark.parametrize("key", ["vocabulary", "labels"])
def test_a_copy_of_the_corpus_is_no_public_sample_whatever_its_name(tmp_path, key, shared, is_own):
    said = [say(f"would you call number {i} , please", intent=f"call{i % 2}") for i in range(100)]
    others = [say(f"would you play song number {i} now", intent=f"call{i % 2}") for i in range(100)]
    copied = [
        say(f"Would you call number-{i}, please!", intent=f"call{i % 2}") for i in range(shared)
    ]
    write_jsonl(tmp_path / "mine.jsonl", said)
    write_jsonl(tmp_path / "public.jsonl", copied + others[shared:])
    sample = {"source": "sample", "path": str(tmp_path / "public.jsonl")}
    part = VocabularyConfig(**sample) if key == "vocabulary" else LabelsConfig(**sample)
    data = DataConfig("mine", str(tmp_path / "mine.jsonl"), split="80/10/10", **{key: part})
    config = ExperimentConfig(data=data)
    corpus = load_corpus(config.data)
    if is_own:
        error = rf"data\.{key}\.path: .*public\.jsonl holds utterances of the corpus itself"
        one_sentence(error, vocabulary_for, config, corpus)
    else:
        vocabulary_for(config, corpus)


@pytest.mark.parametrize("settings", ["", "model: {family: bert}"], ids=["clc", "bert"])
def test_an_empty_sample_gives_no_pieces_of_the_private_part_for_public_ones(tmp_path, settings):
    write_jsonl(tmp_path / "mine.jsonl", [say(f"call number {i}") for i in range(100)])
    (tmp_path / "public.txt").touch()
    words = f"{{source: sample, path: {tmp_path / 'public.txt'}}}"
    (tmp_path / "c.yaml").write_text(
        f"data: {{corpus: mine, path: {tmp_path / 'mine.jsonl'}, split: 80/10/10, vocabulary: "
        f"{words}}}\n{settings}"
    )
    config = load_config(tmp_path / "c.yaml")
    error = r"data\.vocabulary\.path: .*public\.txt holds no utterances"
    one_sentence(error, vocabulary_for, config, load_corpus(config.data))


def at_hand(tmp_path, said):
    write_jsonl(tmp_path / "mine.jsonl", said)
    data = DataConfig("mine", str(tmp_path / "mine.jsonl"), split="80/10/10")
    return AtHand(data, load_corpus(data))


@pytest.mark.parametrize("texts, is_public", [
    (["stop", "yes", "no", "call mum"], True),  # what all say
    (["stop", "yes", "no", *(f"would you please call number {i}" for i in range(3))], False),
    (["stop", "yes", "no", *(f"would you please call number {i}" for i in range(2))], True),
    ([], True),
])  # fmt: skip
def test_what_many_say_by_chance_is_public(tmp_path, texts, is_public):
    said = [say(f"would you please call number {i}") for i in range(200)]
    mine = at_hand(tmp_path, [*said, *map(say, ("stop", "yes", "no", "call mum"))])
    assert mine.is_public(map(say, texts), tmp_path / "public.txt") is is_public


def test_a_corpus_of_short_commands_is_compared_as_it_is(tmp_path):
    mine = at_hand(tmp_path, [say(f"call {i}") for i in range(200)])
    assert not mine.is_public([say(f"call {i}") for i in range(30)], tmp_path / "public.txt")
    assert mine.is_public([say(f"play {i}") for i in range(30)], tmp_path / "public.txt")


def test_a_merged_corpus_with_little_of_ours_is_none_that_is_public(tmp_path):
    mine = at_hand(tmp_path, [say(f"would you please call number {i}") for i in range(200)])
    out = str(tmp_path / "merged.jsonl")
    merge([Wanted(str(tmp_path / "mine.jsonl"), 10), Wanted("health", 2000)], out)
    assert not mine.is_public([], out) and mine.is_public([], tmp_path / "other.jsonl")
