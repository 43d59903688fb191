"""Kneser-Ney smoothing against its definition: what it learns, and that shares add up to one."""

from collections import Counter

import numpy as np
import pytest

from experiments.kneser_ney import KneserNey


def texts(generator, count=60, pieces=6):
    """Piece 0 opens each text and stands nowhere else; a piece leads to one of its neighbours."""
    made = []
    for _ in range(count):
        steps = np.cumsum(generator.integers(-1, 2, generator.integers(2, 9)))
        made.append(np.array([0, *(1 + steps % (pieces - 1))]))
    return made


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_each_distribution_adds_up_to_one(order, generator):
    read, pieces = texts(generator), 8  # of which two are never seen
    model = KneserNey(read, order=order, num_pieces=pieces)
    for context in ([0], [0, 3], [0, 1, 2, 3], [0, 2, 7, 2], [0, 5, 1, 5, 1, 5]):
        shares = [np.exp(-model.losses(np.array([*context, piece]))[-1]) for piece in range(pieces)]
        assert sum(shares) == pytest.approx(1) and min(shares) > 0


def by_hand(read, context, piece, *, order, pieces):
    """The share of a piece behind a context, as the definition says."""
    grams = Counter(
        tuple(text[end - n : end])
        for text in read
        for n in range(1, order + 2)
        for end in range(max(n, 2), len(text) + 1)
    )

    def count(gram):
        if len(gram) == order or gram[0] == 0:
            return grams[gram]
        return sum((before, *gram) in grams for before in range(pieces))

    def taken(gram):
        n = Counter(count(other) for other in grams if len(other) == len(gram))
        k, found = min(count(gram), 3), [-1]
        if all(n[i] for i in (1, 2, 3, 4)):
            y = n[1] / (n[1] + 2 * n[2])
            found = [i - (i + 1) * y * n[i + 1] / n[i] for i in (1, 2, 3)]
        return [0, *found][k] if min(found) >= 0 else k / 2  # KenLM's 0.5, 1 and 1.5

    def share(gram):
        if not gram:
            return 1 / pieces
        beside = [(*gram[:-1], other) for other in range(pieces)]
        total = sum(map(count, beside))
        if not total:
            return share(gram[1:])
        return (count(gram) - taken(gram) + sum(map(taken, beside)) * share(gram[1:])) / total

    return share((*context, piece)[-order:])


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_a_share_is_what_the_definition_says(order, generator):
    read = texts(generator)
    model = KneserNey(read, order=order, num_pieces=7)
    given = [text.tolist() for text in read]
    for text in texts(generator, count=4):
        wanted = [
            by_hand(given, tuple(text[:end]), text[end], order=order, pieces=7)
            for end in range(1, len(text))
        ]
        np.testing.assert_allclose(np.exp(-model.losses(text)), wanted)


def test_what_was_read_often_is_expected(generator):
    read = texts(generator, count=400)
    held_out = texts(generator, count=40)
    means = [
        np.mean(
            np.concatenate([KneserNey(read, order=n, num_pieces=6).losses(t) for t in held_out])
        )
        for n in (1, 2)
    ]
    # a step is one of three, all alike
    assert means[0] > 1.45 and means[1] == pytest.approx(np.log(3), abs=0.05)
