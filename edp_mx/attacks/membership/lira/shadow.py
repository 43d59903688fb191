"""Shadow models of LiRA, trained one after the other: `python -m … FOLDER NUMBER …`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from edp_mx.attacks.membership.lira.plan import ShadowPlan
from edp_mx.attacks.membership.lira.processes import shadow_file
from edp_mx.attacks.membership.run_scores import compute_signals
from edp_mx.attacks.membership.scores import hash_of
from edp_mx.attacks.training import to_train_on, train_prepared
from edp_mx.config import ExperimentConfig, load_config
from edp_mx.data.corpus import Corpus, load_corpus
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.weights import write_arrays
from edp_mx.errors import UserError
from edp_mx.runs.build import encode_part, start_for, vocabulary_for
from edp_mx.runs.frozen_states import KnownStates
from edp_mx.runs.prepare import prepare_corpus
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.distributed import start
from edp_mx.runtime.progress import no_progress

SEED_OFFSET = 1000  # between the seeds of the run and of its first shadow


def train_shadow(folder: Path, number: int, known: KnownStates) -> None:
    """Train shadow `number` of the plan in `folder` and write its scores.

    `known` is handed on to the next: what frozen layers compute is the same for all.
    """
    run = RunDirectory.existing(folder.parent)
    config = load_config(folder / "config.yaml")
    seed = config.training.seed + SEED_OFFSET + number
    config = replace(config, training=replace(config.training, seed=seed))
    labels = Vocabulary.from_json(run.read("vocabulary"))
    own = hash_of(folder / "plan.npz")  # now: another attack may replace the plan
    plan, corpus = ShadowPlan.read(folder), load_corpus(config.data)
    inside = to_train_on(corpus, plan.part(corpus, labels, number))
    vocabulary, workers = shadow_vocabulary(config, inside, labels), start()
    prepared = prepare_corpus(inside, config, workers, vocabulary=vocabulary, known=known)
    aside = folder / f".shadow-{number:03d}"
    prepared = train_prepared(prepared, config, workers, aside, no_progress)
    by_id = {utterance.id: utterance for utterance in corpus.utterances}
    judged = [by_id[name] for name in plan.ids]
    signals = compute_signals(
        prepared.model,
        prepared.stored(encode_part(config, judged, prepared.vocabulary, "judged")),
        batch_size=config.training.evaluation_batch_size,
        progress=no_progress,
    )
    arrays = {
        "log_odds": signals.log_odds,
        "loss": signals.loss,
        "is_in": plan.is_in[:, number],
        "plan": np.array(own),
    }
    write_arrays(shadow_file(folder, number), arrays, compress=True)


def shadow_vocabulary(config: ExperimentConfig, inside: Corpus, of_run: Vocabulary) -> Vocabulary:
    """Build the vocabulary of a shadow as the run's was built, with the labels of the run.

    Where the run took its words from its training part, a shadow takes them from its own: a word of
    an utterance that was not trained on must have an untrained vector in both. The labels are the
    run's, so that each utterance has a loss.
    """
    own = vocabulary_for(config, inside, start_for(config))
    return replace(own, slots=of_run.slots, intents=of_run.intents)


if __name__ == "__main__":
    try:
        states = KnownStates()
        for word in sys.argv[2:]:
            train_shadow(Path(sys.argv[1]), int(word), states)
    except UserError as error:
        sys.exit(str(error))
