"""What a model makes of a corpus, with all workers at it."""

from __future__ import annotations

from typing import Callable, Iterable, List, Sequence

import numpy as np

from edp_mx.data.batching import Batch
from edp_mx.data.encoding import EncodedCorpus, evaluation_batches
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.distributed import Workers
from edp_mx.models.intent_slot import IntentSlotModel

Wrap = Callable[[Iterable[Batch], int], Iterable[Batch]]


def predict_utterances(
    model: IntentSlotModel,
    corpus: EncodedCorpus,
    utterances: Sequence[Utterance],
    vocabulary: Vocabulary,
    *,
    batch_size: int,
    workers: Workers,
    wrap: Wrap = lambda batches, _: batches,
    on_batch: Callable[[], None] = lambda: None,
) -> List[Utterance]:
    """The utterances as the model understands them, in order, on every worker.

    Each worker predicts its share of the batches; the tag ids are then gathered.

    Args:
        corpus: `utterances`, encoded.
        wrap: put around the batches (with their number), e.g. a progress bar.
        on_batch: told before each batch: the watchdog listens.
    """
    share: List[tuple] = []
    mine = evaluation_batches(corpus, batch_size, rank=workers.rank, num_workers=workers.size)
    for batch in wrap(mine, -(-len(corpus) // (batch_size * workers.size))):
        on_batch()
        predictions = model.predict(batch)
        tags = [np.asarray(path, np.int16) for path in predictions.slots]  # (T,) each
        share.append((batch.indices, tags, predictions.intents))
    hypotheses: List[Utterance] = list(utterances)
    for part in workers.gather(share):
        for indices, paths, intents in part:
            for index, path, intent in zip(indices, paths, intents):
                hypotheses[index] = Utterance(
                    tokens=utterances[index].tokens,
                    slots=fit_length(
                        [vocabulary.slots[tag] for tag in path], len(utterances[index].tokens)
                    ),
                    intent=vocabulary.intents[int(intent)],
                    id=utterances[index].id,
                )
    return hypotheses


def fit_length(tags: Sequence[str], length: int) -> tuple:
    """Tags for all tokens of an utterance that was cut to the model's maximum: O for the rest."""
    return tuple(tags) + ("O",) * (length - len(tags))
