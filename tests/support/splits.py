"""Splits of utterances, and their ids as a run directory has them."""

from edp_mx.data.splits import PARTS, split_by_keys
from edp_mx.data.strata import keys_of


def split_corpus(utterances, **settings):
    return split_by_keys(*keys_of(utterances), **settings)


def ids_of(split, utterances):
    return {part: [utterances[i].id for i in getattr(split, part)] for part in PARTS}
