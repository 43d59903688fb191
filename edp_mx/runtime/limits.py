"""The largest numbers that settings, options and files may hold: a slip is refused at once."""

from __future__ import annotations

MOST_EPOCHS = 100_000
MOST_LAYERS = 1_000
MOST_WIDE = 2**16  # a layer, the rank or the number of anything that a layer has
MOST_AT_ONCE = 2**20  # utterances in a batch, tokens of an utterance
MOST_COUNTED = 10**9  # utterances, words, steps of an epoch
MOST_OF_A_VECTOR = 1e6  # a value of a word vector; those of trained ones lie around 1
MOST_SEED = 2**32 - 1
MOST_SECONDS = 1e9
# Poisson-sampled steps whose loss is composed; beyond them an account takes minutes.
MOST_POISSON_STEPS = 3_000_000
# What a double or float32 can still calculate with.
LEAST_DELTA, LEAST_RATE, MOST_DECAY = 1e-300, 1e-15, 1e200
LEAST_NORM, MOST_NORM = 1e-30, 1e30
