"""fastText's vectors: learned, written as the library has them, the same again, or refused."""

import gzip
import os
import random

import numpy as np
import pytest
from support.refusals import one_sentence

from edp_mx.data.embeddings import EmbeddingsConfig, load_embeddings, read_embedding_words
from edp_mx.data.fasttext_training import bytes_read, train_fasttext

fasttext = pytest.importorskip("fasttext")
SMALL = {"epochs": 2, "min_count": 1, "buckets": 2_000}
LINES = ["call my mother now", "play the song again", "call my father please"]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES * 30))
    return path


def vectors_of(path, words, dimension=8):
    return load_embeddings(EmbeddingsConfig(path=str(path), dimension=dimension), words)


PLACES, PEOPLE = ("boston", "denver", "tulsa", "miami"), ("mum", "uncle", "grandpa", "sister")


def test_words_of_the_same_contexts_are_nearest(tmp_path):
    """Words that share no letters' groups, so that only contexts can tell which are alike."""
    draw = random.Random(3)
    lines = []
    for _ in range(400):
        lines.append(f"i want a cheap flight from {draw.choice(PLACES)} to {draw.choice(PLACES)}")
        lines.append(f"please call {draw.choice(PEOPLE)} and tell {draw.choice(PEOPLE)} hello")
    (tmp_path / "text.txt").write_text("\n".join(lines))
    train_fasttext([tmp_path / "text.txt"], tmp_path / "v.vec", 16, epochs=80, buckets=2_000)
    _, matrix = vectors_of(tmp_path / "v.vec", [*PLACES, *PEOPLE], 16)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    cosines = matrix @ matrix.T
    alike = (np.arange(8) < 4) == (np.arange(8) < 4)[:, None]
    assert cosines[alike].min() > cosines[~alike].max() + 0.3


@pytest.mark.parametrize("name", ["v.vec", "v.vec.gz"])
def test_text_files_hold_what_the_library_has(tmp_path, text, name):
    assert train_fasttext([text], tmp_path / name, 8, **SMALL) == 10
    assert train_fasttext([text], tmp_path / "v.bin", 8, **SMALL) == 10
    model = fasttext.load_model(str(tmp_path / "v.bin"))
    words = [word for word in model.get_words() if word != "</s>"]
    assert list(read_embedding_words(tmp_path / name)) == words
    expected = np.stack([model.get_word_vector(word) for word in words])
    for path in (tmp_path / name, tmp_path / "v.bin"):
        found, matrix = vectors_of(path, words)
        assert found == tuple(words)
        np.testing.assert_array_equal(matrix, expected)
    unseen, matrix = vectors_of(tmp_path / "v.bin", ["mothership"])
    assert unseen == ("mothership",)
    np.testing.assert_array_equal(matrix[0], model.get_word_vector("mothership"))


def test_a_list_says_which_words_are_written(tmp_path, text):
    listed = tmp_path / "words.txt"
    listed.write_text("song\nMothership\n\ncall\nsong\n")
    train_fasttext([text], tmp_path / "v.bin", 8, **SMALL)
    count = train_fasttext(
        [text], tmp_path / "v.vec", 8, words_path=listed, is_lowercase=True, **SMALL
    )
    assert count == 3
    assert list(read_embedding_words(tmp_path / "v.vec")) == ["song", "mothership", "call"]
    words = ["call", "mothership", "song"]
    for one, other in zip(
        vectors_of(tmp_path / "v.vec", words), vectors_of(tmp_path / "v.bin", words)
    ):
        np.testing.assert_array_equal(one, other)


