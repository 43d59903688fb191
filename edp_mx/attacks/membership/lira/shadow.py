"""One shadow model of LiRA, in a process of its own: `python -m … FOLDER NUMBER`."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import List

import numpy as np

from edp_mx.attacks.membership.lira.plan import ShadowPlan
from edp_mx.attacks.membership.lira.processes import shadow_file
from edp_mx.attacks.membership.run_scores import compute_signals
from edp_mx.attacks.membership.scores import hash_of, write_arrays
from edp_mx.attacks.training import prepare_on, train_prepared
from edp_mx.config import ExperimentConfig, load_config
from edp_mx.data.corpus import Corpus, load_corpus
from edp_mx.data.splits import Split
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError
from edp_mx.runs.build import checkpoint_for, encode_part, vocabulary_for
from edp_mx.runs.prepare import Prepared
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.distributed import start

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
    labels = Vocabulary.from_json(run.read("vocabulary"))
    own = hash_of(folder / "plan.npz")  # now: another attack may write a plan of its own
    plan, corpus = ShadowPlan.read(folder), load_corpus(config.data)
    inside = _only(plan.part(corpus, labels, number), corpus)
    prepared = _trained(inside, config, shadow_vocabulary(config, inside, labels), folder, number)
    by_id = {utterance.id: utterance for utterance in corpus.utterances}
    judged = [by_id[name] for name in plan.ids]
    signals = compute_signals(
        prepared.model,
        encode_part(config, judged, prepared.vocabulary, "judged"),
        batch_size=config.training.evaluation_batch_size,
        progress=lambda iterable, *_: iterable,
    )
    arrays = {
        "log_odds": signals.log_odds,
        "loss": signals.loss,
        "is_in": plan.is_in[:, number],
        "plan": np.array(own),
    }
    write_arrays(shadow_file(folder, number), arrays)


def shadow_vocabulary(config: ExperimentConfig, inside: Corpus, of_run: Vocabulary) -> Vocabulary:
    """Words from where the run has them: from its training part, then from the shadow's own.

    A word that the run's list lacks has a vector that was never trained. It must be so in a shadow
    that was trained without the utterance too, else the run looks stranger than any shadow. Labels
    are the run's, so that each utterance has a loss.
    """
    own = vocabulary_for(config, inside, checkpoint_for(config))
    return replace(own, slots=of_run.slots, intents=of_run.intents)


def _trained(
    inside: Corpus, config: ExperimentConfig, vocabulary: Vocabulary, folder: Path, number: int
) -> Prepared:
    """The shadow; what its training leaves behind is removed."""
    work = folder / f".shadow-{number:03d}"
    shutil.rmtree(work, ignore_errors=True)  # of one that was interrupted
    work.mkdir()
    try:
        workers = start()
        prepared = prepare_on(inside, config, workers, vocabulary=vocabulary)
        train_prepared(prepared, config, workers, RunDirectory(work), lambda one, *_: one)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return prepared


def _only(part: List[Utterance], corpus: Corpus) -> Corpus:
    """A corpus of a training part and nothing else."""
    nobody = np.arange(0)
    split = Split(train=np.arange(len(part)), validation=nobody, test=nobody)
    return Corpus(corpus.name, corpus.is_standin, tuple(part), split)


if __name__ == "__main__":
    try:
        train_shadow(Path(sys.argv[1]), int(sys.argv[2]))
    except UserError as error:
        sys.exit(str(error))
