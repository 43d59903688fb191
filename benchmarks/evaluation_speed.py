"""How much faster than training a model is used: evaluation, the attack's signals, `predict`.

Run: .venv/bin/python benchmarks/evaluation_speed.py [--model bert] [--rounds 4] [--json FILE]

In one process and in turn: SGD steps on random micro-batches of the training part, and utterances
of the test part predicted as `evaluate` does it, given to the attack, and read and printed as
`edp-mx predict RUN -` does it. Ratios of utterances a second are taken round by round; only they
mean much on a shared machine. Processor time says what is left of them when others take the cores
away; it does not see what runs beside what. Models of the configurations' size on ATIS, with the
words or word pieces of its training part. Their weights are drawn; `--run RUN` takes a trained one.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import time
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Callable, Dict, List

import mxnet as mx
import numpy as np
from rounds import WARM_UP, in_turn, spread
from steps import FAMILIES, LEARNING_RATE, settle_threads

from edp_mx.attacks.membership.run_scores import compute_signals
from edp_mx.cli.predict import at_hand, read_tokens
from edp_mx.config import load_config
from edp_mx.data.corpus import load_corpus
from edp_mx.data.dealing import deal
from edp_mx.data.utterance import Utterance
from edp_mx.privacy.clipping import Unclipped
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layers import layers_of
from edp_mx.privacy.mechanism import WithoutPrivacy
from edp_mx.privacy.trainer import PrivateTrainer
from edp_mx.reports.table import render_table
from edp_mx.runs.build import encode_part, model_for, vocabulary_for
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.trained import TrainedRun, load_run
from edp_mx.runtime import distributed
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.files import write_json
from edp_mx.training.evaluate import predict_utterances
from edp_mx.training.gradient import UnitLosses

MICRO_BATCH = 64
STEPS = 3  # of training in a round


def main() -> None:
    """Measures and prints."""
    options = _options()
    settle_threads()
    workers = distributed.start()
    subjects = [load_run(options.run)] if options.run else map(untrained, options.model or FAMILIES)
    results = {}
    for trained in subjects:
        family = trained.config.model.family
        results[family] = measure(trained, options, workers)
        print(page(family, options, results[family]), flush=True)
    if options.json:
        write_json(options.json, results)


def untrained(family: str) -> TrainedRun:
    """A model of the paper's size for ATIS, with the weights that training begins with."""
    path = Path(__file__).resolve().parents[1] / "configs" / "model" / f"{family}.yaml"
    config = load_config(path, ["data.corpus=atis"])
    vocabulary = vocabulary_for(config, load_corpus(config.data))
    model = model_for(config, vocabulary, mx.cpu())
    return TrainedRun(RunDirectory(Path("no run")), config, vocabulary, model)


def measure(
    trained: TrainedRun, options: argparse.Namespace, workers: Workers
) -> Dict[str, Dict[str, List[float]]]:
    """Utterances a second, of the clock and of the processor, of each way in each round."""
    batch_size = options.batch or trained.config.training.evaluation_batch_size
    settings = replace(trained.config.training, evaluation_batch_size=batch_size)
    trained = replace(trained, config=replace(trained.config, training=settings))
    corpus = load_corpus(trained.config.data)
    generator = np.random.default_rng(0)
    chosen = generator.permutation(len(corpus.test))[: options.utterances]
    known = [corpus.test[i] for i in chosen if _is_known(corpus.test[i], trained)]
    ways = {"train": training(trained, corpus.train, workers), **using(trained, known, workers)}
    counts = {name: STEPS * MICRO_BATCH if name == "train" else len(known) for name in ways}
    processor: Dict[str, List[float]] = {name: [] for name in ways}
    clock = in_turn(
        {name: _timed(way, processor[name]) for name, way in ways.items()}, rounds=options.rounds
    )
    processor = {name: values[WARM_UP:] for name, values in processor.items()}
    return {
        kind: {name: [counts[name] / each for each in seconds[name]] for name in ways}
        for kind, seconds in (("clock", clock), ("processor", processor))
    }


