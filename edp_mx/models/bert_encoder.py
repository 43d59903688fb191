"""The family `bert`: a BERT that is read at the first piece of each token."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd
from mxnet.gluon import nn

from edp_mx.data.batching import Batch, PieceInputs
from edp_mx.data.config import DataConfig
from edp_mx.data.template import Frame
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.models.bert import BERT, BERTConfig, initial_bert_values
from edp_mx.models.bert_states import at_tokens, lower_states, piece_means, visible_lengths
from edp_mx.models.checkpoints.config import ADOPTED, read_config
from edp_mx.models.checkpoints.huggingface import (
    Checkpoint,
    bert_tensors,
    load_bert,
    read_checkpoint,
    write_checkpoint,
)
from edp_mx.models.encoder import Encoder, Family, FrozenPart, refuse_too_long
from edp_mx.models.id_ranges import check_ids, check_pieces
from edp_mx.models.infilling import PIECE_BIAS, MaskedPieceHead
from edp_mx.models.label_names import label_pieces, label_words
from edp_mx.models.onnx.bert import bert_graph
from edp_mx.models.trained_part import Adaptable


class BERTEncoder(Encoder):
    """Token states (those of first pieces) and an utterance vector (the pooled [CLS], or [MASK]'s).

    Shapes: pieces (N, P), piece_lengths (N,), first pieces (N, T) → states (N, T, H), pooled
    (N, H).
    Source: paper, section "Models"; Devlin et al. 2019, sections 4.1 and 5.3.
    """

    initial_values = staticmethod(initial_bert_values)

    def __init__(
        self, config: BERTConfig, *, num_pieces: int, mask_place: Optional[int] = None, **block: str
    ) -> None:
        super().__init__(**block)
        self._config, self._num_pieces = config, num_pieces
        self.needs_masked_lm = mask_place is not None
        self.output_size = config.hidden_size
        self.num_pooled = config.num_layers + 1 if config.reads_all_layers else 1
        with self.name_scope():
            self.bert = BERT(config, num_pieces=num_pieces, mask_place=mask_place, prefix="")
            self.dropout = nn.Dropout(config.dropout)

    def adaptable(self, frozen_layers: int) -> Adaptable:
        cells = list(self.bert.model.encoder.transformer_cells)[frozen_layers:]
        dense = [each for cell in cells for each in (cell.proj, cell.ffn.ffn_1, cell.ffn.ffn_2)]
        dense += [self.bert.pooler] if self.bert.pooler else []
        return Adaptable([cell.attention_cell for cell in cells], dense)

    def tables(self, vocabulary: Vocabulary) -> Dict[str, Sequence[str]]:
        assert vocabulary.tokenizer is not None
        return {self.bert.piece_embedding.name: vocabulary.tokenizer.pieces}

    def masked_piece_head(self) -> MaskedPieceHead:
        """See `Encoder`; the pooler is then not trained, since the loss does not depend on it."""
        if self.bert.has_pooler:
            self.bert.model.pooler.collect_params().setattr("grad_req", "null")
        prefix = "masked_pieces_"
        return MaskedPieceHead(self._config, num_pieces=self._num_pieces, prefix=prefix)

    def piece_states(self, inputs: PieceInputs) -> Tuple[mx.nd.NDArray, mx.nd.NDArray]:
        vectors = self.bert.piece_embedding.data()
        pieces, lengths, _ = self._read(inputs, vectors.context)
        states, _ = self.bert(pieces, lengths)
        return states, vectors

    def start_label_head(
        self, head: nn.Dense, vocabulary: Vocabulary, *, labels: Iterable[int], checkpoint: Any
    ) -> None:
        """See `Encoder`: where [MASK] is read, rows score label words as the masked-LM head does.

        A label's score is then the mean of the scores of its pieces; features beside the state at
        [MASK] get weights of 0. A run to start from has no bias of the pieces.

        Departs: the rows are trained as weights of their own, not as the pieces' vectors.
        """
        if self.bert.mask_state is None:
            return
        assert vocabulary.tokenizer is not None
        words = label_words(vocabulary.intents, self._config.label_words)
        pieces = label_pieces(words, vocabulary.tokenizer)
        is_whole = isinstance(checkpoint, Checkpoint)
        bias = checkpoint.tensors.get(PIECE_BIAS) if is_whole else None
        vectors = self.bert.piece_embedding.data().asnumpy()  # (V, H)
        weights, biases = head.weight.data().asnumpy(), head.bias.data().asnumpy()  # (I, G H), (I,)
        for i in labels:
            chosen = list(pieces[i])
            weights[i] = 0
            weights[i, : vectors.shape[1]] = vectors[chosen].mean(axis=0)
            if bias is not None:
                biases[i] = bias[chosen].mean()
        head.weight.set_data(mx.nd.array(weights))
        head.bias.set_data(mx.nd.array(biases))

    def frozen_part(self) -> Optional[FrozenPart]:
        """See `Encoder`: embeddings and lowest layers, if they are frozen."""
        cells, frozen = self.bert.model.encoder.transformer_cells, self._config.frozen_layers
        lower = [*self.bert.embedding_parameters()]
        for i in range(frozen):
            lower += cells[i].collect_params().values()
        if not frozen or any(p.grad_req != "null" for p in lower):
            return None

        def states(batch: Batch) -> Tuple[np.ndarray, np.ndarray]:
            context = self.bert.piece_embedding.list_ctx()[0]
            pieces, lengths, _ = self.inputs(batch, context)
            with autograd.pause(train_mode=False):
                rows = lower_states(self.bert.model, pieces, lengths, num_layers=frozen)
            return rows.asnumpy(), lengths.asnumpy().astype(np.int64)

        return FrozenPart(states, UpperBERT(self, num_frozen=frozen))

    def inputs(self, batch, context: mx.Context) -> Tuple[mx.nd.NDArray, ...]:
        return self._read(batch.inputs, context)

    def _read(self, inputs: PieceInputs, context: mx.Context) -> Tuple[mx.nd.NDArray, ...]:
        most = self._config.max_positions
        check_pieces(inputs, num_pieces=self._num_pieces, max_positions=most)
        pieces, lengths, firsts = inputs  # (N, P), (N,), (N, T)
        check_ids("first pieces", firsts, pieces.shape[1])
        return (
            mx.nd.array(pieces, ctx=context, dtype="int32"),
            mx.nd.array(lengths, ctx=context, dtype="float32"),
            mx.nd.array(firsts, ctx=context, dtype="float32"),
        )

    def hybrid_forward(self, F, pieces, piece_lengths, firsts):
        sequence, pooled = self.bert(pieces, piece_lengths)  # (N, P, H), (N, H)
        return self.dropout(at_tokens(F, sequence, firsts)), self.dropout(pooled)


class UpperBERT(Encoder):
    """The layers of a BERT encoder above its frozen ones.

    Args:
        encoder: the whole, whose blocks this one shares.

    Shapes: states below (N, P, H), piece_lengths (N,), first pieces (N, T) → states (N, T, H),
    pooled (N, H).
    """

    def __init__(self, encoder: BERTEncoder, *, num_frozen: int) -> None:
        super().__init__(prefix="")
        self.output_size = encoder.output_size
        cells = encoder.bert.model.encoder.transformer_cells
        self.cells = nn.HybridSequential(prefix="")
        self.cells.add(*[cells[i] for i in range(num_frozen, len(cells))])
        self._reads_mask = encoder.bert.mask_state is not None
        self.pooler = encoder.bert.mask_state or encoder.bert.pooler
        self.dropout = encoder.dropout

    def inputs(self, batch, context: mx.Context) -> Tuple[mx.nd.NDArray, ...]:
        _, lengths, firsts = batch.pieces
        given = (batch.inputs.states, lengths, firsts)
        return tuple(mx.nd.array(each, ctx=context, dtype="float32") for each in given)

    def hybrid_forward(self, F, below, piece_lengths, firsts):
        rows = F.swapaxes(below, 0, 1)  # (P, N, H)
        visible = visible_lengths(F, rows, piece_lengths)  # (N, P)
        for cell in self.cells._children.values():
            rows, _ = cell(rows, visible)
        rows = F.SequenceMask(rows, piece_lengths, use_sequence_length=True, axis=0)
        sequence = F.swapaxes(rows, 0, 1)  # (N, P, H)
        pooled = self._pooled(F, sequence, piece_lengths)  # (N, H)
        return self.dropout(at_tokens(F, sequence, firsts)), self.dropout(pooled)

    def _pooled(self, F, sequence, piece_lengths):
        if self.pooler is None:
            return piece_means(F, [sequence], piece_lengths)
        if self._reads_mask:
            return self.pooler(sequence, piece_lengths)
        first = F.slice_axis(sequence, axis=1, begin=0, end=1)  # (N, 1, H)
        return self.pooler(F.reshape(first, (-1, self.output_size)))


def build_encoder(config: BERTConfig, data: DataConfig, vocabulary: Vocabulary) -> BERTEncoder:
    assert vocabulary.tokenizer is not None  # the family has pieces
    refuse_too_long(data, config)
    mask_place = None
    if config.intents == "infilling":
        mask_place = Frame.of(vocabulary.template, vocabulary.tokenizer).mask
    num_pieces = len(vocabulary.tokenizer)
    return BERTEncoder(config, num_pieces=num_pieces, mask_place=mask_place, prefix="bert_")


FAMILY = Family(
    name="bert",
    title="BERT",
    config=BERTConfig,
    has_pieces=True,
    build=build_encoder,
    read_settings=lambda path: vars(read_config(path).config),
    read_checkpoint=read_checkpoint,
    load_checkpoint=lambda encoder, checkpoint: load_bert(encoder.bert, checkpoint),
    checkpoint_of=lambda encoder, tokenizer: Checkpoint(
        encoder.bert.config, tokenizer, bert_tensors(encoder.bert)
    ),
    write_checkpoint=write_checkpoint,
    sizes=ADOPTED,
    graph=bert_graph,
)
