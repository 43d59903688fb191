"""A corpus in files is, bit for bit, the same corpus in memory."""

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import one_sentence
from support.utterances import drawn_pairs, ids_of, split_corpus, stored, utterance_of

from edp_mx.data import column_files
from edp_mx.data import columns as columns_module
from edp_mx.data.columnar_corpus import (
    StoredUtterances,
    ids_at,
    intents_of,
    lines_of,
    select,
    tags_of,
    token_counts,
)
from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.encoding import encode
from edp_mx.data.fingerprint import fingerprint
from edp_mx.data.labels import LabelsConfig
from edp_mx.data.splits import PARTS
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary, VocabularyConfig
from edp_mx.data.wordpiece import SPECIAL_PIECES, WordPiece
from edp_mx.errors import UserError
from edp_mx.runtime.files import write_json

words = st.text("aBé\0\ud800 ", min_size=1, max_size=4)
pairs = drawn_pairs(words, max_size=6)
users = st.sampled_from([("",), ("ann", "bo", "eve")]).map(st.sampled_from)  # nobody, or somebody
contents = users.flatmap(
    lambda user: st.lists(st.tuples(pairs, st.sampled_from("uvw"), user), min_size=1, max_size=25)
)


def utterances_of(contents):
    return [utterance_of(pairs, intent, f"ü/{i}", *user)
            for i, (pairs, intent, *user) in enumerate(contents)]  # fmt: skip


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """What is done some thousands at a time is done three at a time."""
    monkeypatch.setattr(columns_module, "_CHUNK", 3)
    monkeypatch.setattr(column_files, "_FLUSH", 3)


@settings(max_examples=30)
@given(contents, st.data())
def test_text_comes_back_as_it_went_in(contents, data):
    utterances = utterances_of(contents)
    with tempfile.TemporaryDirectory() as folder:
        found = stored(utterances, Path(folder))
        assert list(found.utterances) == utterances
        who = [(u.id, u.user) for u in utterances]
        assert [(u.id, u.user) for u in found.utterances] == who
        place = data.draw(st.integers(-len(utterances), len(utterances) - 1))
        assert found.utterances[place] == utterances[place]
        some = data.draw(st.lists(st.integers(0, len(utterances) - 1)))
        view = select(found.utterances, np.array(some, np.int64))
        assert isinstance(view, StoredUtterances)
        assert list(view) == select(utterances, some) == [utterances[i] for i in some]
        assert list(view[1:-1]) == list(view)[1:-1]
        ids = [utterances[i].id for i in some]
        assert list(ids_at(found.utterances, some)) == list(ids_at(utterances, some)) == ids
        names = found.utterances.columns.token_names
        assert list(names) == [names[i] for i in range(len(names))]
        with pytest.raises(IndexError):
            found.utterances[len(utterances)]
        # What is counted on the numbers is what is counted on the text, in the same order.
        for counted in (view, list(view)):
            tokens = Counter(token for u in counted for token in u.tokens)
            assert list(token_counts(counted).items()) == list(tokens.items())
            assert tags_of(counted) == {tag for u in counted for tag in u.slots}
            assert intents_of(counted) == {u.intent for u in counted}


@settings(max_examples=30)
@given(contents)
def test_split_and_fingerprints_are_those_of_the_corpus_in_memory(contents):
    utterances = utterances_of(contents)
    with tempfile.TemporaryDirectory() as folder:
        found = stored(utterances, Path(folder))
        wanted = split_corpus(utterances, seed=7)
        whole = []
        for part in PARTS:
            np.testing.assert_array_equal(getattr(found.split, part), getattr(wanted, part))
            listed = [utterances[i] for i in getattr(wanted, part)]
            assert found.fingerprints[part] == fingerprint(listed)
            whole += listed
        assert found.fingerprints["corpus"] == fingerprint(whole)


@settings(max_examples=20)
@given(contents, st.lists(st.text('aü"\\\n'), min_size=25, max_size=25))
def test_a_split_is_written_as_json_is(contents, ids):
    utterances = [
        replace(u, id=f"{id}{n}") for n, (u, id) in enumerate(zip(utterances_of(contents), ids))
    ]
    split = split_corpus(utterances, seed=7)
    with tempfile.TemporaryDirectory() as folder:
        write_json(f"{folder}/whole.json", ids_of(split, utterances))
        split.write(f"{folder}/pieces.json", utterances)
        assert Path(folder, "pieces.json").read_bytes() == Path(folder, "whole.json").read_bytes()


def test_a_view_of_a_whole_corpus_copies_no_places(tmp_path):
    found = stored(utterances_of([([("a", "O")], "u")] * 40), tmp_path)
    part = found.utterances.at(found.split.train)
    assert part.rows is found.split.train
    assert encode(part, Vocabulary.build(list(part))).rows is part.rows
    (tmp_path / "some").mkdir()
    backwards = lambda *_: (np.arange(40)[::-1], found.split)  # noqa: E731
    some = stored(utterances_of([([("a", "O")], "u")] * 40), tmp_path / "some", backwards)
    assert some.utterances.at(np.array([0, 3])).rows.tolist() == [39, 36]


def test_a_fingerprint_is_the_hash_that_runs_have_always_written_down():
    import hashlib

    some = list(make_utterances("health", size=50, seed=1))
    for utterances in (some, some[:1], []):
        value = [(u.id, u.tokens, u.slots, u.intent) for u in utterances]
        wanted = hashlib.sha256(repr(value).encode()).hexdigest()[:16]
        assert fingerprint(utterances) == fingerprint(iter(utterances)) == wanted