def test_several_texts_are_one_in_lower_case_with_punctuation_apart(tmp_path):
    lines = ["Is my card working?", "Yes, it won't (today)!", "at 5 p.m. :-) <unk> «"]
    (tmp_path / "a.txt").write_text(f"{lines[0]}\n\n{lines[1]}\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(f"{lines[2]}\n".encode()))
    texts = [tmp_path / "a.txt", tmp_path / "b.txt.gz"]
    train_fasttext(texts, tmp_path / "a.vec", 8, **SMALL)
    assert sorted(read_embedding_words(tmp_path / "a.vec")) == sorted(" ".join(lines).split())
    train_fasttext(
        texts, tmp_path / "b.vec", 8, is_lowercase=True, splits_punctuation=True, **SMALL
    )
    expected = "is my card working ? yes , it won't ( today )! at 5 p.m . : - ) <unk> «"
    assert sorted(read_embedding_words(tmp_path / "b.vec")) == sorted(expected.split())


def test_equal_seeds_give_equal_bytes_and_others_do_not(tmp_path, text):
    for name, seed in (("a.vec", 0), ("b.vec", 0), ("c.vec", 1)):
        train_fasttext([text], tmp_path / name, 8, seed=seed, **SMALL)
    first = (tmp_path / "a.vec").read_bytes()
    assert (tmp_path / "b.vec").read_bytes() == first != (tmp_path / "c.vec").read_bytes()


def leave_numbers_in_free_memory(size):
    """Frees that many bytes, full of numbers, behind a small piece that keeps them in the heap."""
    pieces = [np.full(25_000, 12_345, np.float32) for _ in range(size // 100_000)]
    pieces.append(bytearray(100_000))
    del pieces[:-1]
    return pieces


def test_nothing_of_this_process_s_memory_is_in_the_file(tmp_path, text):
    train_fasttext([text], tmp_path / "out" / "a.bin", 8, epochs=1)
    kept = leave_numbers_in_free_memory(100_000_000)
    train_fasttext([text], tmp_path / "out" / "b.bin", 8, epochs=1)
    a, b = (tmp_path / "out" / name for name in ("a.bin", "b.bin"))
    assert a.read_bytes() == b.read_bytes() and kept
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == ["a.bin", "a.bin.origin.json", "b.bin", "b.bin.origin.json"]


def test_progress_counts_the_lines_and_every_percent(tmp_path, text):
    seen = {}

    def progress(iterable, description, total):
        seen[description] = (total, len(items := list(iterable)))
        return items

    train_fasttext([text], tmp_path / "a.vec", 8, progress=progress, **SMALL)
    assert seen == {"text": (None, 90), "fastText": (100, 100)}


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="the system does not tell")
def test_bytes_that_a_process_has_read_are_counted(tmp_path):
    (tmp_path / "a").write_bytes(bytes(1_000_000))
    before = bytes_read(os.getpid())
    (tmp_path / "a").read_bytes()
    assert 1_000_000 <= bytes_read(os.getpid()) - before < 1_100_000
    assert bytes_read(2**30) == 0


@pytest.mark.parametrize(
    ("content", "out", "settings", "complaint"),
    [
        (None, "a.bin", {}, r"cannot read .*text\.txt: No such file"),
        ("", "a.bin", {}, r"text\.txt: there is no line with text"),
        (" \n\n", "a.vec", {}, r"text\.txt: there is no line with text"),
        ("one two\n", "a.bin", {"min_count": 5}, r"cannot learn from .*text\.txt: Empty vocab"),
        ("one\n", "a.npz", {}, r"a\.npz: the name must end in \.bin, \.vec, \.vec\.gz"),
        ("one\n", "a.bin", {"words_path": "w.txt"}, "a .bin makes vectors of all words"),
        ("one\n", "a.vec", {"words_path": "/nowhere/w.txt"}, r"cannot read /nowhere/w\.txt"),
        ("one\n", "../text.txt/a.vec", {}, r"cannot write .*a\.vec: Not a directory|File exists"),
        ("one\n", "a.vec", {"dimension": 0}, "dimension is 0; it must be 1 or more"),
        ("one\n", "a.vec", {"buckets": 0}, "buckets is 0; it must be 1 or more"),
        ("one\n", "a.vec", {"seed": -1}, "seed is -1; it must be 0 or more"),
    ],
)
def test_refusals_are_sentences_and_leave_nothing(tmp_path, content, out, settings, complaint):
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_text(content)
    given = {"dimension": 8, **settings}
    one_sentence(complaint, train_fasttext, [path], tmp_path / "out" / out, **given)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
