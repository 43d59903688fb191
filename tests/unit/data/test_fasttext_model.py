"""fastText's models as fastText itself reads them, and damaged ones, which end its process."""

import os
import random
import struct
import subprocess
import sys
import time

import numpy as np
import pytest
from support.refusals import one_sentence

from edp_mx.data.embeddings import EmbeddingsConfig, load_embeddings
from edp_mx.data.fasttext_model import FastTextModel
from edp_mx.errors import UserError

WORDS = ["call", "mum", "wëather", "天気予報", "a", "naïve", "mothership", "🎵song", "in"]
UNSEEN = ["b", "weathër", "calls", "天気", "é", "</s>", "🎵", "x" * 60]
TRAIN = """
import sys, fasttext
kind, text, out, minn, maxn, bucket = sys.argv[1:]
train = fasttext.train_unsupervised if kind != "supervised" else fasttext.train_supervised
model = {"model": kind} if kind != "supervised" else {}
train(text, dim=6, minCount=1, epoch=2, thread=1, minn=int(minn), maxn=int(maxn),
      bucket=int(bucket), verbose=0, t=1.0, **model).save_model(out)
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(kind, minn, maxn, bucket) → a small model that fastText has written."""
    folder, made = tmp_path_factory.mktemp("fasttext"), {}

    def train(*how):
        if how not in made:
            draw, label = random.Random(1), how[0] == "supervised"
            lines = [" ".join(draw.choices(WORDS, k=5)) for _ in range(60)]
            lines = [f"__label__{i % 3} {line}" if label else line for i, line in enumerate(lines)]
            (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
            out = folder / f"{len(made)}.bin"
            command = [sys.executable, "-c", TRAIN, how[0], folder / "text.txt", out, *how[1:]]
            memory = {**os.environ, "MALLOC_PERTURB_": "255"}  # fastText reads what it has not set
            subprocess.run([*map(str, command)], check=True, env=memory)
            made[how] = out
        return made[how]

    return train


HOW = [("skipgram", 3, 6, 500), ("cbow", 1, 2, 7), ("skipgram", 0, 0, 50), ("supervised", 2, 4, 99)]


@pytest.mark.parametrize("how", HOW, ids=str)
def test_words_and_vectors_are_those_of_the_library(how, trained):
    import fasttext

    path = trained(*how)
    theirs, ours = fasttext.load_model(str(path)), FastTextModel(path)
    assert ours.words() == [word for word in theirs.get_words() if word != "</s>"]
    assert set(ours.words()) == set(WORDS) and ours.dimension == 6
    for word in [*WORDS, *UNSEEN]:
        np.testing.assert_array_equal(ours.vector(word), theirs.get_word_vector(word), word)


def outcome(path):
    """The vectors of a model, or the sentence by which it is refused."""
    try:
        model = FastTextModel(path)
        return np.stack([model.vector(word) for word in WORDS])
    except UserError as error:
        assert "\n" not in str(error) and str(path) in str(error)
        return str(error)


def test_a_model_that_is_cut_off_anywhere_is_refused(trained, tmp_path):
    content = trained(*HOW[0]).read_bytes()
    path = tmp_path / "a.bin"
    ends = {*range(300), *range(len(content) - 300, len(content)), *range(0, len(content), 997)}
    for end in sorted(ends):
        path.write_bytes(content[:end])
        assert isinstance(outcome(path), str), end
    path.write_bytes(content + b"\0")
    assert "1 bytes are left over" in outcome(path)


def test_no_damage_ends_the_process_or_takes_long(trained, tmp_path):
    content, draw = trained(*HOW[0]).read_bytes(), random.Random(7)
    path, began, refused = tmp_path / "a.bin", time.process_time(), 0
    for _ in range(600):
        damaged = bytearray(content)
        for _ in range(draw.choice((1, 1, 4))):
            damaged[draw.randrange(draw.choice((64, 300, len(content))))] = draw.randrange(256)
        path.write_bytes(damaged)
        found = outcome(path)
        refused += isinstance(found, str)
        assert isinstance(found, str) or np.isfinite(found).all()
    assert refused > 100 and time.process_time() - began < 30


@pytest.mark.parametrize(
    "place, form, value, told",
    [
        (8, "<i", 0, "settings"),
        (8, "<i", 2**31 - 1, "settings"),
        (8 + 8 * 4, "<i", 0, "settings"),  # no buckets: fastText divides by them
        (8 + 10 * 4, "<i", 2**31 - 1, "settings"),
        (64, "<i", 2**30, "do not add up"),
        (68, "<i", -1, "do not add up"),
        (84, "<q", 1, "pruned"),
    ],
)
def test_numbers_that_no_model_has_are_refused(place, form, value, told, trained, tmp_path):
    content = bytearray(trained(*HOW[0]).read_bytes())
    struct.pack_into(form, content, place, value)
    (tmp_path / "a.bin").write_bytes(content)
    assert told in outcome(tmp_path / "a.bin")


def test_vectors_of_zeros_or_of_nothing_finite_are_refused(trained, tmp_path):
    path, content = tmp_path / "a.bin", bytearray(trained(*HOW[2]).read_bytes())
    config = EmbeddingsConfig(str(path), dimension=6)
    rows = 4 * 6 * (len(WORDS) + 1)  # bytes of the vectors; those of the outputs are as many
    at = len(content) - 2 * rows - 17
    many = "the vector of 'call' is not finite, or has values above 1e"
    for value, told in ((0.0, "all vectors are zero"), (np.nan, many), (-1.5e33, many)):
        content[at : at + rows] = np.full(rows // 4, value, "<f4").tobytes()
        path.write_bytes(content)
        one_sentence(told, load_embeddings, config, WORDS)
