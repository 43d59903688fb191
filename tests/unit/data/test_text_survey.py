"""What a pass over a text counts, against a counter."""

from collections import Counter

import numpy as np
import pytest

from edp_mx.data.text import Text, TextConfig
from edp_mx.data.text_survey import survey
from edp_mx.errors import UserError


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
