"""Drawing pieces: which may be drawn, how often, and what is refused."""

from collections import Counter

import mxnet as mx
import numpy as np
import pytest
from scipy.stats import chisquare
from support.refusals import one_sentence

from edp_mx.tasks.causal_lm.decoding import Decoding, continuations
from edp_mx.tasks.causal_lm.task import Continued

SHARES = np.array([0.04, 0.4, 0.06, 0.3, 0.2])  # of the pieces 0 … 4
END, ROWS = 4, 4000


def step(pieces, past):
    """The same scores behind every piece."""
    return mx.nd.array(np.tile(np.log(SHARES), (len(pieces), 1))), [mx.nd.zeros((len(pieces), 1))]


def drawn(**decoding):
    """How often each piece begins a text; an empty one begins with `END`."""
    texts = continuations(
        step, np.zeros((ROWS, 2)), Decoding(seed=5, max_pieces=1, **decoding), end=END, room=9
    )
    return np.bincount([text[0] if text else END for text in texts], minlength=5)


@pytest.mark.parametrize(
    ("decoding", "shares"),
    [
        ({"temperature": 1}, SHARES),
        ({"temperature": 0.5}, SHARES**2),
        ({"temperature": 1, "top_k": 2}, SHARES * [0, 1, 0, 1, 0]),
        ({"temperature": 1, "top_p": 0.69}, SHARES * [0, 1, 0, 1, 0]),
        ({"temperature": 1, "top_p": 0.71}, SHARES * [0, 1, 0, 1, 1]),
        ({"temperature": 1, "top_k": 3, "top_p": 0.75}, SHARES * [0, 1, 0, 1, 0]),
        ({"temperature": 1e-40}, SHARES * [0, 1, 0, 0, 0]),
        ({"temperature": 2, "top_p": 0.01}, SHARES * [0, 1, 0, 0, 0]),
    ],
)
def test_pieces_are_drawn_as_often_as_they_should_be(decoding, shares):
    counts, is_drawn = drawn(**decoding), shares > 0
    assert not counts[~is_drawn].any() and counts.sum() == ROWS
    if is_drawn.sum() > 1:
        wanted = ROWS * shares[is_drawn] / shares.sum()
        assert chisquare(counts[is_drawn], wanted).pvalue > 1e-4


def test_a_text_ends_where_it_is_drawn_to_or_has_no_room():
    decoding = Decoding(temperature=1, seed=3, max_pieces=6)
    texts = continuations(step, np.zeros((ROWS, 1)), decoding, end=END, room=50)
    lengths = np.array([len(text) for text in texts])
    assert not any(END in text for text in texts) and lengths.max() == 6
    assert np.mean(lengths == 0) == pytest.approx(0.2, abs=0.03)
    assert np.mean(lengths == 6) == pytest.approx(0.8**6, abs=0.03)
    for room, longest in ((2, 2), (0, 0)):
        texts = continuations(step, np.zeros((9, 1)), Decoding(), end=END, room=room)
        assert texts == [[1] * longest] * 9


def test_draws_differ_unless_they_have_a_seed():
    made = [continuations(step, np.zeros((20, 1)), Decoding(temperature=1, seed=seed), end=END,
                          room=9) for seed in (7, 7, None, None)]  # fmt: skip
    assert made[0] == made[1] and len({str(each) for each in made}) == 3


def test_a_text_has_the_same_draws_whichever_others_stand_beside_it():
    decoding, asked = Decoding(temperature=1, seed=7, max_pieces=8), Counter()
    prompts = np.array([[0, 1], [2, 0], [0, 1]], np.int32)
    together = continuations(step, prompts, decoding, end=END, room=9)
    alone = [continuations(step, prompts[[row]], decoding, end=END, room=9, asked=asked)[0]
             for row in (1, 0, 2)]  # fmt: skip
    assert [alone[1], alone[0], alone[2]] == together
    assert len({str(text) for text in together}) == 3  # of the same prompt, too


@pytest.mark.parametrize(
    ("decoding", "told"),
    [
        ({"top_p": 0.9}, "top_p must be left out unless temperature is above 0"),
        ({"temperature": 1, "beams": 2}, "beams must be 1 where temperature is above 0"),
    ],
)
def test_settings_that_nothing_would_read_are_refused(decoding, told):
    one_sentence(told, Decoding, **decoding)


def test_a_reply_is_shown_alone_and_a_text_with_what_was_given():
    assert Continued(("call",), "ing mum").describe() == "calling mum"
    assert Continued(("call", "<|reply|>"), "who ?").line() == "who ?"
