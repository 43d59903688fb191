"""Word vectors from files: what is kept, what it costs, what is refused."""

import gzip
import tracemalloc

import numpy as np
import pytest
from support.refusals import one_sentence

from edp_mx.data.embeddings import EmbeddingsConfig, load_embeddings, read_embedding_words
from edp_mx.errors import UserError

BODY = "the 1 2 3 \nnew york 4 5 6 \nthe 7 8 9 \nBoston -1 -2e-1 .5 \n"


def write(path, text):
    data = text.encode("utf-8")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return EmbeddingsConfig(path=str(path), dimension=3)


@pytest.mark.parametrize("name", ["a.vec", "a.txt", "a.vec.gz", "a.txt.gz"])
@pytest.mark.parametrize("header", ["4 3\n", ""])
def test_wanted_words_are_found_in_the_order_wanted(tmp_path, name, header):
    config = write(tmp_path / name, header + BODY)
    words, matrix = load_embeddings(config, ["boston", "absent", "new york", "the", "york"])
    assert words == ("boston", "new york", "the")
    expected = np.array([[-1, -0.2, 0.5], [4, 5, 6], [1, 2, 3]], dtype=np.float32)
    np.testing.assert_array_equal(matrix, expected)
    assert matrix.dtype == np.float32
    assert list(read_embedding_words(config.path)) == ["the", "new york", "the", "Boston"]


def test_a_words_own_case_wins_wherever_it_stands(tmp_path):
    config = write(tmp_path / "a.vec", "May 1 1 1\nMAY 2 2 2\nmay 3 3 3\nmay 4 4 4\nMay 5 5 5\n")
    assert load_embeddings(config, ["may"])[1].tolist() == [[3, 3, 3]]
    assert load_embeddings(config, ["May"])[1].tolist() == [[1, 1, 1]]
    config = write(tmp_path / "b.vec", "May 1 1 1\nMAY 2 2 2\n")
    assert load_embeddings(config, ["may", "may"])[1].tolist() == [[1, 1, 1]]


def test_bytes_that_look_like_line_ends_stay_in_their_word(tmp_path):
    config = write(tmp_path / "a.vec", "a\u0085b 1 2 3\nc\u00a0d 4 5 6\n")
    words, _ = load_embeddings(config, ["a\u0085b", "c\u00a0d"])
    assert words == ("a\u0085b", "c\u00a0d")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1 4\na 1 2 3 4\n", "line 1: vectors of 4 values.*set it to 4"),
        ("a 1 2\n", "line 1: vectors of 2 values"),
        ("1 3\na 1 2 3\nunwanted 1 2\n", "line 3: 2 values after the word, not 3"),
        ("b 1 2 3\na 1 x 3\n", "line 2: not a row of numbers"),
        ("b 1 2 3\na 1 nan 3\n", "line 2: a value is not finite"),
        ("b 1 2 3\na 1 -2e6 3\n", "line 2: a value is not finite, or above 1e\\+06"),
    ],
)
def test_broken_files_name_file_and_line(tmp_path, text, complaint):
    one_sentence(rf"a\.vec, {complaint}", load_embeddings, write(tmp_path / "a.vec", text), ["a"])


@pytest.mark.parametrize("words", [["a"], ["absent"]])
def test_a_file_that_was_cut_at_the_end_of_a_line_is_refused(tmp_path, words):
    config = write(tmp_path / "a.vec", "3 3\na 1 2 3\nb 1 2 3\n")
    one_sentence(r"a\.vec ends after 2 of the 3 words", load_embeddings, config, words)
    with pytest.raises(UserError, match=r"a\.vec ends after 2 of the 3 words"):
        list(read_embedding_words(tmp_path / "a.vec"))
    config = write(tmp_path / "a.vec", "2 3\na 1 2 3\nb 1 2 3\n")
    assert load_embeddings(config, ["b"])[0] == ("b",)


def test_missing_torn_and_unknown_files_are_refused(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        load_embeddings(EmbeddingsConfig(path=str(tmp_path / "no.vec")), ["a"])
    config = write(tmp_path / "a.vec.gz", BODY * 100)
    (tmp_path / "a.vec.gz").write_bytes((tmp_path / "a.vec.gz").read_bytes()[:-12])
    one_sentence(r"cannot read .*a\.vec\.gz", load_embeddings, config, ["absent"])


def test_a_large_file_is_streamed(tmp_path):
    """40,000 × 300 is 100 MB of text; what is held must follow the 200 wanted words."""
    path = tmp_path / "large.vec"
    values = " ".join(f"{x:.4f}" for x in np.linspace(-1, 1, 300))
    with open(path, "w") as file:
        file.write("40000 300\n")
        file.writelines(f"word{i} {values}\n" for i in range(40_000))
    config = EmbeddingsConfig(path=str(path))
    wanted = [f"word{i}" for i in range(0, 40_000, 200)]
    tracemalloc.start()
    words, _ = load_embeddings(config, wanted)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(words) == 200 and peak < 4e6


def test_what_is_no_model_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "b.bin").write_text("no model")
    with pytest.raises(UserError, match="not a fastText model"):
        load_embeddings(EmbeddingsConfig(path=str(tmp_path / "b.bin")), ["a"])
    with pytest.raises(UserError, match="does not exist"):
        load_embeddings(EmbeddingsConfig(path=str(tmp_path / "c.bin")), ["a"])
