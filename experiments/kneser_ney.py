"""Score a 5-gram model beside a trained language model: the same pieces of the same held-out texts.

The 5-gram has interpolated modified Kneser-Ney smoothing and learns from the training part of each
run, without privacy. It guesses the pieces that the run guesses, and no word is unknown to it.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Iterator, List, Sequence, Tuple

import numpy as np

from experiments.command import main

if TYPE_CHECKING:
    from edp_mx.data.encoding import EncodedCorpus
    from edp_mx.data.tokenizer import Tokenizer

EXAMPLES = """\
examples:
  python -m experiments.kneser_ney runs/public_gpt2
"""
ORDER = 5
HEADER = ("run", "model", "perplexity per piece", "per word", "pieces", "words")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="finished runs of task: causal_lm"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print two rows for each run: the 5-gram, and the run's own model."""
    from edp_mx.reports.table import render_table

    rows: List[Tuple[str, ...]] = []
    for path in arguments.runs:
        rows += compared(path)
    print(render_table(HEADER, rows))
    return 0


def compared(path: Path) -> Iterator[Tuple[str, ...]]:
    """Yield the rows of a run; a word ends at a blank, and the end of a text counts as one."""
    from edp_mx.errors import UserError
    from edp_mx.runs.build import encode_part
    from edp_mx.runs.trained_run import load_run
    from edp_mx.runtime.json_text import read_json

    trained = load_run(path)
    tokenizer = trained.vocabulary.tokenizer
    if trained.config.task != "causal_lm" or tokenizer is None:
        raise UserError(f"{path} is of task: {trained.config.task}, not of causal_lm")
    parts = (
        encode_part(trained.config, trained.part(part), trained.vocabulary, part)
        for part in ("train", "test")
    )
    (read, *_), (held_out, begins, words) = (_sequences(part, tokenizer) for part in parts)
    model = KneserNey(read, order=ORDER, num_pieces=len(tokenizer) + 1)  # and what opens a text
    guessed = [sequence[begin:] for sequence, begin in zip(held_out, begins)]
    losses = [model.losses(sequence)[-len(rest) :] for sequence, rest in zip(held_out, guessed)]
    pieces = sum(map(len, guessed))
    own = read_json(path / "results.json")["test"]
    assert own["pieces"] == pieces
    for name, loss in (
        (f"{ORDER}-gram", float(sum(map(np.sum, losses)))),
        (trained.config.model.family, math.log(own["perplexity"]) * pieces),
    ):
        found = (f"{math.exp(loss / number):.1f}" for number in (pieces, words))
        yield (path.name, name, *found, f"{pieces:,}", f"{words:,}")


class KneserNey:
    """Interpolated n-grams over piece ids, with the three discounts of Chen and Goodman.

    An n-gram that does not open a text counts once for each piece that it was seen behind. Pieces
    that were never seen share what the others' discounts leave, all alike.

    Args:
        sequences: of ids below `num_pieces`; the first of each is given and never guessed.

    Source: Chen and Goodman 1999, section 3; Heafield et al. 2013, section 3.
    """

    def __init__(self, sequences: Sequence[np.ndarray], *, order: int, num_pieces: int) -> None:
        self._num_pieces = num_pieces
        pieces = np.concatenate(sequences).astype(np.int64)  # (S,)
        places = np.concatenate([np.arange(len(each)) for each in sequences])  # (S,)
        ids = np.zeros(len(pieces) + 1, np.int64)  # of the n-gram that ends here; of none at first
        keys, behind, occurred = [], [], []
        for n in range(1, order + 1):
            (ends,) = np.nonzero(places >= n - 1)
            key = ids[ends - 1] * num_pieces + pieces[ends]
            found, first, own = np.unique(key, return_index=True, return_inverse=True)
            behind.append(ids[ends[first]])  # the (n − 1)-gram that it ends with
            # a text's first piece is not guessed; an n-gram that opens texts has none behind it
            occurred.append((np.bincount(own, places[ends] > 0), places[ends[first]] == n - 1))
            keys.append(found)
            ids[ends] = own
        self._tables = []
        for n, (found, (counts, is_open)) in enumerate(zip(keys, occurred)):
            if n + 1 < order:
                seen = np.bincount(behind[n + 1], minlength=len(found))
                counts = np.where(is_open, counts, seen)
            counts = counts.astype(np.int64)
            taken = _discounts(counts)[np.minimum(counts, 3)]
            contexts = found // num_pieces
            total = np.bincount(contexts, counts)
            left = np.bincount(contexts, taken) / np.maximum(total, 1)
            shares = (counts - taken) / np.maximum(total, 1)[contexts]
            self._tables.append((found, shares, left, total > 0))

    def losses(self, sequence: np.ndarray) -> np.ndarray:
        """Return −ln p of each piece but the first, by those before it, (n − 1,)."""
        pieces = np.asarray(sequence, np.int64)
        shares = np.full(len(pieces), 1 / self._num_pieces)
        contexts = np.zeros(len(pieces), np.int64)  # before each piece; −1 for one never seen
        for found, own, left, is_context in self._tables:
            known = (contexts >= 0) & (contexts < len(left))
            known[known] = is_context[contexts[known]]
            key = contexts * self._num_pieces + pieces
            at = np.minimum(np.searchsorted(found, key), len(found) - 1)
            is_seen = (contexts >= 0) & (found[at] == key)
            share = np.where(is_seen, own[at], 0)
            shares[known] = share[known] + left[contexts[known]] * shares[known]
            contexts = np.concatenate([[-1], np.where(is_seen, at, -1)[:-1]])
        return -np.log(shares[1:])


def _discounts(counts: np.ndarray) -> np.ndarray:
    """Return what is taken from counts of 0, 1, 2, and 3 or more, (4,), of one order."""
    n = np.bincount(counts, minlength=5)[:5].astype(float)  # so many have a count
    if n[1:].all():
        y = n[1] / (n[1] + 2 * n[2])
        found = np.array([0, *(i - (i + 1) * y * n[i + 1] / n[i] for i in (1, 2, 3))])
        if (found >= 0).all():
            return found
    return np.array([0, 0.5, 1, 1.5])  # KenLM's where few texts give none


def _sequences(
    part: EncodedCorpus, tokenizer: Tokenizer
) -> Tuple[List[np.ndarray], List[int], int]:
    """Return the pieces of each text of a part, the place of its first guessed one, and the words.

    What opens a text has an id of its own, so that it is never taken for the end of one.
    """
    from edp_mx.tasks.causal_lm.scores import predicted, predicted_words

    found, begins, words = [], [], 0
    for row in range(len(part)):
        batch = part.batch([row])
        places, targets = predicted(
            batch.pieces, end=tokenizer.special_ids.sep, is_cut=batch.is_cut
        )
        last = int(places[0, 0]) + int((targets[0] >= 0).sum())  # the place of the last guessed one
        found.append(np.array([len(tokenizer), *batch.pieces.pieces[0, 1 : last + 1]]))
        begins.append(int(places[0, 0]) + 1)
        words += predicted_words(batch, places)
    return found, begins, words


if __name__ == "__main__":
    sys.exit(main("kneser_ney", sys.argv[1:]))
