"""A bidirectional LSTM that ignores padding."""

from __future__ import annotations

from mxnet import gluon
from mxnet.gluon import nn, rnn


class BiLSTM(gluon.HybridBlock):
    """Layers of two LSTMs: one reads each utterance forwards, one backwards from its last token.

    Dropout is between layers, neither before the first nor after the last.

    Shapes: inputs (T, N, I), lengths (N,) → (T, N, 2·hidden_size), zero at padding.
    Departs: two LSTMs per layer and `SequenceReverse` instead of one fused bidirectional LSTM,
    whose `use_sequence_length` MXNet ignores on a CPU.
    """

    def __init__(
        self,
        input_size: int,
        *,
        hidden_size: int = 384,
        num_layers: int = 2,
        dropout: float = 0.0,
        **block: str,
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
