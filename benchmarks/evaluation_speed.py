"""How much faster than training a model is used: evaluation, the attack's scores, `predict`.

Run: .venv/bin/python benchmarks/evaluation_speed.py [--model bert] [--rounds 4] [--json FILE]

In turn: SGD steps on random micro-batches of ATIS' training part, and utterances of its test part
given to `evaluate`, the attack and `edp-mx predict RUN -`. The models are untrained.
"""

import argparse
import io
import os
from pathlib import Path
from typing import Callable, Dict, List

import measuring
import mxnet as mx
import numpy as np
from steps import VARIANTS
from subjects import Subject

from edp_mx.attacks.membership.run_scores import compute_signals
from edp_mx.cli.predict import answers, at_hand, read_requests
from edp_mx.config import load_config
from edp_mx.data.corpus import load_corpus
from edp_mx.data.utterance import Utterance
from edp_mx.runs.build import encode_part, model_for, vocabulary_for
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.trained_run import TrainedRun
from edp_mx.runtime import distributed
from edp_mx.runtime.distributed import Workers
from edp_mx.training.evaluate import score_corpus

MICRO_BATCH = 64
STEPS = 3  # of training in a round


def main() -> None:
    parser = measuring.build_parser(__doc__, rounds=4)
    parser.add_argument("--utterances", type=int, default=1024, help="of the test part")
    options = parser.parse_args()
    measuring.need_corpus("atis")
    measuring.settle_threads()
    workers = distributed.start()
    figures: measuring.Figures = {}
    for family in options.model:
        rates = measure(untrained(family), options, workers)
        title = (
            f"{family}: {options.utterances} utterances, {os.environ['OMP_NUM_THREADS']} "
            f"thread(s), {options.rounds} rounds"
        )
        print(measuring.show_rates(title, "", rates, "train", digits=0), flush=True)
        for name in list(rates)[1:]:
            what = f"{family.upper()}, {name} ÷ train, utterances/s"
            figures[what] = measuring.ratios(rates, name, "train")
    measuring.record(options, figures)


def untrained(family: str) -> TrainedRun:
    """Return a model of the paper's size for ATIS, with the weights that training begins with."""
    path = measuring.ROOT / "configs" / "model" / f"{family}.yaml"
    config = load_config(path, ["data.corpus=atis"])
    vocabulary = vocabulary_for(config, load_corpus(config.data))
    model = model_for(config, vocabulary, mx.cpu())
    return TrainedRun(RunDirectory(Path("no run")), config, vocabulary, model)


def measure(
    trained: TrainedRun, options: argparse.Namespace, workers: Workers
) -> measuring.Seconds:
    """Return the utterances per second of each way to use the model, by round; training first."""
    corpus = load_corpus(trained.config.data)
    chosen = np.random.default_rng(0).permutation(len(corpus.test))[: options.utterances]
    intents, slots = set(trained.vocabulary.intents), set(trained.vocabulary.slots)
    known = [  # the attack leaves out labels that the model does not know
        utterance
        for utterance in (corpus.test[i] for i in chosen)
        if utterance.intent in intents and slots.issuperset(utterance.slots)
    ]
    ways = {"train": training(trained, corpus.train, workers), **using(trained, known, workers)}
    seconds = measuring.in_turn(
        {name: measuring.timed(way) for name, way in ways.items()}, rounds=options.rounds
    )
    counts = {name: STEPS * MICRO_BATCH if name == "train" else len(known) for name in ways}
    return {name: [counts[name] / each for each in seconds[name]] for name in ways}


def training(
    trained: TrainedRun, utterances: List[Utterance], workers: Workers
) -> Callable[[], None]:
    """Return whole SGD steps with Adam on utterances as drawn, not sorted by length."""
    encoded = encode_part(trained.config, utterances, trained.vocabulary, "training")
    subject = Subject(trained.model, encoded.batch(range(MICRO_BATCH)), workers=workers)
    step, generator = VARIANTS["sgd"](subject), np.random.default_rng(1)

    def steps() -> None:
        for _ in range(STEPS):
            chosen = generator.choice(len(encoded), MICRO_BATCH, replace=False)
            subject.batch = encoded.batch(chosen)
            step()

    return steps


def using(
    trained: TrainedRun, utterances: List[Utterance], workers: Workers
) -> Dict[str, Callable[[], object]]:
    """Return the ways to use a model, from encoding all utterances to what is kept of them."""
    batch_size = trained.config.training.evaluation_batch_size
    lines = "".join(" ".join(utterance.tokens) + "\n" for utterance in utterances)

    def encoded():
        return encode_part(trained.config, utterances, trained.vocabulary, "test")

    def evaluate() -> None:
        parts = trained.task, trained.model, encoded(), utterances, trained.vocabulary
        score_corpus(*parts, batch_size=batch_size, workers=workers)

    def attack() -> None:
        compute_signals(
            trained.model, encoded(), batch_size=batch_size, progress=lambda batches, *_: batches
        )

    def predict() -> None:
        for chunk in at_hand(read_requests(io.StringIO(lines))):
            for _ in answers(trained, chunk, as_json=True):
                pass

    return {"evaluate": evaluate, "attack": attack, "predict": predict}


if __name__ == "__main__":
    main()
