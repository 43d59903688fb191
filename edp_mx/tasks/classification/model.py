"""The model of a classification: an encoder and one dense layer."""

from __future__ import annotations

from typing import Iterable, Iterator, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

from edp_mx.data.batching import Batch
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.models.encoder import Encoder
from edp_mx.models.id_ranges import check_ids
from edp_mx.tasks.classification.task import Classified
from edp_mx.tasks.confidence import Confidence
from edp_mx.tasks.model import Outputs, TaskModel, cross_entropy, probabilities


class Classifier(TaskModel):
    """An encoder, and a dense layer that scores the labels of a text."""

    label_head: nn.Dense
    answering = Confidence()

    def __init__(self, encoder: Encoder, label: nn.Dense) -> None:
        super().__init__(prefix="")
        self.encoder, self.label_head = encoder, label

    @classmethod
    def upon_labels(cls, encoder: Encoder, *, num_labels: int) -> Classifier:
        """Put a head for so many labels upon an encoder, without values."""
        width = encoder.num_pooled * encoder.output_size
        return cls(encoder, nn.Dense(num_labels, in_units=width, prefix="label_dense_"))

    def upon(self, encoder: Encoder) -> Classifier:
        return Classifier(encoder, self.label_head)

    def forward(self, batch: Batch) -> Tuple[Optional[mx.nd.NDArray], mx.nd.NDArray]:
        """Return no emissions, and label scores. Shapes: (N, I)."""
        _, pooled = self.encoded(batch)
        return None, self.label_head(pooled)

    def loss(self, batch: Batch) -> mx.nd.NDArray:
        """Return the cross entropy of the labels, (N,)."""
        check_ids("labels", batch.intents, self.label_head.weight.shape[0])
        _, scores = self(batch)
        return cross_entropy(scores, batch.intents)

    def guesses_of(self, outputs: Iterable[Outputs]) -> Iterator[Tuple[np.ndarray, np.ndarray]]:
        """See `TaskModel`: places in the corpus (N,), labels (N,)."""
        for batch, _, scores in outputs:
            yield batch.indices, scores.argmax(axis=1)

    def answers(
        self, batches: Iterable[Batch], asked: Sequence[Utterance], vocabulary: Vocabulary
    ) -> Iterator[Tuple[int, Classified]]:
        for batch, _, scores in self.outputs(batches):
            shares = probabilities(scores / self.answering.temperature)  # (N, I)
            for index, row in zip(batch.indices.tolist(), shares):
                order = np.argsort(-row, kind="stable").tolist()
                ranked = tuple((vocabulary.intents[i], float(row[i])) for i in order)
                label = self.answering.answer(*ranked[0])
                yield index, Classified(asked[index].tokens, label, ranked)
