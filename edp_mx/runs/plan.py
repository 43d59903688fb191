"""The privacy plan of a configured run: made once, when data and workers are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Optional, Sequence, Tuple, Union

import numpy as np

from edp_mx.config import ExperimentConfig
from edp_mx.data.config import PUBLIC_CORPORA
from edp_mx.data.corpus import Corpus
from edp_mx.data.labels import FROM, PUBLIC, source_of
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.accounting.budget import refuse_blind_budget
from edp_mx.dp.accounting.coverage import Declaration
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.planning import settled
from edp_mx.dp.sampling.dealing import deal
from edp_mx.dp.sampling.draws import Sampler
from edp_mx.runs.ancestors import Brought
from edp_mx.runs.early_plan import plan_before_data
from edp_mx.runtime.json_text import read_json

# Their names in privacy.assume_public.
_INPUT = {"start": "start", "word vectors": "start", "words": "vocabulary"}


def sampler_for(
    config: ExperimentConfig,
    num_records: int,
    *,
    rank: int,
    num_workers: int,
    users: Optional[np.ndarray],
    lengths: Union[Sequence[int], np.ndarray],
) -> Sampler:
    """Return a worker's share of the training records, drawn as configured."""
    training, privacy = config.training, config.privacy
    assert privacy.unit is not None  # PrivacyConfig settles it
    has_neighbours = privacy.mechanism != "none"  # which length buckets must not tell apart
    return deal(
        unit=privacy.unit,
        sampler=privacy.sampler,
        num_records=num_records,
        batch_size=training.batch_size,
        rank=rank,
        num_workers=num_workers,
        seed=training.seed,
        micro_batches_per_worker=privacy.micro_batches_per_worker,
        users=users,
        max_utterances_per_user=privacy.max_utterances_per_user,
        steps_per_epoch=training.steps_per_epoch,
        length_buckets=training.length_buckets,
        lengths=lengths,
        adjacency=privacy.adjacency if has_neighbours else "zero_out",
        insecure_fixed_seed=privacy.insecure_fixed_seed,
    )


def plan_for(
    config: ExperimentConfig,
    corpus: Corpus,
    vocabulary: Vocabulary,
    draws: Sampler,
    num_workers: int,
    *,
    brought: Brought,
) -> Plan:
    """Return the plan of a run, complete but for α; a target ε is turned into z₀.

    A target or budget that cannot see why ε is infinite is refused. What the model has `brought`
    along comes from `brought_along`, on rank 0: the hashes are those of one machine.
    """
    privacy = config.privacy
    private = {
        "vocabulary": not vocabulary.is_public or brought.has_own_words,
        "start": brought.is_own,
    }
    plan = plan_before_data(
        privacy,
        config.training,
        draws.sizes,
        num_workers=num_workers,
        corpus_is_public=corpus.name in PUBLIC_CORPORA,
        private_inputs=tuple(name for name, is_there in private.items() if is_there),
    )
    plan = replace(plan, declarations=_declarations_of(config, brought))
    for key in ("max_epsilon", "corpus_budget"):
        if getattr(privacy, key) is not None:
            refuse_blind_budget(plan, f"privacy.{key}")
    return settled(plan, privacy.target_epsilon, key="privacy.target_epsilon")


def _declarations_of(config: ExperimentConfig, brought: Brought) -> Tuple[Declaration, ...]:
    """Return the inputs that reach the model without noise: words, labels, word vectors, start.

    Of files and folders only the names are said. What is drawn at random, or read from the private
    training part, is no declaration: the latter makes ε infinite.
    """
    label_words = getattr(config.model, "label_words", None)
    found = [("words", _words(config), False), ("labels", _labels(config), False)]
    if label_words is not None:
        found.append(("label words", f"declared public by the list {_name(label_words)}", False))
    for of, said, is_own in brought.said:
        is_assumed = is_own and _INPUT[of] in config.privacy.assume_public
        by = ", declared public by privacy.assume_public" if is_assumed else ""
        found.append((of, f"{said}{by}", is_own is None))
    return tuple(Declaration(of, said, is_open) for of, said, is_open in found if said is not None)


def _words(config: ExperimentConfig) -> Optional[str]:
    source, path = config.data.vocabulary.source, config.data.vocabulary.path
    if source == "sample" and path is not None:
        return f"read from {_name(path)}, declared public by data.vocabulary"
    if source == "file":
        return f"declared public by the list {_name(path)} (data.vocabulary)"
    if source == "embeddings":
        return f"those of {_name(config.data.embeddings.path)}, declared public by data.vocabulary"
    return "those of what the model starts from" if source == "checkpoint" else None


def _labels(config: ExperimentConfig) -> Optional[str]:
    source, path = source_of(config.data.labels), config.data.labels.path
    if source == "sample" and path is not None:
        return f"read from {_name(path)}, declared public by data.labels"
    if source != "file":
        return None
    name, held = _name(path), read_json(str(path))
    if PUBLIC in held:
        return f"{held[PUBLIC]} (the list {name})"
    read = f"read from {held[FROM]}, " if FROM in held else ""
    how = f'the list {name}, whose line "private" was removed' if read else f"the list {name}"
    return f"{read}declared public by {how}"


def _name(path: Optional[str]) -> str:
    return Path(str(path)).name
