"""How much faster than training a model is used: evaluation, the attack's scores, `predict`.

Run: .venv/bin/python benchmarks/evaluation_speed.py [--model bert] [--rounds 4] [--json FILE]

In turn: SGD steps on random micro-batches of a stand-in's training part, and the forward half of
such steps; utterances of its test part given to `evaluate`, the attack, `edp-mx predict RUN -` and
to ONNX Runtime after `edp-mx export`; and the pass over the whole part that stores the outputs of a
frozen encoder. The models are untrained.
"""

import argparse
import io
import os
import tempfile
from functools import partial
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
from edp_mx.errors import UserError
from edp_mx.models.frozen import freeze, frozen_part
from edp_mx.runs.build import encode_part, model_for, vocabulary_for
from edp_mx.runs.exported.exported_model import ExportedModel
from edp_mx.runs.exported.onnx_folder import write_onnx
from edp_mx.runs.frozen_states import with_states
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.trained_run import TrainedRun
from edp_mx.runtime import distributed
from edp_mx.runtime.distributed import Workers
from edp_mx.training.evaluate import score_corpus

MICRO_BATCH = 64
STEPS = 3  # of training in a round
BESIDE = {"onnxruntime": "predict", "stored states": "forward half"}  # not beside whole steps


def main() -> None:
    parser = measuring.build_parser(__doc__, rounds=4)
    parser.add_argument("--utterances", type=int, default=1024, help="of the test part")
    options = parser.parse_args()
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
            base = BESIDE.get(name, "train")
            what = f"{family.upper()}, {name} ÷ {base}, utterances/s"
            figures[what] = measuring.ratios(rates, name, base)
    measuring.record(options, figures)


def untrained(family: str, *settings: str) -> TrainedRun:
    """Return a model of the paper's size with the weights that training begins with."""
    path = measuring.ROOT / "configs" / "model" / f"{family}.yaml"
    config = load_config(path, ["data.corpus=health", "data.size=8000", *settings])
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
        for utterance in {corpus.test[i].tokens: corpus.test[i] for i in chosen}.values()
        if utterance.intent in intents and slots.issuperset(utterance.slots)
    ]
    whole = list({utterance.tokens: utterance for utterance in corpus.test}.values())
    ways = {
        **training(trained, corpus.train, workers),
        **using(trained, known, workers),
        **exported(trained, known),
        "stored states": storing(whole, trained.config.model.family),
    }
    seconds = measuring.in_turn(
        {name: measuring.timed(way) for name, way in ways.items()}, rounds=options.rounds
    )
    counts = {name: len(known) for name in ways}
    counts["stored states"] = len(whole)
    counts["train"] = counts["forward half"] = STEPS * MICRO_BATCH
    return {name: [counts[name] / each for each in seconds[name]] for name in ways}


def training(
    trained: TrainedRun, utterances: List[Utterance], workers: Workers
) -> Dict[str, Callable[[], None]]:
    """Return SGD steps with Adam, whole and their forward halves, on utterances as drawn."""
    encoded = encode_part(trained.config, utterances, trained.vocabulary, "training")
    subject = Subject(trained.model, encoded.batch(range(MICRO_BATCH)), workers=workers)
    step, generator = VARIANTS["sgd"](subject), np.random.default_rng(1)

    def forward() -> None:
        with mx.autograd.record():
            subject.mean_loss()
        mx.nd.waitall()

    def steps(step: Callable[[], object]) -> None:
        for _ in range(STEPS):
            chosen = generator.choice(len(encoded), MICRO_BATCH, replace=False)
            subject.batch = encoded.batch(chosen)
            step()

    return {"train": partial(steps, step), "forward half": partial(steps, forward)}


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
        for chunk in at_hand(read_requests(io.StringIO(lines), trained.tokens_of)):
            for _ in answers(trained, chunk, as_json=True):
                pass

    return {"evaluate": evaluate, "attack": attack, "predict": predict}


def exported(trained: TrainedRun, utterances: List[Utterance]) -> Dict[str, Callable[[], object]]:
    """Return the answers of ONNX Runtime to utterances, if it is installed."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            write_onnx(trained, Path(folder))
            model = ExportedModel(Path(folder))
    except UserError as error:
        measuring.progress(f"skipped: {error}")
        return {}
    return {"onnxruntime": lambda: model.predict([utterance.tokens for utterance in utterances])}


def storing(utterances: List[Utterance], family: str) -> Callable[[], object]:
    """Return the pass over utterances that stores the outputs of a frozen encoder."""
    trained = untrained(family, "model.trained=heads")
    freeze(trained.model.encoder, trained.config.model)
    frozen = frozen_part(trained.model.encoder)
    assert frozen is not None
    return lambda: with_states(
        encode_part(trained.config, utterances, trained.vocabulary, "test"), frozen
    )


if __name__ == "__main__":
    main()
