"""Word pieces: a slow tokenizer, hand-made cases and a slow learner as oracles."""

import os
import subprocess
import sys
import unicodedata
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.refusals import one_sentence

from edp_mx.data import wordpiece_learning
from edp_mx.data.readers import read_utterances
from edp_mx.data.tokenization import split_tokens
from edp_mx.data.tokenizer import load_tokenizer
from edp_mx.data.wordpiece import WordPiece
from edp_mx.data.wordpiece_learning import SPECIAL_PIECES, learn_pieces
from edp_mx.errors import UserError

# The special pieces are scattered on purpose: places are ids wherever they stand.
TEXT = """
the [MASK] ##s [UNK] [PAD] don ' t s o clock 7 ##3 ##7 : 30 5 ##p ##m 3 . 14 cafe café Caf ##é 京 都
tokyo [ ] cl ## # - un ##aff ##able [SEP] http / www co 😀 a ##a ##b Don T don't x [CLS] mask CL ##S
"""
PIECES = tuple(TEXT.split())


def slow_ids(wordpiece, token):
    """BERT's pieces of a token, written as simply as possible."""
    if wordpiece.lowercase:
        token = unicodedata.normalize("NFD", token.lower())
        token = "".join(c for c in token if unicodedata.category(c) != "Mn")
    text = ""
    for c in token:
        category = unicodedata.category(c)
        if c.isascii() and c.isprintable() and not c.isalnum() or category[0] == "P" or c in "京都":
            text += f" {c} "
        elif category[0] != "C" and c != "\ufffd" or c in "\t\n\r":
            text += c
    ids = [i for word in text.split() for i in slow_word(wordpiece, word)]
    return ids or [wordpiece.special_ids.unk]


def slow_word(wordpiece, word):
    places, start, found = {p: i for i, p in enumerate(wordpiece.pieces)}, 0, []
    while start < len(word):
        inside = "##" if start else ""
        fits = (end for end in range(len(word), start, -1) if inside + word[start:end] in places)
        end = next(fits, 0)
        if not end or len(word) > 200:
            return [wordpiece.special_ids.unk]
        found.append(places[inside + word[start:end]])
        start = end
    return found


# --- against a slow tokenizer -----------------------------------------------------------------


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("name", ["atis", "snips", "nlu_eval"])
def test_ids_of_real_tokens_are_those_of_a_slow_tokenizer(name, lowercase, real_corpus):
    utterances = read_utterances(real_corpus(name))
    lines = [" ".join(u.tokens) for u in utterances]
    tokens = sorted({token for u in utterances for token in u.tokens})[:3000]
    # Learned from the first lines: the others have characters and words that it lacks.
    wordpiece = WordPiece(learn_pieces(lines[:400], size=900, lowercase=lowercase), lowercase)
    wanted = [slow_ids(wordpiece, token) for token in tokens]
    assert [wordpiece.ids(token) for token in tokens] == wanted
    pieces = sum(map(len, wanted))
    assert len(tokens) > 800 and pieces > 1.5 * len(tokens), "too easy to show anything"


@given(st.text(st.characters(max_codepoint=0x24F)), st.booleans())
@settings(max_examples=150)
def test_ids_of_any_latin_text_are_those_of_a_slow_tokenizer(token, lowercase):
    # Beyond Latin the two know different versions of Unicode.
    wordpiece = WordPiece(PIECES, lowercase)
    assert wordpiece.ids(token) == slow_ids(wordpiece, token)


