"""Utterances for tests, without slots and drawn ones, and corpora of them: split, and in files."""

import numpy as np
from hypothesis import strategies as st

from edp_mx.data.arrow_file import open_store, write_store
from edp_mx.data.splits import PARTS, split_by_keys
from edp_mx.data.strata import keys_of
from edp_mx.data.utterance import Utterance


def say(text, intent="x", id="", user=""):
    """An utterance without slots."""
    tokens = tuple(text.split())
    return Utterance(tokens, ("O",) * len(tokens), intent, id, user)


def utterance_of(pairs, intent="i", id="", user=""):
    """An utterance from its (token, tag) pairs."""
    return Utterance(*map(tuple, zip(*pairs)), intent, id, user)


def split_in_order(sizes, keys, intents):
    """The arrangement of a corpus that is kept as it was read."""
    return np.arange(len(keys)), split_by_keys(keys, intents, seed=7)


def stored(utterances, folder, arrange=split_in_order):
    """The same utterances in files, all in one part."""
    write_store(folder / "corpus.arrow", (("", u) for u in utterances), arrange)
    return open_store(folder / "corpus.arrow")


def drawn_pairs(words, max_size=7):
    """Draws the (token, tag) pairs of an utterance, whose tags need not continue each other."""
    tag = st.sampled_from(["O", "B-x", "I-x"])
    return st.lists(st.tuples(words, tag), min_size=1, max_size=max_size)


def drawn_corpora(words, max_size):
    """Draws corpora of utterances with one of three intents."""
    utterance = st.builds(utterance_of, drawn_pairs(words), st.sampled_from("uvw"))
    return st.lists(utterance, min_size=1, max_size=max_size)


def split_corpus(utterances, **settings):
    return split_by_keys(*keys_of(utterances), **settings)


def ids_of(split, utterances):
    return {part: [utterances[i].id for i in getattr(split, part)] for part in PARTS}
