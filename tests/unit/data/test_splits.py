"""The paper's split: sizes, strata, no repeated utterance and no user on two sides."""

import itertools
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.jsonl import write_jsonl
from support.refusals import one_sentence
from support.utterances import ids_of, say, split_corpus, split_in_order, stored

from edp_mx.data import columns as columns_module
from edp_mx.data import corpus as corpus_module
from edp_mx.data.columnar_corpus import StoredUtterances
from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.fingerprint import fingerprint
from edp_mx.data.readers import read_utterances
from edp_mx.data.splits import PARTS, Split, own_split, users_on_two_sides
from edp_mx.data.strata import keys_of
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.users import names_users, users_of
from edp_mx.dp.sampling.dealing import records_by_user
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


def test_a_prompt_is_on_one_side_with_all_its_replies(generator, tmp_path):
    names = [f"{'Name' if n % 2 else 'name'} {n % 40}" for n in range(200)]
    said = [say(f"{name} <|reply|> text {n}", id=f"{n}") for n, name in enumerate(names)]
    split, sides = split_corpus(said, seed=int(generator.integers(99))), {}
    for part in PARTS:
        for index in getattr(split, part):
            sides.setdefault(int(index) % 40, set()).add(part)
    assert len(sides) == 40 and all(len(found) == 1 for found in sides.values())
    in_files = []

    def arrange(sizes, keys, intents):
        in_files.append(keys)
        return split_in_order(sizes, keys, intents)

    stored(said, tmp_path, arrange)
    assert (in_files[0][:40] == in_files[0][160:]).all() and len(set(in_files[0])) == 40


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
    one_sentence("not here", Split.from_json, ids, utterances[:3])
    one_sentence("another corpus", Split.from_json, ids, [*utterances, say("5", id="5")])
    with pytest.raises(UserError, match='lacks the list "test"'):
        Split.from_json({"train": [], "validation": []}, utterances)


def said_by(names, texts=("yes please", "no", "call mum", "play it")):
    """Utterances of these users, whose texts repeat."""
    return [
        say(text, text.split()[0], f"mine/{number}", name)
        for number, (name, text) in enumerate(zip(names, itertools.cycle(texts)), start=1)
    ]


names = st.lists(st.sampled_from(["ann", "bo", "ü\ud800", "eve"]), min_size=1, max_size=30)


def test_a_fingerprint_changes_with_a_user_and_only_then():
    nobody = list(make_utterances("health", size=3000, seed=1))
    assert fingerprint(nobody) == "bdbeb93cb3e3b00c"  # of the version without users
    somebody = [replace(nobody[0], user="ann"), *nobody[1:]]
    prints = [fingerprint(u) for u in (nobody, somebody, [replace(nobody[0], user="bo")])]
    assert len(set(prints)) == 3


# ------------------------------------------------------------------------------------- numbering
@settings(max_examples=40)
@given(names, st.integers(1, 5), st.data())
def test_users_are_numbered_in_the_order_in_which_they_appear(names, piece, data):
    utterances = said_by(names)
    rows = data.draw(st.lists(st.integers(0, len(names) - 1)))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_module, "_CHUNK", piece)
        kept = stored(utterances, Path(folder)).utterances
        assert [u.user for u in kept] == names
        part = kept.at(np.array(rows, np.int64))
        for some, who in ((utterances, names), (kept, names), (part, [names[r] for r in rows])):
            found = users_of(some)
            order = list(dict.fromkeys(who))
            assert found.tolist() == [order.index(name) for name in who]
            assert found.dtype == np.int32 and names_users(some) == (len(who) > 0)


@given(st.lists(st.integers(0, 6), max_size=40))
def test_records_by_user_are_those_of_a_loop(numbers):
    order = list(dict.fromkeys(numbers))
    users = np.array([order.index(n) for n in numbers], np.int32)
    records, offsets = records_by_user(users)
    assert len(offsets) == len(order) + 1
    for user in range(len(order)):
        here = records[offsets[user] : offsets[user + 1]].tolist()
        assert here == [record for record, who in enumerate(users) if who == user]


@pytest.mark.parametrize("is_stored", [False, True])
def test_who_is_not_named_is_refused_with_the_first_id(tmp_path, is_stored):
    utterances = said_by(["", "", ""])
    if is_stored:
        utterances = stored(utterances, tmp_path).utterances
        assert isinstance(utterances, StoredUtterances)
    assert not names_users(utterances)
    wanted = "'mine/1' names no user, nor does any other; .* key \"user\" in JSON lines, or a file"
    one_sentence(wanted, users_of, utterances)


def test_a_corpus_that_names_some_users_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "mine.jsonl"
    write_jsonl(path, [replace(u, id="") for u in said_by(["ann", "bo", "", "ann", ""] * 60)])
    config = DataConfig(corpus="mine", path=str(path))
    monkeypatch.setenv("EDP_MX_CACHE", str(tmp_path / "cache"))
    for kept_from in (50_000, 100):  # in memory, and kept
        monkeypatch.setattr(corpus_module, "KEPT_FROM", kept_from)
        one_sentence(r"'mine\.jsonl/3' names no user, though others do", load_corpus, config)


# ------------------------------------------------------------------------------------- splitting
def test_a_corpus_without_users_is_split_as_it_always_was(digest):
    split = split_corpus(list(make_utterances("health", size=3000, seed=1)), seed=0)
    assert digest(getattr(split, part) for part in PARTS) == "7f66efd1805dbf2e"


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(0, 10**6))
def test_each_user_is_on_one_side_and_sizes_are_near_the_fractions(counts, seed):
    people = [f"user {u}" for u, count in enumerate(counts) for _ in range(count)]
    generator = np.random.default_rng(seed)
    utterances = said_by([people[i] for i in generator.permutation(len(people))])
    split = split_corpus(utterances, seed=seed)
    everything = np.concatenate([getattr(split, part) for part in PARTS])
    assert sorted(everything) == list(range(len(utterances)))
    assert users_on_two_sides(split, users_of(utterances)) == 0
    for part, fraction in zip(PARTS, (0.45, 0.05, 0.5)):
        distance = abs(len(getattr(split, part)) - fraction * len(utterances))
        assert distance < 2 * max(counts) + 1


def test_users_on_two_sides_of_an_own_split_are_counted():
    utterances = said_by(["ann", "bo", "eve", "ann", "eve", "eve", "ann"])
    keys, intents = keys_of(utterances)
    parts = {"train": 3, "validation": 2, "test": 2}
    rows, split = own_split(parts, keys, intents, seed=0, held_out=0.5)
    assert rows.tolist() == list(range(7))
    assert users_on_two_sides(split, users_of(utterances)) == 2
    utterances = said_by(["ann", "ann", "bo", "eve", "eve", "eve", "eve"])
    assert users_on_two_sides(split, users_of(utterances)) == 1


def test_held_out_validation_takes_whole_users():
    utterances = said_by([f"user {i % 20}" for i in range(200)])
    sizes = {"train": 160, "test": 40}
    rows, split = own_split(sizes, *keys_of(utterances), seed=3, held_out=0.1)
    users = users_of(utterances)[rows]
    train, validation = (set(users[p].tolist()) for p in (split.train, split.validation))
    assert len(validation) == 2 and not train & validation
    assert users_on_two_sides(split, users) == 20  # the corpus' own test part is left as it is
