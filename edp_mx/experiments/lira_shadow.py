"""One shadow model of LiRA, in a process of its own: `python -m … FOLDER NUMBER`."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import List

import numpy as np

from edp_mx.attacks.members import text_of
from edp_mx.attacks.scores import hash_of, write_arrays
from edp_mx.config import load_config
from edp_mx.data.corpus import Corpus, load_corpus
from edp_mx.data.splits import Split
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.distributed import start
from edp_mx.errors import UserError
from edp_mx.experiments.attack_signals import compute_signals
from edp_mx.experiments.attack_training import train_on
from edp_mx.experiments.build import encode_part
from edp_mx.experiments.lira_shadows import read_plan, shadow_file
from edp_mx.experiments.run_directory import RunDirectory

SEEDS_APART = 1000  # of the shadows' initial weights and orders from the run's own


def train_shadow(folder: Path, number: int) -> None:
    """Trains shadow `number` of the plan in `folder` and writes its scores.

    Raises:
        UserError: the plan or the run is broken, or the settings are impossible.
    """
    run = RunDirectory.existing(folder.parent)
    config = load_config(folder / "config.yaml")
    seed = config.training.seed + SEEDS_APART + number
    config = replace(config, training=replace(config.training, seed=seed))
    vocabulary = Vocabulary.from_json(run.read("vocabulary"))
    ids, is_in, _ = read_plan(folder)
    corpus = load_corpus(config.data)
    by_id = {utterance.id: utterance for utterance in corpus.utterances}
    if not by_id.keys() >= set(ids):
        raise UserError(f"{config.data.corpus} has changed since {folder / 'plan.npz'} was made")
    judged = [by_id[name] for name in ids]
    wanted = {text_of(judged[i]) for i in np.flatnonzero(is_in[:, number])}
    part = [u for u in corpus.utterances if text_of(u) in wanted and _is_known(u, vocabulary)]
    work = folder / f".shadow-{number:03d}"
    shutil.rmtree(work, ignore_errors=True)  # of one that was interrupted
    work.mkdir()
    try:
        prepared = train_on(
            _only(part, corpus),
            config,
            start(),
            RunDirectory(work),
            lambda iterable, *_: iterable,
            vocabulary=vocabulary,
        )
    finally:
        shutil.rmtree(work, ignore_errors=True)
    signals = compute_signals(
        prepared.model,
        encode_part(config, judged, vocabulary, "judged"),
        batch_size=config.training.evaluation_batch_size,
        progress=lambda iterable, *_: iterable,
    )
    arrays = {
        "log_odds": signals.log_odds,
        "loss": signals.loss,
        "is_in": is_in[:, number],
        "plan": np.array(hash_of(folder / "plan.npz")),
    }
    write_arrays(shadow_file(folder, number), arrays)


def _only(part: List[Utterance], corpus: Corpus) -> Corpus:
    """A corpus of a training part and nothing else."""
    nobody = np.arange(0)
    split = Split(train=np.arange(len(part)), validation=nobody, test=nobody)
    return Corpus(corpus.name, corpus.is_standin, tuple(part), split)


def _is_known(utterance: Utterance, vocabulary: Vocabulary) -> bool:
    tags = (vocabulary.slot_id(tag) for tag in utterance.slots)
    return vocabulary.intent_id(utterance.intent) >= 0 and min(tags) >= 0


if __name__ == "__main__":
    try:
        train_shadow(Path(sys.argv[1]), int(sys.argv[2]))
    except UserError as error:
        sys.exit(str(error))
