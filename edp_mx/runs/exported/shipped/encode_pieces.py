"""From texts to the inputs of model.onnx: ids of word pieces, and where each token begins."""

import re
from functools import lru_cache

import numpy as np
from tokenizers import Tokenizer


class Encoder:
    def __init__(self, folder, about):
        self.about = about
        self.tokenizer = Tokenizer.from_file(str(folder / "pieces.json"))
        self.spelled = lru_cache(1 << 16)(self.pieces_of)
        self.cut = re.compile(about["token_pattern"]).findall  # makes tokens of a text

    def pieces_of(self, token):
        """Return the pieces of one token, at least one."""
        about = self.about
        if token in about["special"]:
            return [about["special"][token]]
        token = token.encode("utf-8", "ignore").decode()  # halves of surrogate pairs have no piece
        found = self.tokenizer.encode(about["before_token"] + token, add_special_tokens=False)
        return found.ids[: about["room"]] or [about["unknown"]]

    def size(self, row):
        """Return how much the model reads of a list of tokens."""
        return sum(len(self.spelled(token)) for token in row[: self.about["max_tokens"]])

    def __call__(self, rows):
        """Return the inputs for lists of tokens, and how many of each the model reads.

        Shapes: pieces (N, P), piece_lengths (N,), firsts (N, T), padded with 0.
        """
        about = self.about
        pieces, firsts = [], []
        for row in rows:
            ids, places = list(about["before"]), []
            for own in map(self.spelled, row[: about["max_tokens"]]):
                if len(ids) + len(own) > len(about["before"]) + about["room"]:
                    break
                places.append(len(ids))
                ids += own
            pieces.append(ids + about["after"])
            firsts.append(places)
        lengths = np.array([len(ids) for ids in pieces])  # (N,)
        inputs = {"pieces": padded(pieces), "piece_lengths": lengths, "firsts": padded(firsts)}
        return inputs, [len(places) for places in firsts]


def padded(rows):
    """Return rows of numbers as one array, (N, the longest)."""
    array = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for row, numbers in zip(array, rows):
        row[: len(numbers)] = numbers
    return array
