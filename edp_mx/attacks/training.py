"""Training of the models that attacks need, and the losses of any utterances by a model."""

from __future__ import annotations

import shutil
from collections import ChainMap
from dataclasses import replace
from pathlib import Path
from typing import Dict, Sequence

import mxnet as mx
import numpy as np
from mxnet import autograd

from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import Corpus
from edp_mx.data.encoding import EncodedCorpus
from edp_mx.data.splits import Split
from edp_mx.data.utterance import Utterance
from edp_mx.runs.build_training import build_training
from edp_mx.runs.prepare import Prepared
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.progress import Progress
from edp_mx.tasks.model import TaskModel


def without_model_selection(config: ExperimentConfig) -> ExperimentConfig:
    """Return the settings with which the last epoch counts, and nothing is validated."""
    training = replace(config.training, checkpoint="last", early_stop_patience=0)
    return replace(config, training=training)


def to_train_on(corpus: Corpus, part: Sequence[Utterance]) -> Corpus:
    """Return a corpus of a training part alone: the models of attacks are not validated."""
    nobody = np.arange(0)
    split = Split(train=np.arange(len(part)), validation=nobody, test=nobody)
    return Corpus(corpus.name, tuple(part), split)


def train_prepared(
    prepared: Prepared, config: ExperimentConfig, workers: Workers, folder: Path, progress: Progress
) -> Prepared:
    """Train the model to the last epoch as `edp-mx train` does, with the configured mechanism.

    Returns what was trained: the part of the model above stored states, where it had such.

    `training.checkpoint` and early stopping are ignored. The folder is made anew for the files of
    the training, and removed afterwards.
    """
    config = without_model_selection(config)
    config = replace(config, privacy=replace(config.privacy, corpus_budget=None))  # nothing stays
    shutil.rmtree(folder, ignore_errors=True)  # left by an interrupted attack
    folder.mkdir(parents=True)
    try:
        training = build_training(prepared, config, workers, RunDirectory(folder))
        for _ in training.loop.epochs(progress):
            pass
        if training.loop.average is not None:
            training.loop.average.apply()
        return training.prepared
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def losses_of(
    model: TaskModel, corpus: EncodedCorpus, *, config: ExperimentConfig, workers: Workers
) -> np.ndarray:
    """Return the loss of each utterance without dropout, (n,) float64; the same on all workers."""
    size = config.training.evaluation_batch_size
    parts = [range(i, min(i + size, len(corpus))) for i in range(0, len(corpus), size)]
    share: Dict[int, np.ndarray] = {}
    with autograd.pause(train_mode=False):
        for number in range(workers.rank, len(parts), workers.size):
            losses: mx.nd.NDArray = model.loss(corpus.batch(parts[number]))  # (n,)
            share[number] = losses.asnumpy().astype(np.float64)
    found = ChainMap(*workers.gather(share))
    return np.concatenate([found[number] for number in range(len(parts))])
