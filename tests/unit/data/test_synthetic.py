"""Synthetic corpora: same seed same bytes, both paths agree, aligned tags, noise, long tails."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.jsonl import write_jsonl

from edp_mx.data.readers import read_utterances
from edp_mx.data.synthetic import STANDINS, generator, make_utterances, noise
from edp_mx.data.synthetic.grammar import NoiseRates, english, load_grammar
from edp_mx.data.synthetic.noise import Noise
from edp_mx.data.synthetic.values import Sources
from edp_mx.data.text import write_json_lines
from edp_mx.runtime.files import sha256_of

SIZE = 4_000
RECIPES = english().recipes
# Of 2,000 utterances by seed 3: these corpora stand in published tables.
DIGESTS = {
    "communication": "375d98f1bbddc66f763de1d9687e1e6499ce98b6cac5fe06895e42392b906b5e",
    "health": "8e9d39561e80237731df776a53bdc4908afe7673b44ef00d02879cdfc99fa830",
    "video": "6ac88ab2643deb9194a5302193883480bf7a5e8fc9bbb5516bd63f95552042c3",
}


@pytest.fixture(scope="module", params=STANDINS)
def corpus(request):
    return request.param


@pytest.fixture(scope="module")
def sample(corpus):
    return list(make_utterances(corpus, size=SIZE, seed=3))


def test_tags_align_and_are_bio(corpus, sample):
    grammar = load_grammar(corpus)
    types = {name.split(".")[0] for name in grammar.slots}
    assert [u.id for u in sample] == [f"{corpus}/{n:06d}" for n in range(SIZE)]
    for utterance in sample:
        assert len(utterance.tokens) == len(utterance.slots) >= 1
        assert utterance.intent in grammar.intents
        assert all(re.fullmatch(r"[a-z0-9'.]+", token) for token in utterance.tokens), utterance
        previous = "O"
        for tag in utterance.slots:
            if tag != "O":
                assert tag[2:] in types and tag[:2] in ("B-", "I-")
            if tag.startswith("I-"):
                assert previous != "O" and previous[2:] == tag[2:], utterance
            previous = tag


def test_a_corpus_is_what_it_was(corpus, tmp_path):
    write_jsonl(tmp_path / "a.jsonl", make_utterances(corpus, size=2_000, seed=3))
    assert sha256_of(tmp_path / "a.jsonl") == DIGESTS[corpus]


def test_what_is_written_is_read_again(sample, tmp_path):
    write_json_lines(tmp_path / "a.jsonl", (utterance.to_json() for utterance in sample))
    write_jsonl(tmp_path / "b.jsonl", sample)
    assert sha256_of(tmp_path / "a.jsonl") == sha256_of(tmp_path / "b.jsonl")
    read = read_utterances(tmp_path / "a.jsonl")
    assert read == sample and [u.id for u in read] == [u.id for u in sample]


def test_the_seed_decides_and_a_prefix_does_not_depend_on_the_size(corpus, monkeypatch):
    monkeypatch.setattr(generator, "BLOCK", 500)  # so that a sample spans blocks
    long = list(make_utterances(corpus, size=1_700, seed=3))
    assert list(make_utterances(corpus, size=700, seed=3)) == long[:700]
    assert long[:500] != long[500:1000]
    other = list(make_utterances(corpus, size=700, seed=4))
    same = sum(a == b for a, b in zip(long, other))
    assert same < 70


def test_intents_are_imbalanced_and_slots_have_long_tails(sample):
    intents = Counter(u.intent for u in sample)
    slots = Counter(tag[2:] for u in sample for tag in u.slots if tag.startswith("B-"))
    assert 10 <= len(intents) <= 20 and 15 <= len(slots) <= 40
    assert intents.most_common(1)[0][1] > 4 * min(intents.values())
    words = Counter(token for u in sample for token in u.tokens)
    once = sum(1 for count in words.values() if count == 1)
    assert once > 0.3 * len(words)  # half of a real log's words occur once
    unseen = {token for u in sample[SIZE // 2 :] for token in u.tokens} - {
        token for u in sample[: SIZE // 2] for token in u.tokens
    }
    assert len(unseen) > 200  # out-of-vocabulary values in what follows


def test_phone_numbers_are_fictional(sample):
    for utterance in sample:
        text = " ".join(utterance.tokens)
        for number in re.findall(r"\b\d{3} \d{4}\b", text):
            assert re.fullmatch(r"555 01\d\d", number), text


tagged = st.lists(
    st.tuples(
        st.sampled_from(["call", "the", "for", "two", "o'clock", "555", "mia", "kitchen", "zzz"]),
        st.sampled_from(["O", "O", "B-x", "B-y", "I"]),
    ),
    min_size=1,
    max_size=9,
)


@given(tagged, st.floats(0, 0.999), st.floats(0, 0.999), st.floats(0, 0.999), st.integers(0, 6))
def test_noise_keeps_rows_aligned_and_bio(pairs, a, b, c, kind):
    tags, last = [], "O"
    for _, tag in pairs:  # "I" continues what stands before it, if that is a span
        last = f"I-{last[2:]}" if tag == "I" and last != "O" else tag.replace("I", "O")
        tags.append(last)
    row = [" ".join(word for word, _ in pairs), " ".join(tags), "intent"]
    strikes = [
        lambda: noise.mislabel(row, {"x": "y", "y": "x"}, a),
        lambda: noise.drop_word(row, a),
        lambda: noise.cut_off(row, a),
        lambda: noise.slip(row, np.array([a, b, c])),
        lambda: noise.splice(row, 0, 0, "um"),
        lambda: noise.append(row, "thanks"),
        lambda: noise.fill(row, "you know", a),
    ]
    strikes[kind]()
    tokens, after = row[0].split(" "), row[1].split(" ")
    assert len(tokens) == len(after) and all(tokens)
    for previous, tag in zip(["O", *after], after):
        assert not tag.startswith("I-") or previous[2:] == tag[2:]


def test_without_noise_the_carriers_are_clean_and_with_it_each_kind_shows():
    noisy = load_grammar("communication")
    rates = NoiseRates(*[0.0] * len(NoiseRates.__dataclass_fields__))
    rows = [["call mia", "O B-contact_name", "call"] for _ in range(3_000)]
    Noise(replace(noisy, rates=rates), Sources(RECIPES)).add(rows, np.random.default_rng(1))
    assert {row[0] for row in rows} == {"call mia"}
    Noise(noisy, Sources(RECIPES)).add(rows, np.random.default_rng(1))
    changed = sum(row[0] != "call mia" for row in rows) / len(rows)
    assert 0.25 < changed < 0.6
    said = {row[0] for row in rows}
    assert "please call mia" in said and "call mia please" in said and "call um mia" in said
    assert sum("B-relation" in row[1] for row in rows) > 30
