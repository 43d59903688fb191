"""Scores of generated text, against their definitions in a few lines, and by hand."""

import json
import math
import sys
from collections import Counter
from dataclasses import fields
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import one_sentence

from edp_mx.metrics import text_overlap
from edp_mx.metrics.generation import GenerationScores, group_references, score_generated
from edp_mx.metrics.quoted_values import (
    NOT_SAID,
    missing_values,
    quoted,
    quoted_values,
)
from edp_mx.metrics.text_overlap import distinct, normalized_words, word_f1

WORDS = st.lists(st.sampled_from("abcd"), min_size=4, max_size=9).map(" ".join)
PAIRS = st.lists(st.tuples(st.lists(WORDS, min_size=1, max_size=3), WORDS), min_size=1, max_size=4)


def library(name):
    return pytest.importorskip(name, reason=f"{name} is absent: pip install 'edp_mx[generation]'")


@pytest.fixture
def libraries():
    for name in ("sacrebleu", "rouge_score", "nltk"):
        library(name)


def ngrams(words, n):
    return Counter(zip(*(words[i:] for i in range(n))))


def bleu_by_definition(references, hypotheses):
    """Papineni et al. 2002, and 1 / 2^k for the k-th count of 0."""
    logs, zeros, found, wanted = [], 0, 0, 0
    pairs = [([r.split() for r in rs], h.split()) for rs, h in zip(references, hypotheses)]
    for n in range(1, 5):
        right = sum(
            min(count, max(ngrams(r, n)[gram] for r in rs))
            for rs, h in pairs
            for gram, count in ngrams(h, n).items()
        )
        total = sum(len(h) - n + 1 for _, h in pairs)
        zeros += right == 0
        logs.append(math.log(right / total if right else 1 / 2**zeros / total))
    if zeros == 4:
        return 0.0
    for rs, h in pairs:
        found += len(h)
        wanted += min((abs(len(r) - len(h)), len(r)) for r in rs)[1]
    return math.exp(sum(logs) / 4 + min(0, 1 - wanted / found))


def longest_common(one, other):
    """The length of the longest common subsequence, by its recursion."""
    lengths = {(i, j): 0 for i in range(len(one) + 1) for j in range(len(other) + 1)}
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            longer = max(lengths[i, j + 1], lengths[i + 1, j])
            lengths[i + 1, j + 1] = lengths[i, j] + 1 if a == b else longer
    return lengths[len(one), len(other)]


@given(PAIRS)
def test_bleu_is_its_definition(pairs):
    library("sacrebleu")
    references, hypotheses = zip(*pairs)
    expected = bleu_by_definition(references, hypotheses)
    assert text_overlap.bleu(references, hypotheses) == pytest.approx(expected)


@given(PAIRS)
def test_rouge_l_is_its_definition(pairs):
    library("rouge_score")
    references, hypotheses = zip(*pairs)
    scores = [
        max(2 * longest_common(r.split(), h.split()) / len(r.split() + h.split()) for r in texts)
        for texts, h in pairs
    ]
    expected = sum(scores) / len(scores)
    assert text_overlap.rouge_l(references, hypotheses) == pytest.approx(expected)


@given(st.text(st.characters(max_codepoint=127)), st.text(st.characters(max_codepoint=127)))
def test_rouge_l_is_the_library_s_and_reads_every_alphabet(reference, hypothesis):
    library("rouge_score")
    scorer = import_module("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    theirs = scorer.score(reference, hypothesis)["rougeL"].fmeasure
    assert text_overlap.rouge_l([[reference]], [hypothesis]) == pytest.approx(theirs)
    for said, wanted in (("بخير شكرا", 1), ("नमस्ते, शकरा", 0), ("شكرا", 2 / 3)):
        assert text_overlap.rouge_l([["بخير شكرا."]], [said]) == pytest.approx(wanted)


def test_the_libraries_own_examples(libraries):
    """From the pages of sacrebleu and rouge-score, and from nltk's docstring."""
    references = [
        ["The dog bit the man.", "The dog had bit the man."],
        ["It was not unexpected.", "No one was surprised."],
        ["The man bit him first.", "The man had bitten the dog."],
    ]
    hypotheses = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
    assert text_overlap.bleu(references, hypotheses) == pytest.approx(0.48530827, abs=1e-8)
    fox = ["The quick brown fox jumps over the lazy dog"]
    lazy = "The quick brown dog jumps on the log."  # precision 5/8, recall 5/9
    assert text_overlap.rouge_l([fox], [lazy]) == pytest.approx(10 / 17)
    guide = (
        "It is a guide to action which ensures that the military always obeys the commands of the "
        "party"
    )
    texts = [
        "It is a guide to action that ensures that the military will forever heed Party commands",
        "It is the guiding principle which guarantees the military forces always being under the "
        "command of the Party",
        "It is the practical guide for the army always to heed the directions of the party",
    ]
    assert text_overlap.nist([texts], [guide]) == pytest.approx(3.3709, abs=1e-4)


def test_nist_by_hand(libraries):
    """Of a b c: each word has log2 3 bits, the pairs and triples none beyond them."""
    assert text_overlap.nist([["a b c"]], ["a b c"]) == pytest.approx(math.log2(3))
    assert text_overlap.nist([["a b c"]], [""]) == 0


@pytest.mark.parametrize(
    ("references", "hypothesis", "f1"),
    [
        (["I have a dog."], "i have the dog", 1),
        (["one two three four"], "four, three!", 2 / 3),  # precision 1, recall 1/2
        (["yes yes no"], "yes", 1 / 2),  # a word counts as often as it occurs
        (["nothing", "one two"], "two", 2 / 3),
        (["the"], "a", 0),
    ],
)
def test_f1_of_words_by_hand(references, hypothesis, f1):
    assert word_f1(references, hypothesis) == pytest.approx(f1)


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=6), st.integers(1, 2))
def test_distinct_is_its_definition(words, n):
    grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    expected = len(set(grams)) / len(grams) if grams else 0
    assert distinct([" ".join(words)], n) == expected


