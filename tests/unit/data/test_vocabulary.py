"""Vocabularies: what is known, what is not, and from where."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import one_sentence

from edp_mx.data.labels import LabelsConfig
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import PAD, UNK, Vocabulary, VocabularyConfig
from edp_mx.errors import UserError

FLIGHT = Utterance(("To", "Rome", "to"), ("O", "B-city", "O"), "flight", "train/1")
FARE = Utterance(("Fare",), ("B-cost",), "fare", "train/2")


def test_training_part_as_source():
    vocabulary = Vocabulary.build([FLIGHT, FARE])
    assert vocabulary.words == ("<pad>", "<unk>", "fare", "rome", "to")
    assert vocabulary.characters[2:] == tuple(sorted(set("ToRometoFare")))
    assert vocabulary.slots == ("O", "B-city", "B-cost")
    assert vocabulary.intents == ("fare", "flight")
    assert vocabulary.word_id("ROME") == 3 and vocabulary.word_id("Paris") == UNK
    assert vocabulary.character_ids("Rz") == [vocabulary.characters.index("R"), UNK]
    assert vocabulary.slot_id("I-city") == -1 and vocabulary.intent_id("none") == -1
    assert not vocabulary.is_public


def test_reserved_words_are_no_words_of_the_text():
    vocabulary = Vocabulary.build([Utterance(("<unk>", "<pad>", "a"), ("O",) * 3, "x")])
    assert vocabulary.words == ("<pad>", "<unk>", "a")
    assert vocabulary.word_id("<unk>") == UNK and vocabulary.word_id("<pad>") == PAD


def test_min_count_and_case():
    config = VocabularyConfig(min_count=2)
    assert Vocabulary.build([FLIGHT], config).words[2:] == ("to",)
    config = VocabularyConfig(min_count=2, lowercase=False)
    assert Vocabulary.build([FLIGHT], config).words[2:] == ()
    config = VocabularyConfig(lowercase=False)
    assert Vocabulary.build([FLIGHT], config).words[2:] == ("Rome", "To", "to")


words = st.text(st.characters(blacklist_categories=["Cs", "Z", "C"]), min_size=1, max_size=5)


@given(st.lists(words, min_size=1, max_size=20), st.booleans())
def test_round_trip_and_ids(tokens, lowercase):
    utterance = Utterance(tuple(tokens), ("B-a",) * len(tokens), "x")
    vocabulary = Vocabulary.build([utterance], VocabularyConfig(lowercase=lowercase))
    again = Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json())))
    assert again == vocabulary
    assert len(set(vocabulary.words)) == len(vocabulary.words)
    for token in tokens:
        spelling = token.lower() if lowercase else token
        assert vocabulary.words[again.word_id(token)] == spelling
        characters = [vocabulary.characters[i] for i in again.character_ids(token)]
        assert "".join(characters) == token


def public_lists(tmp_path, slots=("city", "cost"), intents=("flight", "fare")):
    (tmp_path / "words.txt").write_text("Rome\nrome\nto\n\nfare\n")
    labels = {"slots": list(slots), "intents": list(intents)}
    (tmp_path / "labels.json").write_text(json.dumps(labels))
    return (
        VocabularyConfig(source="file", path=str(tmp_path / "words.txt")),
        LabelsConfig(source="file", path=str(tmp_path / "labels.json")),
    )


def test_public_lists_do_not_depend_on_the_training_part(tmp_path):
    lists = public_lists(tmp_path)
    vocabulary = Vocabulary.build([FLIGHT, FARE], *lists)
    assert vocabulary == Vocabulary.build([], *lists)
    assert vocabulary.is_public
    assert vocabulary.words[2:] == ("rome", "to", "fare")
    assert set("ROMErome") <= set(vocabulary.characters)
    assert vocabulary.slots == ("O", "B-city", "I-city", "B-cost", "I-cost")
    assert vocabulary.intents == ("flight", "fare")


def test_half_public_is_not_public(tmp_path):
    words_list, labels_list = public_lists(tmp_path)
    assert not Vocabulary.build([FLIGHT], words_list).is_public
    assert not Vocabulary.build([FLIGHT], VocabularyConfig(), labels_list).is_public


@pytest.mark.parametrize(
    ("slots", "intents", "label"),
    [(["city"], ["flight", "fare"], "B-cost"), (["city", "cost"], ["flight"], "fare")],
)
def test_a_training_label_that_the_list_lacks_is_named(tmp_path, slots, intents, label):
    lists = public_lists(tmp_path, slots, intents)
    with pytest.raises(UserError, match=f"'{label}' of the training utterance 'train/2'"):
        Vocabulary.build([FLIGHT, FARE], *lists)


def test_words_of_the_embeddings_as_source(tmp_path):
    (tmp_path / "a.vec").write_text("4 2\nThe 1 2\nnew york 1 2\nthe 3 4\nrare 5 6\n")
    path = str(tmp_path / "a.vec")
    config = VocabularyConfig(source="embeddings", max_words=2)
    vocabulary = Vocabulary.build([FLIGHT], config, embeddings_path=path)
    assert vocabulary.words[2:] == ("the", "new york")
    assert vocabulary.word_source == "embeddings"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"slots": ["a"]}', '"intents" is not a list'),
        ('{"slots": [1], "intents": []}', '"slots" is not a list'),
        ('{"slots": ["a", "a"], "intents": []}', 'twice in "slots"'),
    ],
)
def test_broken_label_lists_are_refused(tmp_path, content, complaint):
    (tmp_path / "labels.json").write_text(content)
    with pytest.raises(UserError, match=complaint):
        Vocabulary.build([], labels=LabelsConfig("file", str(tmp_path / "labels.json")))


def test_a_torn_vocabulary_is_refused():
    value = Vocabulary.build([FLIGHT]).to_json()
    del value["slots"]
    one_sentence("slots", Vocabulary.from_json, value)
