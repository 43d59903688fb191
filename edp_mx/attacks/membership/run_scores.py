"""Scores of a finished run for its members and non-members: `scores.npz`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import List, Tuple

import numpy as np

from edp_mx.attacks.membership.members import choose, unknown_words
from edp_mx.attacks.membership.scores import MembershipScores, Origin, hash_of
from edp_mx.attacks.membership.signals import Signals, signals_of
from edp_mx.data.encoding import EncodedCorpus, evaluation_batches
from edp_mx.errors import UserError
from edp_mx.runs.build import encode_part
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.trained_run import load_run
from edp_mx.runtime.progress import Progress
from edp_mx.tasks.model import TaskModel

SCORES = "scores.npz"


@dataclass(frozen=True)
class Selection:
    """Choice of the utterances that are attacked, equally many of each intent if balanced.

    The seed is of their draw, of the classifier of an attack and of the bootstrap. A size of 0
    means all members.
    """

    seed: int = 0
    is_balanced: bool = False
    size: int = 0

    def __post_init__(self) -> None:
        if self.seed < 0 or self.size < 0:
            raise UserError("--seed and --size must be 0 or more")


def score_run(path: Path, selection: Selection, progress: Progress) -> MembershipScores:
    """Compute the scores of a run and write `scores.npz`."""
    trained = load_run(path)
    vocabulary = trained.vocabulary
    chosen = choose(
        trained.part("train"),
        trained.part("test"),
        trained.part("validation"),
        slots=vocabulary.slots,
        intents=vocabulary.intents,
        **asdict(selection),
        has_public_labels=vocabulary.has_public_labels,
    )
    groups = (chosen.members, chosen.non_members, chosen.reference)
    utterances = [utterance for group in groups for utterance in group]
    group = np.repeat([0, 1, 2], [len(part) for part in groups])  # (U,)
    scores = MembershipScores(
        signals=compute_signals(
            trained.model,
            encode_part(trained.config, utterances, vocabulary, "attacked"),
            batch_size=trained.config.training.evaluation_batch_size,
            progress=progress,
        ),
        is_member=group == 0,
        is_reference=group == 2,
        ids=tuple(utterance.id for utterance in utterances),
        intents=tuple(utterance.intent for utterance in utterances),
        origin=Origin(
            weights=hash_of(trained.run.weights),
            corpus=trained.config.data.corpus,
            left_out=chosen.left_out,
            **asdict(selection),
        ),
        unknown_words=unknown_words(utterances, vocabulary),
    )
    scores.write(trained.run.path / SCORES)
    return scores


def saved_scores(path: Path) -> MembershipScores:
    """Read the scores that an earlier attack saved, unless they are of other weights."""
    run = RunDirectory.existing(path)
    return MembershipScores.read(run.path / SCORES, weights=hash_of(run.weights))


def compute_signals(
    model: TaskModel, corpus: EncodedCorpus, *, batch_size: int, progress: Progress
) -> Signals:
    """Compute all signals in the order of the corpus, without autograd and dropout.

    Utterances of similar length share a batch, so that there is little padding.
    """
    if len(corpus) == 0:
        raise UserError("there are no utterances to compute scores of")
    chain = model.chain()
    parts: List[Tuple[np.ndarray, Signals]] = []
    total = -(-len(corpus) // batch_size)
    batches = progress(evaluation_batches(corpus, batch_size), "scores", total)
    for batch, emissions, intent_scores in model.outputs(batches):
        signals = signals_of(
            intent_scores=intent_scores,
            intents=batch.intents,
            emissions=emissions,
            slots=batch.slots,
            lengths=batch.lengths,
            chain=chain,
        )
        parts.append((batch.indices, signals))
    order = np.argsort(np.concatenate([indices for indices, _ in parts]))
    return Signals(*(np.concatenate(arrays)[order] for arrays in zip(*(s for _, s in parts))))
