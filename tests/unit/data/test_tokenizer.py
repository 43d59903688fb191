"""Another tokenizer than word pieces: byte-level BPE, from its file to a batch of a BERT."""

import json
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.documentation import ROOT
from support.refusals import one_sentence
from tokenizers import ByteLevelBPETokenizer, Tokenizer

from edp_mx.data.byte_level_bpe import ByteLevelBPE
from edp_mx.data.encoding import encode
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.tokenizer import load_tokenizer
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
BYTES = {"pre_tokenizer": {"type": "ByteLevel"}}
LINES = ["set an alarm for seven", "play the café song", "don't wake me", "an alarm, please"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tokenizer that the library itself learned and wrote."""
    path = tmp_path_factory.mktemp("bpe")
    library = ByteLevelBPETokenizer(add_prefix_space=True)
    library.train_from_iterator(LINES, vocab_size=300, min_frequency=1, special_tokens=SPECIAL)
    library.save(str(path / "tokenizer.json"))
    return path


@pytest.fixture(scope="module")
def bpe(folder):
    return load_tokenizer(folder)


def slow_ids(bpe, token):
    """Byte-pair encoding of one word without digits or punctuation, as simply as possible."""
    known = {piece: i for i, piece in enumerate(bpe.pieces)}
    printable = [b for b in range(256) if chr(b).isprintable() and not chr(b).isspace()]
    rest = [b for b in range(256) if b not in printable]
    letters = {b: chr(b) for b in printable} | {b: chr(256 + n) for n, b in enumerate(rest)}
    parts = [letters[byte] for byte in f" {token}".encode()]
    while True:
        pairs = [p for p in zip(parts, parts[1:]) if p in bpe.merges]
        if not pairs:
            return [known[part] for part in parts]
        best, merged = min(pairs, key=bpe.merges.index), []
        while parts:
            count = 2 if tuple(parts[:2]) == best else 1
            merged.append("".join(parts[:count]))
            parts = parts[count:]
        parts = merged


@given(token=st.text("abcdefghijklmnopqrstuvwxyzäéñß", min_size=1))
@example(token="alarm")
@example(token="café")
def test_ids_are_those_of_slow_byte_pair_encoding(token, bpe):
    assert bpe.ids(token) == slow_ids(bpe, token)


def test_every_text_can_be_spelled(bpe):
    assert len(bpe.ids("alarm")) == 1 and "alarm" in bpe.whole_words()
    for token in ("京都", "don't", "\ud800", "", "<mask>"):
        ids = bpe.ids(token)
        assert ids and not set(ids) & set(bpe.special_ids)
    assert [bpe.pieces[i] for i in bpe.special_ids] == ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
    gpt = ByteLevelBPE(("a", "Ġ", "<|endoftext|>"), ())
    assert gpt.special_ids == (2,) * 5 and gpt.ids("a") == [1, 0]
    with pytest.raises(UserError, match="lacks one of <pad> <unk>"):
        ByteLevelBPE(("a", "Ġ"), ()).special_ids  # noqa: B018


def test_a_bert_reads_its_pieces(bpe):
    corpus = [Utterance(("don't", "wake", "café"), ("O", "B-x", "O"), "i")] * 2
    vocabulary = Vocabulary.of_pieces(bpe, corpus, word_source="file")
    batch = encode(corpus, vocabulary).batch([1])
    ids = [bpe.ids(token) for token in corpus[0].tokens]
    wanted = [bpe.special_ids.cls, *(i for piece in ids for i in piece), bpe.special_ids.sep]
    assert batch.inputs.pieces[0].tolist() == wanted
    assert batch.inputs.firsts[0].tolist() == (1 + np.cumsum([0, *map(len, ids)])[:-1]).tolist()


def test_it_survives_its_files_and_another_process(bpe, tmp_path):
    bpe.save(tmp_path, max_positions=9)
    vocabulary = Vocabulary.of_pieces(bpe, [Utterance(("a",), ("O",), "i")], word_source="file")
    stored = json.loads(json.dumps(vocabulary.to_json()))
    assert Vocabulary.from_json(stored) == vocabulary and stored == vocabulary.to_json()
    for again in (load_tokenizer(tmp_path), pickle.loads(pickle.dumps(bpe))):
        assert again == bpe and again.ids("wake") == bpe.ids("wake")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"model": {"type": "Unigram"}}, "a Unigram tokenizer cannot be read, only WordPiece and"),
        ({**BYTES, "model": {"type": "BPE"}}, "is not a tokenizer of Hugging Face's"),
        ({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}, "are not byte-level"),
        ({"pre_tokenizer": {"type": "Metaspace"}, "model": {"type": "BPE"}}, "Metaspace, normal"),
        ({**BYTES, "normalizer": {"type": "NFC"}, "model": {"type": "BPE"}}, "normalizer NFC"),
        ({"model": {"type": "WordPiece", "vocab": {"a": 1}}}, "are not 0, 1, 2"),
        ([], "must hold a JSON object"),
        (None, "has no vocab.txt"),
    ],
)
def test_other_files_are_refused_in_one_sentence(content, told, tmp_path):
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    one_sentence(told, load_tokenizer, tmp_path)


def test_gpt_2_has_no_blank_before_a_text_and_one_piece_around_it():
    """Whole texts are spelled as the library spells them, between blanks and ends of text."""
    pieces = (*"abc", "Ġ", "ab", "Ġa", "Ġab", "<|endoftext|>")
    gpt = ByteLevelBPE(pieces, (("a", "b"), ("Ġ", "a"), ("Ġa", "b")))
    texts = ["ab c ab", "c", "ab ab <|reply|> ab ab c", "a [SEP] ab <|reply|> c"]
    corpus = [Utterance(tuple(t.split()), ("O",) * len(t.split()), "i") for t in texts]
    batch = encode(corpus, Vocabulary.of_pieces(gpt, corpus, word_source="file")).batch(range(4))
    library, end = gpt._library, len(pieces) - 1
    for row, text in enumerate(texts):
        parts = re.split(r" (?:\[SEP\]|<\|reply\|>) ", text)
        wanted = [i for part in parts for i in [end, *library.encode(part).ids]]
        length = batch.inputs.lengths[row]
        assert batch.inputs.pieces[row, :length].tolist() == [*wanted, end]
        assert (batch.inputs.pieces[row, length:] == end).all()


def test_a_word_without_its_bytes_is_refused_and_not_shortened():
    gpt = ByteLevelBPE((*"ab", "Ġ", "<|endoftext|>"), ())
    assert gpt.ids("ab") == [2, 0, 1]
    one_sentence('the word "azb" cannot be spelled, since the vocabulary lacks', gpt.ids, "azb")


def test_a_text_that_is_cut_never_has_more_pieces_than_there_is_room(generator):
    pieces = (*"abc", "Ġ", "Ġabc", "Ġa", "Ġab", "<|endoftext|>")  # "abc" is longer at the beginning
    gpt = ByteLevelBPE(pieces, (("Ġ", "a"), ("Ġa", "b"), ("Ġab", "c")))
    texts = [generator.choice(["abc", "c", "<|reply|>"], 9).tolist() for _ in range(30)]
    corpus = [Utterance(tuple(text), ("O",) * 9, "i") for text in texts]
    vocabulary = Vocabulary.of_pieces(gpt, corpus, word_source="file")
    lengths = encode(corpus, vocabulary, max_pieces=12).batch(range(30)).inputs.lengths
    assert 8 < lengths.max() <= 12


def test_the_library_reads_what_was_learned_as_a_batch_has_it(tmp_path):
    """So that transformers' pipeline is given prompts, and gives texts, as they were learned."""
    (tmp_path / "text.txt").write_text("\n".join(LINES))
    with open(tmp_path / "text.txt") as file:
        gpt = ByteLevelBPE.learn(file, size=300, min_count=1)
    gpt.save(tmp_path, max_positions=9)
    library = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    said = Utterance(("don't", "wake", "<|reply|>", "the", "café"), ("O",) * 5, "i")
    vocabulary = Vocabulary.of_pieces(gpt, [said], word_source="file")
    pieces = encode([said], vocabulary).batch([0]).inputs.pieces[0].tolist()
    end = "<|endoftext|>"
    assert library.encode(f"{end}don't wake{end}the café{end}").ids == pieces
    assert library.decode(pieces[-6:]).endswith("the café"[-2:])
    assert library.decode(gpt.opening_ids("an") + gpt.ids("alarm")) == "an alarm"
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert settings["eos_token"] == settings["bos_token"] == end
    assert load_tokenizer(tmp_path) == gpt


def test_the_library_reads_a_text_of_a_roberta_as_a_batch_has_it(bpe, tmp_path):
    bpe.save(tmp_path, max_positions=9)
    library = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    said = Utterance(("set", "an", "alarm"), ("O",) * 3, "i")
    vocabulary = Vocabulary.of_pieces(bpe, [said], word_source="file")
    pieces = encode([said], vocabulary).batch([0]).inputs.pieces[0].tolist()
    assert library.encode("set an alarm").ids == pieces
    assert library.decode(pieces).strip() == "set an alarm"


LEARN = """
import sys, hashlib
from edp_mx.data.byte_level_bpe import ByteLevelBPE
made = ByteLevelBPE.learn(open(sys.argv[1]), size=400, min_count=1)
print(hashlib.sha256(repr((made.pieces, made.merges)).encode()).hexdigest())
"""


def test_a_vocabulary_that_is_learned_is_gpt_2s_and_the_same_everywhere(tmp_path):
    texts = [
        u.intent + " " + " ".join(u.tokens) for u in make_utterances("video", size=300, seed=2)
    ]
    text = tmp_path / "text.txt"
    text.write_text("\n".join([*texts, "Zoë's café 京都"]) + "\n")
    said = {
        subprocess.run([sys.executable, "-c", LEARN, str(text)], check=True, capture_output=True,
                       env={**os.environ, "RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": threads,
                            "PYTHONPATH": str(ROOT)}).stdout
        for threads in ("1", "2", "4")
    }  # fmt: skip
    assert len(said) == 1
    made = ByteLevelBPE.learn(text.read_text().splitlines(), size=400, min_count=1)
    assert len(made) == 400 and made.pieces[0] == "<|endoftext|>" and made.has_openings
    for sentence in (texts[0], "Zoë's café 京都", "never seen ☃"):
        first, *rest = sentence.split()
        ids = [*made.opening_ids(first), *(i for token in rest for i in made.ids(token))]
        assert made.text_of(ids) == sentence
    assert len(made.ids("the")) == 1 < len(made.opening_ids("Snowman"))
    one_sentence("no room for the 256 bytes", ByteLevelBPE.learn, texts, size=256, min_count=1)
