"""What a configuration would train on and spend, told before anything is trained."""

from __future__ import annotations

from typing import List

from edp_mx.accounting.budget import refuse_unaffordable
from edp_mx.accounting.guarantee import guarantee
from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.users import users_of
from edp_mx.runs.ancestors import brought_along
from edp_mx.runs.build import start_for, vocabulary_for
from edp_mx.runs.plan import plan_for, sampler_for
from edp_mx.runtime.progress import Progress, no_progress


def check(
    config: ExperimentConfig, num_workers: int, progress: Progress = no_progress
) -> List[str]:
    """Read the corpus, words and labels of a run, plan it, and say the sizes and its ε.

    No model is built, and nothing is released. The ε is that of a run which nothing interrupts.

    Raises:
        UserError: what the run itself would refuse before its first step.
    """
    corpus = load_corpus(config.data, progress=progress)
    vocabulary = vocabulary_for(config, corpus, start_for(config))
    sampler = sampler_for(
        config,
        len(corpus.train),
        rank=0,
        num_workers=num_workers,
        users=users_of(corpus.train) if config.privacy.unit == "user" else None,
        lengths=[len(utterance.tokens) for utterance in corpus.train],
    )
    brought = brought_along(config, corpus)
    plan = plan_for(config, corpus, vocabulary, sampler, num_workers, brought=brought)
    refuse_unaffordable(plan)
    sizes = (
        f"{corpus.name}: {len(corpus.train):,} training, {len(corpus.validation):,} validation, "
        f"{len(corpus.test):,} test utterances"
    )
    return [sizes, guarantee(plan).describe()]
