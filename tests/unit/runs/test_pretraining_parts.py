"""The parts of a pre-training run: settings, state, shares of the text, and scores."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from edp_mx.config import load_config
from edp_mx.data.wordpiece import SPECIAL_PIECES, WordPiece
from edp_mx.errors import UserError
from edp_mx.runs.pretraining.config import PretrainingConfig
from edp_mx.runs.pretraining.scores import MaskedScores, score
from edp_mx.runs.pretraining.text import read_text
from edp_mx.runtime.distributed import Workers

WORDS = [f"word{i}" for i in range(20)]
WORDPIECE = WordPiece((*SPECIAL_PIECES, *WORDS))


class Alone(Workers):
    """One of several workers that never hears of the others."""

    def gather(self, value):
        return [value]


@pytest.fixture
def config(tmp_path, generator):
    lines = [" ".join(generator.choice(WORDS, generator.integers(1, 9))) for _ in range(300)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    (tmp_path / "pretraining.yaml").write_text(
        f"text: {{train: [{tmp_path / 'a.txt'}], held_out_fraction: 0.2, buffer_size: 100}}\n"
        "pretraining: {batch_size: 12, max_pieces: 8, evaluation_batch_size: 7}\n"
    )
    return load_config(tmp_path / "pretraining.yaml", kind=PretrainingConfig)


def text_for(config, rank=0, size=1):
    return read_text(config, WORDPIECE, Alone(rank, size, rank, size))


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name))
               for name in ("pieces", "lengths", "places", "targets", "counts"))  # fmt: skip


def original(batch):
    """The rows before they were masked."""
    pieces = batch.pieces.copy()
    pieces[tuple(batch.places)] = batch.targets
    return sorted(tuple(row[:length]) for row, length in zip(pieces, batch.lengths))


def test_the_workers_share_each_global_batch(config):
    one = list(text_for(config).training(epoch=2))
    shares = [list(text_for(config, rank, 3).training(epoch=2)) for rank in range(3)]
    assert {len(share) for share in shares} == {len(one)} == {text_for(config).steps_per_epoch}
    for whole, *parts in zip(one, *shares):
        assert {len(part.lengths) for part in parts} == {4}
        assert sorted(row for part in parts for row in original(part)) == original(whole)


def test_an_epoch_that_is_resumed_goes_on_with_the_same_batches(config):
    text = text_for(config)
    whole = list(text.training(epoch=1))
    for first in (0, 3, len(whole)):
        rest = list(text.training(1, first))
        assert len(rest) == len(whole) - first
        assert all(map(same, rest, whole[first:]))


def test_masks_are_drawn_anew_each_epoch(config):
    config = replace(config, text=replace(config.text, buffer_size=1))
    text = text_for(replace(config, pretraining=replace(config.pretraining, batch_size=1)))
    rows = [{}, {}]  # the places that were masked in each line
    for epoch, seen in enumerate(rows):
        for batch in text.training(epoch):
            seen.setdefault(original(batch)[0], batch.places[1].tolist())
    common = [line for line in rows[0] if line in rows[1] and len(line) > 6]
    assert len(common) > 20
    assert sum(rows[0][line] != rows[1][line] for line in common) > len(common) / 2


def test_the_held_out_masks_are_always_the_same(config):
    one = text_for(config).held_out()
    shares = [text_for(config, rank, 2).held_out() for rank in range(2)]
    assert all(map(same, one[0::2], shares[0])) and all(map(same, one[1::2], shares[1]))
    assert len(one) == len(shares[0]) + len(shares[1]) > 2
    assert sum(len(batch.lengths) for batch in one) == len(text_for(config).text.held_out)


def test_the_unigram_loss_is_that_of_counted_shares(config):
    text = text_for(config)
    counts = dict.fromkeys(WORDS, 1)
    for line in text.text.lines():
        for word in line.split()[:6]:
            counts[word] += 1
    batches = text.held_out()
    expected = -sum(math.log(counts[WORDPIECE.pieces[piece]] / sum(counts.values()))
                    for batch in batches for piece in batch.targets)  # fmt: skip
    assert text.unigram_loss(batches) == pytest.approx(expected, rel=1e-9)


class Guesser:
    """A model that gives every piece the same share, and is right where that piece is 5."""

    def guess(self, batch):
        return (len(batch.targets) * math.log(25), (batch.targets == 5).sum(), len(batch.targets))


@pytest.mark.parametrize("perplexity, is_little", [(100, True), (90, True), (70, False)])
def test_the_line_says_that_nothing_was_learned(perplexity, is_little):
    """A rate that is too high ends at the unigrams' perplexity, and otherwise looks like a run."""
    line = MaskedScores(perplexity, unigram_perplexity=100, masked_accuracy=5).describe()
    assert ("learned little" in line) == is_little and f"{perplexity}.00 (unigram 100.0)" in line


def test_perplexities_are_of_all_places_together(config):
    text = text_for(config)
    batches = text.held_out()
    scores = score(Guesser(), batches, text.unigram_loss(batches), Alone(0, 1, 0, 1))
    targets = np.concatenate([batch.targets for batch in batches])
    assert scores.perplexity == pytest.approx(25)
    assert scores.unigram_perplexity == pytest.approx(
        math.exp(text.unigram_loss(batches) / len(targets)))  # fmt: skip
    assert scores.masked_accuracy == pytest.approx(100 * np.mean(targets == 5))
    with pytest.raises(UserError, match="text.held_out"):
        score(Guesser(), [], 0.0, Alone(0, 1, 0, 1))


def test_a_text_that_is_smaller_than_a_batch_is_refused(config):
    settings = replace(config.pretraining, batch_size=1000)
    with pytest.raises(UserError, match=r"pretraining\.batch_size: 1000 is more than the \d+ line"):
        text_for(replace(config, pretraining=settings))
    with pytest.raises(UserError, match=r"^pretraining\.batch_size: 12 is not a multiple of 5"):
        text_for(config, 0, 5)


@pytest.mark.parametrize("override, message", [
    ("pretraining.epochs=0", "pretraining.epochs must be at least 1"),
    ("pretraining.checkpoint_every=70", "must be a multiple of log_every (50)"),
    ("pretraining.max_pieces=600", "pretraining.max_pieces must be at most model.max_positions"),
    ("text.train=a.txt", "text.train"),
    ("text.trian=[a.txt]", "did you mean train"),
    ("model.family=clc", "model.family must be bert, not 'clc'"),
    ("vocabulary.path=vocab.txt model.checkpoint=folder", "vocabulary.path must be left out"),
])  # fmt: skip
def test_unsound_settings_are_refused(config, tmp_path, override, message):
    with pytest.raises(UserError, match=re.escape(message)):
        load_config(tmp_path / "pretraining.yaml", override.split(), kind=PretrainingConfig)


def test_an_error_of_the_first_worker_is_everyone_s():
    def refuse():
        raise UserError("no such file")

    assert Alone(0, 1, 0, 1).on_first(lambda: 5) == 5
    with pytest.raises(UserError, match="no such file"):
        Alone(0, 1, 0, 1).on_first(refuse)