# --- hard ones --------------------------------------------------------------------------------
WORDS = """
Don't o'clock 's thes 737 7:30 5pm 3.14 café cafe Café Cafe\u0301 京都 the京tokyo unaffable
unaffected zebra un-zebra's \u0301 😀 the😀 👍🏽 [CLS] [MASK] the[SEP] ##s http://www.co/a-b Don'T
THE \ufeffthe
"""
HARD = [
    *WORDS.split(), "a" * 200, "a" * 201, "a" * 300 + "-the", "", "\x00\x07", "\x00\ufffd",
    "\u200b", "th\u200be", "\u00a0", "the\u00a0s",  # annotators left no-break spaces in tokens
    "京都,7\u200b37\u3000a",
]  # fmt: skip
BY_HAND = [  # whether in lower case, token, pieces
    (True, "Don't", "don ' t"),  # never the piece "don't": punctuation splits first
    (True, "unaffected", "[UNK]"),  # one unknown for the word, not for its rest
    (True, "the😀", "[UNK]"),  # a symbol is no punctuation
    (True, "[CLS]", "[ cl ##s ]"),
    (True, "##s", "# # s"),  # not the continuation "##s"
    (False, "Café", "Caf ##é"),
]


def test_hard_tokens():
    for lowercase in (True, False):
        wordpiece = WordPiece(PIECES, lowercase)
        assert wordpiece.special_ids == tuple(PIECES.index(piece) for piece in SPECIAL_PIECES)
        for token in [*HARD, *HARD]:  # once more, from the cache
            assert wordpiece.ids(token) == slow_ids(wordpiece, token), token
    for lowercase, token, pieces in BY_HAND:
        found = WordPiece(PIECES, lowercase).ids(token)
        assert " ".join(PIECES[i] for i in found) == pieces


# --- any text ---------------------------------------------------------------------------------

TOKENS = st.text(st.characters(exclude_characters=" \t\n\r\f\v"), min_size=1)


@given(st.lists(TOKENS), st.booleans())
@example(["\u00a0", "\u200b", "ΣΑΣ", "Σ", "\u0301", "x\u1fef", "\ud83d"], True)
@example(["\u2028", "\x1c", "\x85", "\ufffd"], False)
def test_any_tokens(tokens, lowercase):
    wordpiece = WordPiece(PIECES, lowercase)
    one_by_one = [wordpiece.ids(token) for token in tokens]
    reserved = set(wordpiece.special_ids) - {wordpiece.special_ids.unk}
    for ids in one_by_one:
        assert ids and all(0 <= i < len(PIECES) for i in ids)
        assert not reserved & set(ids)
    again = [wordpiece.ids(token) for token in split_tokens(" ".join(tokens))]
    assert again == one_by_one


# --- learning ---------------------------------------------------------------------------------


def slow_pieces(lines, *, size, min_count):
    """Byte-pair encoding of blank-separated words, written as simply as possible."""
    words = Counter(word for line in lines for word in line.split())
    characters = sorted({c for word in words for c in word})
    pieces = [*SPECIAL_PIECES, *characters, *(f"##{c}" for c in characters)]
    spelling = {word: [word[0], *(f"##{c}" for c in word[1:])] for word in words}
    while len(pieces) < size:
        pairs = Counter()
        for word, parts in spelling.items():
            for pair in zip(parts, parts[1:]):
                pairs[pair] += words[word]
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], pieces.index(p[0]), pieces.index(p[1])))
        if pairs[best] < min_count:
            break
        joined = best[0] + best[1][2:]
        if joined not in pieces:
            pieces.append(joined)
        for word, parts in spelling.items():
            i, merged = 0, []
            while i < len(parts):
                is_best = tuple(parts[i : i + 2]) == best
                merged.append(joined if is_best else parts[i])
                i += 2 if is_best else 1
            spelling[word] = merged
    return tuple(pieces)


@given(
    st.lists(st.text("abc ", max_size=30), min_size=1).filter(lambda ls: "".join(ls).strip()),
    st.integers(11, 40),
    st.integers(1, 4),
)
def test_learned_pieces_are_those_of_slow_byte_pair_encoding(lines, size, min_count):
    try:
        learned = learn_pieces(lines, size=size, min_count=min_count)
    except UserError:
        assert size < 5 + 2 * len(set("".join(lines)) - {" "})
        return
    assert learned == slow_pieces(lines, size=size, min_count=min_count)