def test_articles_and_punctuation_are_no_words():
    assert normalized_words("A man - 'the' an-swer: theory") == ["man", "swer", "theory"]


# ------------------------------------------------------------------------------------- slot errors
VALUES = st.text().filter(lambda value: value.strip().lower() not in NOT_SAID)


@given(st.lists(st.lists(VALUES, min_size=1, max_size=3), max_size=3))
def test_values_are_found_again_whatever_they_hold(slots):
    prompt = "; ".join(f"a = {', '.join(map(quoted, values))}" for values in slots)
    whole = [" ".join(value.split()) for values in slots for value in values]
    assert quoted_values(prompt) == [value for value in whole if value]
    assert quoted_values(f"a = {quoted('Yes')}; b = {quoted('none')}") == []


def test_a_value_is_said_whole_in_any_case():
    prompt = 'offer city = "San José"; inform_count count = "1"; inform price = "$5", "a\\q"'
    assert missing_values(prompt, "One in san  jose\u0301 for $5, or A\\q") == ["1"]
    assert missing_values('a = "1"', "11 or 1st") == ["1"]
    assert missing_values('a = "12.5"', "12.50, then 1275") == ["12.5"]
    assert missing_values('user: I said "no" to "x"', "well") == []
    assert quoted_values('a="x";b= "y","z",c ="1=2"') == ["x", "y", "z", "1=2"]
    prompts = ['a = "x"; b = "y"', "c = yes", 'd = "x"']
    scores = score_generated({prompt: ["a"] for prompt in prompts}, ["x", "no", "the x."])
    assert (scores.values, scores.missing_values) == (3, 1)
    assert scores.slot_error_rate == pytest.approx(1 / 3)
    assert score_generated({"goodbye": ["bye"]}, ["bye"]).slot_error_rate == 0


# -------------------------------------------------------------------------------- all of a corpus
def test_all_scores_of_a_corpus(libraries):
    grouped = group_references(
        ['city = "Rome"', "goodbye", 'city = "Rome"'],
        ["It is in the city of Rome .", "Bye .", "You find it in Rome ."],
    )
    assert list(grouped.values())[0][1] == "You find it in Rome ."
    scores = score_generated(grouped, ["You find it in Rome .", "Good bye ."])
    assert (scores.prompts, scores.references, scores.values, scores.missing_values) == (2, 3, 1, 0)
    assert scores.word_f1 == pytest.approx((1 + 2 / 3) / 2)
    assert scores.rouge_l == pytest.approx((1 + 2 / 3) / 2)
    assert scores.distinct_1 == pytest.approx(8 / 9)
    assert set(scores.to_dict()) == {field.name for field in fields(GenerationScores)}
    assert json.loads(json.dumps(scores.to_dict())) == scores.to_dict()
    told = scores.describe()
    assert "slot errors         0.00%  0 of 1 values missing" in told
    assert "no values in quotation marks" in score_generated({"a": ["b c d e"]}, ["b"]).describe()


def test_each_prompt_needs_one_text():
    for references, hypotheses, told in (
        ({"a": ["b"]}, ["b", "c"], "1 references but 2 hypotheses"),
        ({}, [], "nothing to score"),
    ):
        one_sentence(told, score_generated, references, hypotheses)


@pytest.mark.parametrize(
    ("score", "name"), [("bleu", "sacrebleu"), ("rouge_l", "rouge_score"), ("nist", "sacrebleu")]
)
def test_without_a_library_one_sentence_says_what_to_install(score, name, monkeypatch):
    for module in [each for each in sys.modules if each.split(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    told = r"pip install 'edp_mx\[generation\]'"
    assert name in one_sentence(told, getattr(text_overlap, score), [["a"]], ["a"])
