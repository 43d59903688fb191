"""Answer utterances with the BERT of this folder: transformers, torch, safetensors and numpy.

python modeling.py "call my parents" …

The encoder is transformers' own, under "bert." in model.safetensors. `intent_classifier` scores the
labels, `classifier` the tags of tokens; `decode.py` has the conditional random field above them.
"""

import json
import sys
from pathlib import Path

import torch
from decode import Decoder
from encode import Encoder
from safetensors.torch import load_file
from torch.nn.functional import layer_norm, linear
from transformers import AutoModel

FOLDER = Path(__file__).resolve().parent
TRANSFORM = "cls.predictions.transform"


class Model(torch.nn.Module):
    """The model of a folder, by default the one of this file."""

    def __init__(self, folder=FOLDER):
        super().__init__()
        self.about = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        self.encoder, self.decoder = Encoder(folder, self.about), Decoder(self.about)
        self.bert = AutoModel.from_pretrained(folder)
        self.tensors = load_file(folder / "model.safetensors")
        self.eval()

    def forward(self, pieces, piece_lengths, firsts):
        """Score labels, and tags of tokens. Shapes: (N, P), (N,), (N, T) → (N, I), (N, T, K)."""
        mask = torch.arange(pieces.shape[1]) < piece_lengths[:, None]  # (N, P)
        found = self.bert(pieces, attention_mask=mask.long(), output_hidden_states=True)
        layers = found.hidden_states[1:]  # (N, P, H) each
        scores = self.dense("intent_classifier", self.pooled(pieces, found, mask))
        if "slots" not in self.about:
            return (scores,)
        states = layers[self.about["token_layer"] - 1]  # (N, P, H)
        places = firsts[..., None].expand(-1, -1, states.shape[2])  # (N, T, H)
        return scores, self.dense("classifier", states.gather(1, places))

    def pooled(self, pieces, found, mask):
        """Return the vectors of utterances, as model.json says. Shapes: (N, G H)"""
        first, layers = found.pooler_output, found.hidden_states[1:]
        if self.about["mask_place"] is not None:  # of [MASK], in place of the pooled [CLS]
            rows = torch.arange(len(pieces))
            places = self.about["mask_place"] % mask.sum(1)  # counted from the end if negative
            state = self.dense(f"{TRANSFORM}.dense", layers[-1][rows, places])  # (N, H)
            state = self.bert.encoder.layer[0].intermediate.intermediate_act_fn(state)
            norm = (self.tensors[f"{TRANSFORM}.LayerNorm.{name}"] for name in ("weight", "bias"))
            first = layer_norm(state, state.shape[1:], *norm, self.bert.config.layer_norm_eps)
        if not (self.about["reads_mean"] or self.about["reads_all_layers"]):
            return first
        vectors = self.bert.embeddings.word_embeddings(pieces)  # (N, P, H)
        below = (layer_norm(vectors, vectors.shape[2:], eps=1e-6), *layers)
        means = [(each * mask[..., None]).sum(1) / mask.sum(1)[:, None] for each in below]
        first = means[-1] if self.about["reads_mean"] else first
        return torch.cat([first, *means[:-1]], 1) if self.about["reads_all_layers"] else first

    def dense(self, name, x):
        """Return W x + b of a named layer."""
        return linear(x, self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"])

    @torch.no_grad()
    def answers(self, texts):
        """Yield an answer per text; each text needs at least one word."""
        rows = [self.encoder.cut(text) for text in texts]
        inputs, counts = self.encoder(rows)
        found = [each.numpy() for each in self(**{k: torch.tensor(v) for k, v in inputs.items()})]
        yield from self.decoder(rows, counts, *found)


if __name__ == "__main__":
    model = Model()
    for text in filter(str.strip, sys.argv[1:]):
        print(json.dumps(*model.answers([text])))
