"""From texts to the inputs of model.onnx: ids of words and of their characters."""

import re

import numpy as np

UNKNOWN = 1  # 0 is padding


class Encoder:
    def __init__(self, folder, about):  # noqa: ARG002 (it has no pieces to read there)
        self.about = about
        self.cut = re.compile(about["token_pattern"]).findall  # makes tokens of a text
        self.words = {word: i for i, word in enumerate(about["words"])}
        self.characters = {character: i for i, character in enumerate(about["characters"])}

    def size(self, row):
        """Return how much the model reads of a list of tokens."""
        return min(len(row), self.about["max_tokens"])

    def __call__(self, rows):
        """Return the inputs for lists of tokens, and how many of each the model reads.

        Shapes: words (N, T), characters (N, T, C), lengths (N,), padded with 0.
        """
        about = self.about
        lengths = np.array([self.size(row) for row in rows])  # (N,)
        words = np.zeros((len(rows), lengths.max()), np.int64)  # (N, T)
        longest = max(len(token) for row in rows for token in row)
        most = min(longest, about["max_characters"])
        characters = np.zeros((*words.shape, most), np.int64)  # (N, T, C)
        for n, row in enumerate(rows):
            for t, token in enumerate(row[: lengths[n]]):
                word = token.lower() if about["lowercase"] else token
                words[n, t] = self.words.get(word, UNKNOWN)
                ids = [self.characters.get(c, UNKNOWN) for c in token[:most]]
                characters[n, t, : len(ids)] = ids
        inputs = {"words": words, "characters": characters, "lengths": lengths}
        return inputs, lengths
