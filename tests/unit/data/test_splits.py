"""The paper's split: sizes, strata, and no repeated utterance on two sides."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.utterances import ids_of, say, split_corpus

from edp_mx.data.readers import read_utterances
from edp_mx.data.splits import PARTS, Split, own_split
from edp_mx.data.strata import keys_of
from edp_mx.errors import UserError

FRACTIONS = {"train": 0.45, "validation": 0.05, "test": 0.50}


def sides_of(split, utterances):
    sides = {}
    for part in PARTS:
        for index in getattr(split, part):
            sides.setdefault(tuple(t.lower() for t in utterances[index].tokens), set()).add(part)
    return sides


@pytest.mark.parametrize("name", ["atis", "snips", "nlu_eval"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_real_corpora_split_exactly(name, seed, real_corpus):
    utterances = read_utterances(real_corpus(name))
    split = split_corpus(utterances, seed=seed)
    everything = np.concatenate([split.train, split.validation, split.test])
    assert sorted(everything) == list(range(len(utterances)))
    assert all(len(sides) == 1 for sides in sides_of(split, utterances).values())
    intents = Counter(u.intent for u in utterances)
    for part, fraction in FRACTIONS.items():
        assert abs(len(getattr(split, part)) - fraction * len(utterances)) <= 1
        held = Counter(utterances[i].intent for i in getattr(split, part))
        for intent, count in intents.items():
            # A group of repeats counts as its first one's intent: a few utterances of slack.
            assert abs(held[intent] - fraction * count) <= 4, (intent, part)


corpora = st.lists(
    st.tuples(st.sampled_from(["a", "A", "b", "c d", "C d", "e"]), st.sampled_from("xyz")),
    max_size=40,
)


@given(corpora, st.integers(0, 10**6))
def test_any_corpus_is_split_once_with_repeats_together(pairs, seed):
    utterances = [say(text, intent, str(i)) for i, (text, intent) in enumerate(pairs)]
    split = split_corpus(utterances, seed=seed)
    everything = np.concatenate([split.train, split.validation, split.test])
    assert sorted(everything) == list(range(len(utterances)))
    assert all(len(sides) == 1 for sides in sides_of(split, utterances).values())
    again = Split.from_json(ids_of(split, utterances), utterances)
    for part in PARTS:
        np.testing.assert_array_equal(getattr(again, part), getattr(split, part))
    assert split_corpus(utterances, seed=seed, fractions=(0.95, 0.05, 0.0)).test.size == 0


@given(st.lists(st.integers(1, 30), max_size=20), st.integers(0, 1000))
def test_sizes_without_repeats_are_within_one(counts, seed):
    utterances = [
        say(f"{label}.{i}", str(label)) for label, count in enumerate(counts) for i in range(count)
    ]
    split = split_corpus(utterances, seed=seed)
    for part, fraction in FRACTIONS.items():
        assert abs(len(getattr(split, part)) - fraction * len(utterances)) <= 1


def test_each_utterance_trains_as_often_as_the_fraction_says():
    utterances = [say(f"word{i}", intent="ab"[i % 2]) for i in range(20)]
    hits = np.zeros(20)
    for seed in range(2000):
        hits[split_corpus(utterances, seed=seed).train] += 1
    assert np.abs(hits / 2000 - 0.45).max() < 4.5 * np.sqrt(0.45 * 0.55 / 2000)


@pytest.mark.parametrize("fractions", [(0.5, 0.5, 0.5), (1.2, -0.2, 0.0)])
def test_impossible_fractions_are_refused(fractions):
    with pytest.raises(UserError, match="add up to 1"):
        split_corpus([say("a")], seed=0, fractions=fractions)


def test_own_parts_are_put_in_order():
    keys = np.array([7, 5, 6, 7, 9])  # read: two tests, one validation, two training utterances
    sizes = {"test": 2, "validation": 1, "train": 2}
    rows, split = own_split(sizes, keys, keys, seed=0, held_out=0.5)
    assert rows.tolist() == [3, 4, 2, 0, 1]
    assert [getattr(split, part).tolist() for part in PARTS] == [[0, 1], [2], [3, 4]]


def test_a_validation_part_is_held_out_where_there_is_none():
    train = [say(f"word{i // 2}", intent="ab"[i % 4 // 2]) for i in range(100)]
    keys, intents = keys_of([*train, say("word0")])
    rows, split = own_split({"train": 100, "test": 1}, keys, intents, seed=3, held_out=0.1)
    wanted = split_corpus(train, seed=3, fractions=(0.9, 0.1, 0.0))
    assert rows[split.train].tolist() == wanted.train.tolist() and len(wanted.validation) == 10
    assert rows[split.validation].tolist() == wanted.validation.tolist()
    assert rows[split.test].tolist() == [100] and sorted(rows) == list(range(101))


def test_a_split_of_another_corpus_is_refused():
    utterances = [say(str(i), id=str(i)) for i in range(4)]
    ids = ids_of(split_corpus(utterances, seed=0), utterances)
    with pytest.raises(UserError, match="not here"):
        Split.from_json(ids, utterances[:3])
    with pytest.raises(UserError, match="another corpus"):
        Split.from_json(ids, [*utterances, say("5", id="5")])
    with pytest.raises(UserError, match='lacks the list "test"'):
        Split.from_json({"train": [], "validation": []}, utterances)