def training(
    trained: TrainedRun, utterances: List[Utterance], workers: Workers
) -> Callable[[], None]:
    """Whole SGD steps with Adam, each on other utterances, as drawn: not sorted by length."""
    encoded = encode_part(trained.config, utterances, trained.vocabulary, "training")
    flat = FlatGradients(layers_of(trained.model))
    trainer = PrivateTrainer(
        flat=flat, optimizer="adam", optimizer_params={"learning_rate": LEARNING_RATE}
    )
    mechanism = WithoutPrivacy(clipping=Unclipped(flat=flat))
    sampler = deal(
        unit="micro_batch",
        sampler="shuffle",
        num_records=len(encoded),
        batch_size=MICRO_BATCH * workers.size,
        rank=workers.rank,
        num_workers=workers.size,
        seed=1,
    )
    losses = UnitLosses(
        trained.model, encoded, sampler=sampler, mechanism=mechanism, seed=0, rank=workers.rank
    )

    epochs = count()

    def steps() -> None:
        for draw in islice(sampler.draws(next(epochs)), STEPS):  # the first of an epoch each time
            chunks = losses(losses.batches(draw), epoch=0, step=0)
            trainer.step_private(mechanism.privatise(chunks, epoch=0))

    return steps


def using(
    trained: TrainedRun, utterances: List[Utterance], workers: Workers
) -> Dict[str, Callable[[], object]]:
    """The ways to use a model, each for all the utterances, from encoding to what is kept of it."""
    batch_size = trained.config.training.evaluation_batch_size
    lines = "".join(" ".join(utterance.tokens) + "\n" for utterance in utterances)

    def encoded():
        return encode_part(trained.config, utterances, trained.vocabulary, "test")

    def evaluate() -> None:
        parts = trained.model, encoded(), utterances, trained.vocabulary
        predict_utterances(*parts, batch_size=batch_size, workers=workers)

    def attack() -> None:
        compute_signals(
            trained.model, encoded(), batch_size=batch_size, progress=lambda batches, *_: batches
        )

    def predict() -> None:
        for chunk in at_hand(read_tokens(io.StringIO(lines))):
            for understood in trained.predict(chunk):
                json.dumps(understood.to_dict(), ensure_ascii=False)

    return {"evaluate": evaluate, "attack": attack, "predict": predict}


def page(family: str, options: argparse.Namespace, speeds: Dict[str, Dict]) -> str:
    """The table of one model."""
    rows = []
    for name, values in speeds["clock"].items():
        ratios = [
            spread([one / train for one, train in zip(each[name], each["train"])]).show(2)
            for each in speeds.values()
        ]
        rows.append([name, spread(values).show(0), *ratios])
    title = (
        f"\n{family}: {options.utterances} utterances, {os.environ['OMP_NUM_THREADS']} thread(s), "
        f"{options.rounds} rounds: median (quartiles)\n"
    )
    columns = ("", "utterances/s", "÷ train", "÷ train, by processor time")
    return "\n".join([title, render_table(columns, rows)])


def _is_known(utterance: Utterance, trained: TrainedRun) -> bool:
    """Whether the model knows all its labels: the attack leaves others out."""
    vocabulary = trained.vocabulary
    return utterance.intent in vocabulary.intents and set(utterance.slots) <= set(vocabulary.slots)


def _timed(way: Callable[[], object], processor: List[float]) -> Callable[[], float]:
    """The same, returning the seconds until all is done; those of all threads go to `processor`."""

    def run() -> float:
        started, used = time.perf_counter(), time.process_time()
        way()
        mx.nd.waitall()
        processor.append(time.process_time() - used)
        return time.perf_counter() - started

    return run


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", action="append", choices=FAMILIES, help="both if left out")
    parser.add_argument("--run", type=Path, metavar="RUN", help="a trained model instead")
    parser.add_argument("--utterances", type=int, default=1024, help="of the test part")
    parser.add_argument("--batch", type=int, help="utterances at once, if not as configured")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--json", metavar="FILE", help="where to write all speeds")
    return parser.parse_args()


if __name__ == "__main__":
    main()