def test_two_processes_learn_the_same_whatever_their_hashes_and_threads(tmp_path):
    # All words occur equally often: every step is a tie.
    words = sorted(
        {f"{a}{b}{c}{a}{d}" for a in "abcd" for b in "efgh" for c in "ijkl" for d in "mn"}
    )
    (tmp_path / "text.txt").write_text("\n".join(words))
    code = (
        "import sys; from edp_mx.data.wordpiece_learning import learn_pieces\n"
        "print('\\n'.join(learn_pieces(open(sys.argv[1]), size=150, min_count=1)))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "text.txt")],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "RAYON_NUM_THREADS": threads},
            check=True,
            capture_output=True,
        ).stdout
        for hash_seed, threads in (("1", "1"), ("2", "4"))
    }
    assert len(outputs) == 1
    here = learn_pieces(reversed(words), size=150, min_count=1)  # nor does the order of the lines
    assert outputs.pop().decode().split() == list(here) and len(here) == 150


def test_memory_is_bounded_and_no_character_lost(monkeypatch):
    most = 0

    class Watched(Counter):
        def __setitem__(self, key, value):
            nonlocal most
            super().__setitem__(key, value)
            most = max(most, len(self))

    monkeypatch.setattr(wordpiece_learning, "_MAX_DISTINCT", 50)
    monkeypatch.setattr(wordpiece_learning, "Counter", Watched)
    rare = [f"{chr(0x3B1 + i % 17)}{i}" for i in range(500)]
    pieces = learn_pieces((f"boston {word}" for word in rare), size=200)
    assert 50 < most <= 102, "two times the bound, and the last line"
    assert "boston" in pieces
    seen = {c for word in rare for c in word}
    assert seen <= set(pieces) and {f"##{c}" for c in seen} <= set(pieces)


def test_words_too_long_to_be_read_give_no_pieces():
    pieces = learn_pieces(["ab" * 150 + " c c"], size=100)
    assert pieces[5:] == ("a", "b", "c", "##a", "##b", "##c")


def test_what_gives_no_pieces_is_refused():
    for lines in ([], ["", "  "], ["\x00 \u200b"]):
        one_sentence("no word", learn_pieces, lines, size=100)
    assert len(learn_pieces(["ab a.b"], size=10)) == 10  # 5 special, a b ., ##a ##b
    with pytest.raises(UserError, match=r"of 9 word pieces is too small: the 3 .* need 10;"):
        learn_pieces(["ab a.b"], size=9)
    one_sentence("'a' is there 2 times", WordPiece, (*SPECIAL_PIECES, "a", "b", "a"))


# --- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lowercase", [True, False])
def test_file_and_back(tmp_path, lowercase):
    wordpiece = WordPiece(PIECES, lowercase)
    wordpiece.save(tmp_path, max_positions=9)
    assert load_tokenizer(tmp_path) == wordpiece
    assert (tmp_path / "vocab.txt").read_bytes() == "\n".join([*PIECES, ""]).encode()


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_ends_of_lines_do_not_matter(tmp_path, end, mark):
    path = tmp_path / "vocab.txt"
    for text in ("\n".join(PIECES) + end, "\r\n".join(PIECES) + end.replace("\n", "\r\n")):
        path.write_bytes((mark + text).encode())
        assert WordPiece.from_file(path).pieces == PIECES


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"[PAD]\n[UNK]\nthe\n[CLS]\nthe\n", r"vocab.txt, line 5: 'the' is already on line 3;"),
        (b"[PAD]\n\nthe\n", r"vocab.txt, line 2: empty"),
        (b"[PAD]\n[UNK]\n\xff\n", r"vocab.txt, line 3: not UTF-8"),
        (b"[PAD]\n[UNK]\n[CLS]\nthe\n", r"vocab.txt: the 4 word pieces lack \[SEP\] \[MASK\];"),
        (b"", r"vocab.txt: the 0 word pieces lack \[PAD\]"),
        (None, r"cannot read .*vocab.txt"),
    ],
)
def test_broken_files_are_told_in_one_sentence(tmp_path, content, sentence):
    if content is not None:
        (tmp_path / "vocab.txt").write_bytes(content)
    one_sentence(sentence, WordPiece.from_file, tmp_path / "vocab.txt")
