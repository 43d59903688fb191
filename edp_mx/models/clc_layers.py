"""The layers of a CLC: token features from characters, a bi-LSTM, and the pooling of states."""

from __future__ import annotations

from mxnet import gluon
from mxnet.gluon import nn, rnn

POOLINGS = ("mean", "max", "first", "last")


class FirstMax(gluon.HybridBlock):
    """The maximum along an axis; of several equal entries only the first gets the gradient."""

    def __init__(self, axis: int, **block: str) -> None:
        super().__init__(**block)
        self._axis = axis

    def hybrid_forward(self, F, values):
        # pick, not F.max: where two are equal, F.max passes the gradient to both. Nor F.Pooling,
        # whose gradient is wrong outside training mode.
        places = F.stop_gradient(F.argmax(values, axis=self._axis))
        return F.pick(values, places, axis=self._axis)


class Pooling(gluon.HybridBlock):
    """One vector per utterance, from the states of its tokens without padding.

    Shapes: states (N, T, H), lengths (N,) → (N, H).
    """

    def __init__(self, kind: str, **block: str) -> None:
        super().__init__(**block)
        self.kind = kind
        if kind == "max":
            self.first_max = FirstMax(axis=1)

    def hybrid_forward(self, F, states, lengths):
        if self.kind == "first":
            return F.squeeze(F.slice_axis(states, axis=1, begin=0, end=1), axis=1)
        by_length = {"sequence_length": lengths, "use_sequence_length": True, "axis": 1}
        if self.kind == "last":
            return F.SequenceLast(states, **by_length)
        if self.kind == "mean":
            total = F.sum(F.SequenceMask(states, **by_length), axis=1)  # (N, H)
            return F.broadcast_div(total, F.expand_dims(lengths, 1))
        lowest = F.SequenceMask(states, value=-3.0e38, **by_length)  # (N, T, H)
        return self.first_max(lowest)  # (N, H)


class CharCNN(gluon.HybridBlock):
    """One feature vector per token, from its characters (0 is padding, 1 unknown) alone.

    Shapes: characters (N, T, C), integers → (N, T, filters); N and T may be swapped.
    Edge cases: padding changes nothing: its vector is 0, and its outputs of 0 never exceed those of
    a ReLU. A token without characters gives zeros.
    Source: Ma & Hovy 2016, section 2.1.
    Departs: a ReLU follows the convolution; no dropout on the characters' vectors.
    """

    def __init__(
        self, num_characters: int, *, dimension: int, filters: int, width: int, **block: str
    ) -> None:
        super().__init__(**block)
        with self.name_scope():
            self.embedding = nn.Embedding(num_characters, dimension, prefix="embedding_")
            self.convolution = nn.Conv1D(
                filters, width, padding=width // 2, in_channels=dimension, prefix="convolution_"
            )
            self.first_max = FirstMax(axis=2)

    def hybrid_forward(self, F, characters):
        spelled = F.reshape(characters, shape=(-3, 0))  # (N·T, C)
        is_character = F.cast(spelled > 0, "float32")
        vectors = self.embedding(spelled)  # (N·T, C, D)
        vectors = _masked(F, vectors, F.expand_dims(is_character, 2))
        features = F.relu(self.convolution(F.transpose(vectors, (0, 2, 1))))  # (N·T, F, C)
        features = _masked(F, features, F.expand_dims(is_character, 1))
        peaks = self.first_max(features)  # (N·T, F)
        return F.reshape_like(
            peaks, characters, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2
        )  # (N, T, F)


def _masked(F, values, mask):
    """Set padding to zero; the backward pass of broadcast_mul would cost a third of this block."""
    return F.elemwise_mul(values, F.stop_gradient(F.broadcast_like(mask, values)))


class BiLSTM(gluon.HybridBlock):
    """Layers of two LSTMs: one reads each utterance forwards, one backwards from its last token.

    Dropout is between layers, neither before the first nor after the last.

    Shapes: inputs (T, N, I), lengths (N,) → (T, N, 2·hidden_size), zero at padding.
    Departs: two LSTMs per layer and `SequenceReverse` instead of one fused bidirectional LSTM,
    whose `use_sequence_length` MXNet ignores on a CPU.
    """

    def __init__(
        self, input_size: int, *, hidden_size: int, num_layers: int, dropout: float, **block: str
    ) -> None:
        super().__init__(**block)
        self.num_layers = num_layers
        with self.name_scope():
            self.dropout = nn.Dropout(dropout)
            for layer in range(num_layers):
                size = 2 * hidden_size if layer else input_size
                for direction in ("forward", "backward"):
                    name = f"{direction}{layer}"
                    lstm = rnn.LSTM(hidden_size, input_size=size, prefix=f"{name}_")
                    setattr(self, name, lstm)

    def hybrid_forward(self, F, inputs, lengths):
        states = inputs
        for layer in range(self.num_layers):
            if layer:
                states = self.dropout(states)
            mirrored = F.SequenceReverse(states, lengths, use_sequence_length=True)  # (T, N, I)
            forward = getattr(self, f"forward{layer}")(states)  # (T, N, H)
            backward = getattr(self, f"backward{layer}")(mirrored)
            backward = F.SequenceReverse(backward, lengths, use_sequence_length=True)
            states = F.concat(forward, backward, dim=2)  # (T, N, 2H)
        return F.SequenceMask(states, lengths, use_sequence_length=True)
