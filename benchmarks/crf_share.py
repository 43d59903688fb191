"""What part of a CLC training step the CRF takes: loss and gradient, at the paper's size.

Run: .venv/bin/python benchmarks/crf_share.py [--repeats 11]

Prints the medians of interleaved runs in one process and their ratio; only the ratio means much on
a shared machine.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Callable, Dict, List

import mxnet as mx
import numpy as np
from mxnet import autograd

from edp_mx.data.batching import Batch, WordInputs
from edp_mx.models.clc import CLCConfig, CLCEncoder
from edp_mx.models.intent_slot import IntentSlotModel, build_model

EXAMPLES, TOKENS, CHARACTERS = 64, 24, 12
WORDS, LETTERS, SLOTS, INTENTS = 5_000, 80, 127, 20


def random_batch(generator: np.random.Generator) -> Batch:
    """Utterances of 6 to 24 random tokens."""
    lengths = generator.integers(6, TOKENS + 1, EXAMPLES).astype(np.int32)
    lengths[0] = TOKENS
    mask = np.arange(TOKENS) < lengths[:, None]  # (N, T)
    shape = (EXAMPLES, TOKENS)
    return Batch(
        inputs=WordInputs(
            words=(generator.integers(2, WORDS, shape) * mask).astype(np.int32),
            characters=(
                generator.integers(2, LETTERS, (*shape, CHARACTERS)) * mask[..., None]
            ).astype(np.int32),
        ),
        lengths=lengths,
        slots=(generator.integers(0, SLOTS, shape) * mask).astype(np.int32),
        intents=generator.integers(0, INTENTS, EXAMPLES).astype(np.int32),
        indices=np.arange(EXAMPLES),
    )


def parts(model: IntentSlotModel, batch: Batch) -> Dict[str, Callable[[], None]]:
    """The whole step without the update, and the CRF's share of it alone."""
    emissions = mx.nd.random.normal(shape=(EXAMPLES, TOKENS, SLOTS))  # (N, T, K)
    emissions.attach_grad()

    def step() -> None:
        with autograd.record():
            loss = model.loss(batch).sum()
        loss.backward()

    def crf() -> None:
        with autograd.record():
            loss = model.slot.crf(emissions, batch.slots, batch.lengths).sum()
        loss.backward()

    return {"step": step, "crf": crf}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=11)
    repeats = parser.parse_args().repeats
    encoder = CLCEncoder(
        CLCConfig(), num_words=WORDS, num_characters=LETTERS, word_dimension=300, prefix="clc_"
    )
    model = build_model(encoder, num_slots=SLOTS, num_intents=INTENTS, seed=0, context=mx.cpu())
    timed = parts(model, random_batch(np.random.default_rng(0)))
    seconds: Dict[str, List[float]] = {name: [] for name in timed}
    for repeat in range(repeats + 2):
        for name, run in timed.items():
            started = time.perf_counter()
            run()
            mx.nd.waitall()
            if repeat >= 2:  # the first two warm up
                seconds[name].append(time.perf_counter() - started)
    ratios = sorted(crf / step for crf, step in zip(seconds["crf"], seconds["step"]))
    for name, values in seconds.items():
        print(f"{name}: median {1e3 * statistics.median(values):.1f} ms")
    print(
        f"CRF ÷ step: median {statistics.median(ratios):.1%} "
        f"(from {ratios[0]:.1%} to {ratios[-1]:.1%}, {repeats} pairs)"
    )


if __name__ == "__main__":
    main()
