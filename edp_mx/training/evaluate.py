"""Predictions of a model for a corpus, by all workers together."""

from __future__ import annotations

from typing import Iterable, Iterator, List, Sequence, Tuple

import numpy as np

from edp_mx.data.batching import Batch
from edp_mx.data.encoding import EncodedCorpus, evaluation_batches
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.models.intent_slot import IntentSlotModel
from edp_mx.models.viterbi import best_tags
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.progress import Heartbeat, Progress, no_heartbeat, no_progress

# Of a batch: places in the corpus, lengths (N,), tag ids of all tokens one after the other, intents
Understood = Tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def predict_utterances(
    model: IntentSlotModel,
    corpus: EncodedCorpus,
    utterances: Sequence[Utterance],
    vocabulary: Vocabulary,
    *,
    batch_size: int,
    workers: Workers,
    what: str = "predicting",
    progress: Progress = no_progress,
    heartbeat: Heartbeat = no_heartbeat,
) -> List[Utterance]:
    """Return the utterances as the model understands them, in order, on every worker.

    Each worker predicts its share of the batches; the tag ids are then gathered.

    Args:
        corpus: `utterances`, encoded.
        what: names the work to `progress`, put around the batches, and to `heartbeat`.
    """
    mine = evaluation_batches(corpus, batch_size, rank=workers.rank, num_workers=workers.size)
    batches = progress(mine, what, -(-len(corpus) // (batch_size * workers.size)))
    chain = model.slot.crf.chain()
    share: List[Understood] = []
    for batch, emissions, intent_scores in model.outputs(_with_heartbeat(batches, what, heartbeat)):
        paths, _ = best_tags(emissions, batch.lengths, chain)
        tags = np.concatenate(paths).astype(np.int16)  # (tokens,)
        share.append((batch.indices, batch.lengths, tags, intent_scores.argmax(axis=1)))
    hypotheses: List[Utterance] = list(utterances)
    for part in workers.gather(share):
        for understood in part:
            _fill(hypotheses, understood, vocabulary)
    return hypotheses


def fit_length(tags: Sequence[str], length: int) -> tuple:
    """Return tags for all tokens of an utterance that the model saw cut: O for the rest."""
    return tuple(tags) + ("O",) * (length - len(tags))


def _fill(hypotheses: List[Utterance], understood: Understood, vocabulary: Vocabulary) -> None:
    indices, lengths, tags, intents = (array.tolist() for array in understood)
    names = [vocabulary.slots[tag] for tag in tags]  # (tokens,)
    start = 0
    for index, length, intent in zip(indices, lengths, intents):
        utterance = hypotheses[index]
        hypotheses[index] = Utterance(
            tokens=utterance.tokens,
            slots=fit_length(names[start : start + length], len(utterance.tokens)),
            intent=vocabulary.intents[intent],
            id=utterance.id,
        )
        start += length


def _with_heartbeat(batches: Iterable[Batch], what: str, heartbeat: Heartbeat) -> Iterator[Batch]:
    for batch in batches:
        heartbeat(what)
        yield batch
