"""The seconds that training steps take, method beside method, on the workers of this job."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import Corpus, load_corpus
from edp_mx.data.sources import STANDIN_SIZE, is_made
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.data.wordpiece import WordPiece
from edp_mx.errors import UserError
from edp_mx.runs.build import NUM_PIECES, start_for, vocabulary_for
from edp_mx.runs.build_training import build_training
from edp_mx.runs.file_types import Environment
from edp_mx.runs.prepare import prepare_corpus
from edp_mx.runs.record import machine_of
from edp_mx.runs.run_directory import RunDirectory, environment
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.progress import Heartbeat
from edp_mx.runtime.structured import structure, unstructure
from edp_mx.runtime.threads import allowed_threads
from edp_mx.runtime.watchdog import Watchdog
from edp_mx.training.loop import EpochSoFar, TrainingLoop
from experiments.tables.times import WARM_UP, TimesCell


def time_cell(
    cell: TimesCell, workers: Workers, *, folder: Path, rounds: int, budget: float
) -> Dict[str, Any]:
    """Let the methods of a row take turns on this job's workers, as they train; each calls this.

    In each round every method takes the first steps of an epoch, the same utterances for all, and
    another method begins. Of a stand-in with more utterances than a draw has, a draw is trained on,
    and an epoch is that of the whole.

    Args:
        folder: where the workers leave their signs of life.
        budget: in seconds; no round begins after it, but for the first that counts.

    Returns:
        What `results/table2.json` says of a row: `seconds` of each method's steps, by round, and
        `processor_seconds` of all workers together.
    """
    began = time.monotonic()
    if cell.error:
        raise UserError(cell.error)
    wholes = {name: trial.config for name, trial in cell.trials.items() if trial.config}
    configs = {name: drawn_from(config) for name, config in wholes.items()}
    first = configs["sgd"].training
    with Watchdog.over(
        workers, folder=folder, seconds=first.watchdog_seconds
    ) as watchdog, tempfile.TemporaryDirectory(
        dir=folder.parent  # which goes with the job, even if a worker is killed
    ) as place:
        loops = _loops(configs, workers, Path(place), watchdog.heartbeat)
        times = _rounds(loops, workers, steps=cell.steps, rounds=rounds, until=began + budget)
    return {**_row(cell, wholes["sgd"], loops["sgd"], workers.size), **times}


def _row(
    cell: TimesCell, config: ExperimentConfig, loop: TrainingLoop, workers: int
) -> Dict[str, Any]:
    """The columns of a row before its times, from SGD on the whole and, as `loop`, on a draw."""
    steps, batch_size = loop.sampler.steps_per_epoch, config.training.batch_size
    drawn = len(loop.corpus)
    n = training_part(config, drawn)
    made = environment(workers)
    return {
        "corpus": cell.corpus,
        "family": cell.family,
        "workers": workers,
        "threads": allowed_threads(),
        "batch_size": batch_size,
        "n": n,
        "measured_on": drawn,
        "steps_per_epoch": steps if n == drawn else n // batch_size,
        "steps": min(cell.steps, steps),
        "date": made["started"][:10],
        "machine": unstructure(machine_of(structure(made, Environment))),
    }


def drawn_from(config: ExperimentConfig) -> ExperimentConfig:
    """Return the settings with a draw of a stand-in that is larger than one."""
    if not is_made(config.data):
        return config
    size = min(config.data.size or STANDIN_SIZE, STANDIN_SIZE)
    return replace(config, data=replace(config.data, size=size))


def training_part(config: ExperimentConfig, drawn: int) -> int:
    """Return the training utterances of an epoch of the whole, of those of a draw."""
    data = config.data
    if not is_made(data) or data.size is None or data.size <= STANDIN_SIZE:
        return drawn
    assert data.fractions is not None  # a stand-in has no split of its own
    return round(data.fractions[0] * data.size)


def vocabulary_of(config: ExperimentConfig, corpus: Corpus) -> Optional[Vocabulary]:
    """Return the corpus' own, for a BERT filled up to the paper's size; None with a checkpoint."""
    if start_for(config) is not None:
        return None  # it brings its own
    vocabulary = vocabulary_for(config, corpus)
    tokenizer = vocabulary.tokenizer
    if not isinstance(tokenizer, WordPiece):
        return vocabulary
    unused = (f"[unused{i}]" for i in range(NUM_PIECES - len(tokenizer.pieces)))
    return replace(vocabulary, tokenizer=replace(tokenizer, pieces=(*tokenizer.pieces, *unused)))


def _loops(
    configs: Mapping[str, ExperimentConfig], workers: Workers, place: Path, heartbeat: Heartbeat
) -> Dict[str, TrainingLoop]:
    """The trainings of the methods, each with a model of its own, ready for their first step."""
    first = next(iter(configs.values()))  # all have the same data
    heartbeat("preparing the data")
    corpus = load_corpus(first.data, heartbeat=heartbeat)
    workers.agree("the corpus", corpus.fingerprint())
    heartbeat("building the vocabulary")
    vocabulary = vocabulary_of(first, corpus)
    loops = {}
    for name, config in configs.items():
        heartbeat(f"building {name}")
        run = RunDirectory(place / name)
        run.path.mkdir()
        prepared = prepare_corpus(corpus, config, workers, vocabulary=vocabulary)
        loops[name] = build_training(prepared, config, workers, run, heartbeat).loop
    return loops


def _rounds(
    loops: Dict[str, TrainingLoop], workers: Workers, *, steps: int, rounds: int, until: float
) -> Dict[str, Dict[str, List[float]]]:
    """The seconds and the processor's seconds of each method's steps, by round."""
    names = list(loops)
    seconds: Dict[str, List[float]] = {name: [] for name in names}
    processor: Dict[str, List[float]] = {name: [] for name in names}
    for number in range(WARM_UP + rounds):
        is_late = workers.broadcast(time.monotonic() > until)
        if is_late and number > WARM_UP:
            break
        first = number % len(names)
        for name in names[first:] + names[:first]:
            began = time.process_time()
            taken = _take(loops[name], steps, epoch=number)
            busy = sum(workers.gather(time.process_time() - began))
            if number >= WARM_UP:
                seconds[name].append(round(taken, 4))
                processor[name].append(round(busy, 4))
    return {"seconds": seconds, "processor_seconds": processor}


def _take(loop: TrainingLoop, steps: int, *, epoch: int) -> float:
    """Take the first steps of an epoch, which no ledger counts, and return their seconds."""
    allowed = min(steps, loop.sampler.steps_per_epoch)
    counted = replace(loop, permit=lambda _, first, most: min(most, allowed - first))
    return next(counted.epochs(begin=EpochSoFar(epoch))).seconds