def same_batches(one, other, generator):
    np.testing.assert_array_equal(one.lengths, other.lengths)
    assert len(one) == len(other) and one.num_cut == other.num_cut
    for _ in range(5):
        indices = generator.integers(0, len(one), 6)
        for a, b in zip(arrays(one.batch(indices)), arrays(other.batch(indices))):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def arrays(batch):
    rest = (batch.lengths, batch.slots, batch.intents, batch.indices)
    return (*batch.inputs, *rest)


@settings(max_examples=30)
@given(contents, st.integers(1, 5), st.integers(1, 4), st.integers(3, 8), st.integers(0, 99))
def test_batches_are_the_same(contents, max_tokens, max_characters, max_pieces, seed):
    utterances, generator = utterances_of(contents), np.random.default_rng(seed)
    maxima = {"max_tokens": max_tokens, "max_characters": max_characters, "max_pieces": max_pieces}
    rows = generator.integers(0, len(utterances), 7)
    listed = [utterances[i] for i in rows]
    with tempfile.TemporaryDirectory() as folder:
        view = stored(utterances, Path(folder)).utterances.at(rows)
        letters = sorted({c for u in utterances for t in u.tokens for c in t if c.isalpha()})
        pieces = WordPiece((*SPECIAL_PIECES, *letters, *(f"##{c}" for c in letters)), False)
        for vocabulary in (
            Vocabulary.build(listed[:3]),
            Vocabulary.of_pieces(pieces, listed[:3], word_source="file"),
        ):
            encoded = encode(view, vocabulary, **maxima)
            same_batches(encoded, encode(listed, vocabulary, **maxima), generator)
            again = encode(view[::-1], vocabulary, **maxima, like=encoded)
            assert again.table is encoded.table
            same_batches(again, encode(listed[::-1], vocabulary, **maxima), generator)


@pytest.mark.parametrize(
    "name",
    ["atis", "health", *(pytest.param(n, marks=pytest.mark.slow) for n in ("snips", "nlu_eval"))],
)
def test_whole_corpora_are_the_same(name, monkeypatch, tmp_path, generator, request):
    monkeypatch.undo()  # whole pieces again
    path = None
    if name in ("atis", "snips", "nlu_eval"):
        path = str(request.getfixturevalue("real_corpus")(name))
    config = DataConfig(corpus=name, path=path, size=5000, split_seed=3)
    monkeypatch.setenv("EDP_MX_CACHE", "off")
    held = load_corpus(config)
    monkeypatch.setenv("EDP_MX_CACHE", str(tmp_path))
    monkeypatch.setattr("edp_mx.data.corpus.KEPT_FROM", 100)
    for _ in range(2):  # written, then only opened
        kept = load_corpus(config)
        assert isinstance(kept.utterances, StoredUtterances)
        assert kept.utterances[4999].id == held.utterances[4999].id
        assert list(kept.utterances) == list(held.utterances)
        assert ids_of(kept.split, kept.utterances) == ids_of(held.split, held.utterances)
        assert kept.fingerprint() == held.fingerprint() and len(kept.fingerprint()) == 16
        vocabulary = Vocabulary.build(kept.train, VocabularyConfig(min_count=2))
        assert vocabulary == Vocabulary.build(held.train, VocabularyConfig(min_count=2))
        for part in PARTS:
            assert fingerprint(getattr(kept, part)) == fingerprint(list(getattr(kept, part)))
            encoded = encode(getattr(kept, part), vocabulary, max_tokens=9)
            in_memory = encode(getattr(held, part), vocabulary, max_tokens=9)
            same_batches(encoded, in_memory, generator)


def test_word_pieces_are_learned_from_the_same_words():
    utterances = [Utterance(("to be",) * 1001 + ("or",), ("O",) * 1002, "x")] * 2
    lines = list(lines_of(utterances))
    assert max(len(line) for line in lines) <= 1000 * len("to be ")
    found = " ".join(lines).split()
    assert [found.count(word) for word in ("to", "be", "or")] == [2002, 2002, 2]


def test_a_missing_label_names_the_utterance(tmp_path):
    utterances = [Utterance(("a",), ("O",), "x", f"u/{i}") for i in range(6)]
    utterances[4] = Utterance(("a",), ("B-new",), "x", "u/4")
    labels = tmp_path / "labels.json"
    labels.write_text('{"slots": ["old"], "intents": ["x"]}')
    (tmp_path / "store").mkdir()
    train = stored(utterances, tmp_path / "store").utterances
    config = LabelsConfig("file", str(labels))
    with pytest.raises(UserError, match=r"lacks the label 'B-new' of the training utterance 'u/4'"):
        Vocabulary.build(train, labels=config)
    assert Vocabulary.build(train[:4], labels=config).slots == ("O", "B-old", "I-old")


def test_an_id_that_occurs_twice_is_refused(tmp_path, monkeypatch):
    utterances = [Utterance(("a",), ("O",), "x", id) for id in ("u", "v", "w", "v")]
    one_sentence("the id 'v' occurs twice", stored, utterances, tmp_path)
    # Hashes that meet by chance are no repeat.
    monkeypatch.setattr(column_files, "digest_of", lambda _: 0)
    (tmp_path / "other").mkdir()
    assert len(stored(utterances[:3], tmp_path / "other").utterances) == 3
