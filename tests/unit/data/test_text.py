"""Text as a stream: what is read, held out and counted, and in how much memory."""

import gzip
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.data.masking import global_batches
from edp_mx.data.text import Sample, Text, TextConfig, digest, lines_of, write_lines
from edp_mx.data.text_survey import survey
from edp_mx.errors import UserError


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def text_of(*paths, **settings):
    return Text.open(TextConfig(train=tuple(map(str, paths)), **settings))


def test_lines_are_read_without_blanks_around_them(tmp_path):
    content = "\ufeffcall mum\r\n\n   \n  hang up \nlast"
    (tmp_path / "a.txt").write_text(content, encoding="utf-8")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(content.encode()))
    for name in ("a.txt", "a.txt.gz"):
        assert list(lines_of(tmp_path / name)) == ["call mum", "hang up", "last"]


def test_a_line_that_is_not_utf_8_is_named(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"fine\n\nna\xefve\n")
    with pytest.raises(UserError, match=r"a\.txt, line 3: not UTF-8"):
        list(text_of(tmp_path / "a.txt").lines())


def test_files_that_are_missing_torn_or_empty_are_said(tmp_path):
    with pytest.raises(UserError, match=r"text\.train: .*b\.txt"):
        text_of(tmp_path / "b.txt")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"a\n" * 9999)[:-20])
    with pytest.raises(UserError, match=r"cannot read .*b\.txt\.gz"):
        list(text_of(tmp_path / "b.txt.gz").lines())
    empty = write(tmp_path / "empty.txt", ["", " "])
    with pytest.raises(UserError, match=r"text\.held_out: .*empty\.txt has no line"):
        text_of(empty, held_out=empty)


def test_a_fraction_of_the_distinct_lines_is_held_out_all_repetitions_with_it(tmp_path, generator):
    distinct = [f"Line number {i}" for i in range(4000)]
    lines = [distinct[i] for i in generator.integers(0, 4000, 8000)]
    lines += [line.lower().replace(" ", "  ") for line in lines[:500]]
    path = write(tmp_path / "a.txt", lines)
    kept = set(map(digest, text_of(path, held_out_fraction=0.1).lines()))
    held_out = {digest(line) for line in lines} - kept
    expected = 0.1 * len(set(lines[:8000]))
    assert abs(len(held_out) - expected) < 6 * np.sqrt(expected * 0.9)
    again = Counter(text_of(path, held_out_fraction=0.1).lines())
    assert again == Counter(line for line in lines if digest(line) not in held_out)


def test_lines_of_a_held_out_file_are_not_trained_on(tmp_path):
    train = write(tmp_path / "a.txt", ["call mum", "hang up", "Call  Mum", "play jazz"])
    held_out = write(tmp_path / "b.txt", ["call mum", "stop", "stop"])
    text = text_of(train, held_out=held_out)
    assert list(text.lines()) == ["hang up", "play jazz"]
    assert sorted(text.held_out) == ["call mum", "stop"]


@given(st.lists(st.integers(0, 50), max_size=300), st.integers(1, 20))
def test_a_sample_is_the_lowest_distinct_digests(values, size):
    sample = Sample(size)
    for value in values:
        sample.add(value, str(value))
    assert sample.lines() == tuple(str(value) for value in sorted(set(values))[:size])


def test_files_are_spread_evenly(tmp_path):
    counts = (600, 30, 0, 1)
    files = [write(tmp_path / f"{f}.txt", [f"{f} {i}" for i in range(n)])
             for f, n in enumerate(counts)]  # fmt: skip
    text = Text(tuple(map(type(tmp_path), files)))
    mixed = list(text.mixed_lines(counts))
    assert sorted(mixed) == sorted(text.lines())
    for f, n in enumerate(counts):
        places = [place for place, line in enumerate(mixed) if line.startswith(f"{f} ")]
        for i, place in enumerate(places):  # its share of any beginning is that of the whole
            assert abs(place - (i + 0.5) / n * len(mixed)) <= len(counts)


def test_what_is_written_is_read_again_and_has_the_same_bytes(tmp_path):
    lines = ["call  mum", "naïve\u2028line", "hang up"]
    assert write_lines(tmp_path / "a.txt.gz", lines) == 3
    write_lines(tmp_path / "b.txt.gz", lines)
    assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()
    assert list(lines_of(tmp_path / "a.txt.gz")) == ["call mum", "naïve line", "hang up"]


def peak_memory(path, lines):
    """Of a whole epoch of batches over a file, in bytes."""
    text = text_of(path)
    tracemalloc.start()
    batches = global_batches(
        text.mixed_lines([lines]), batch_size=50, buffer_size=1000, seed=0, epoch=0
    )
    count = sum(1 for _ in batches)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count > 0.9 * lines / 50
    return peak


def test_memory_does_not_grow_with_the_text(tmp_path):
    small, large = 3_000, 60_000
    paths = [write(tmp_path / f"{n}.txt", (f"sentence number {i} of many" for i in range(n)))
             for n in (small, large)]  # fmt: skip
    first, second = peak_memory(paths[0], small), peak_memory(paths[1], large)
    assert second < 1.2 * first  # twenty times as much text


def encode(line):
    return [ord(c) % 20 for c in line]


def look(text, **more):
    settings = {"num_pieces": 20, "max_pieces": 12, "max_held_out": 5, **more}
    return survey(text, encode, **settings)


@pytest.fixture
def files(tmp_path, generator):
    words = ["call", "my", "parents", "on", "the", "other", "phone", "and", "tell"]
    paths = []
    for name, count in (("a.txt", 230), ("b.txt", 41)):
        lines = [" ".join(generator.choice(words, generator.integers(1, 6))) for _ in range(count)]
        (tmp_path / name).write_text("\n".join(lines))
        paths.append(str(tmp_path / name))
    return paths


def test_lines_and_pieces_are_those_of_a_counter(files):
    text, counts = look(Text.open(TextConfig(tuple(files), held_out_fraction=0.3)))
    expected, cut = Counter(), 0
    for line in text.lines():
        expected.update(encode(line)[:10])
        cut += len(line) > 10
    assert counts.pieces.tolist() == [expected[piece] for piece in range(20)]
    assert 0 < cut == counts.cut
    assert counts.lines == tuple(len(list(text.training_lines(path))) for path in text.paths)
    assert counts.total_lines == len(list(text.lines())) < 271
    assert len(text.held_out) == 5 and not set(text.held_out) & set(text.lines())


def test_the_workers_shares_add_up(files):
    text = Text.open(TextConfig(tuple(files), held_out_fraction=0.3))
    _, whole = look(text)
    shares = [look(text, rank=rank, num_workers=3)[1] for rank in range(3)]
    assert len({(share.fingerprint, share.lines) for share in (*shares, whole)}) == 1
    merged = shares[1].merge([(share.pieces, share.cut) for share in shares])
    np.testing.assert_array_equal(merged.pieces, whole.pieces)
    assert merged.cut == whole.cut


def test_another_line_is_another_fingerprint(files, tmp_path):
    text = Text.open(TextConfig(tuple(files), held_out_fraction=0.3))
    before = look(text)[1].fingerprint
    with open(files[1], "a") as file:
        file.write("\none more that is long enough to be there")
    assert look(text)[1].fingerprint != before


def test_nothing_held_out_is_said(tmp_path):
    (tmp_path / "a.txt").write_text("call mum\n")
    with pytest.raises(UserError, match="text.held_out_fraction"):
        look(Text.open(TextConfig((str(tmp_path / "a.txt"),), held_out_fraction=1e-9)))
