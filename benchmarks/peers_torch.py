"""The PyTorch side of `peers.py`: the same models, plain, with Opacus's hooks, with its ghost mode.

`peers.py` starts it with the Python of its own environment (`setup_peers.sh`), a batch and the
sizes. It says what it has built in one line of JSON, then takes a step for each variant's name that
it reads, and answers with the step's seconds.

An example is one row of every tensor, as Opacus wants it: the convolution over characters is a
Conv2d with a window of 1 × 3 over (tokens, characters), which is the same as our Conv1d.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from typing import Callable, Dict, Tuple

import numpy as np
import torch
from opacus import GradSampleModule
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from opacus.layers import DPLSTM
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import BertConfig, BertModel

Batch = Dict[str, Tensor]


class BERT(nn.Module):
    """States of the tokens' first pieces, and the pooled [CLS]."""

    def __init__(self, sizes: Dict[str, float]) -> None:
        super().__init__()
        self.output_size = sizes["hidden_size"]
        config = BertConfig(
            vocab_size=sizes["pieces"],
            hidden_size=sizes["hidden_size"],
            num_hidden_layers=sizes["num_layers"],
            num_attention_heads=sizes["num_heads"],
            intermediate_size=sizes["intermediate_size"],
            max_position_embeddings=sizes["max_positions"],
            hidden_dropout_prob=sizes["dropout"],
            attention_probs_dropout_prob=sizes["dropout"],
        )
        self.bert = BertModel(config)
        self.dropout = nn.Dropout(sizes["dropout"])

    def forward(self, batch: Batch) -> Tuple[Tensor, Tensor]:
        """→ (N, T, H), (N, H)."""
        pieces = batch["pieces"]  # (N, P)
        places = torch.arange(pieces.shape[1]).repeat(len(pieces), 1)
        result = self.bert(
            input_ids=pieces,
            attention_mask=(places < batch["piece_lengths"][:, None]).long(),
            token_type_ids=torch.zeros_like(pieces),  # Opacus wants one row an example
            position_ids=places,
        )
        rows = torch.arange(len(pieces))[:, None]
        states = result.last_hidden_state[rows, batch["firsts"]]  # (N, T, H)
        return self.dropout(states), self.dropout(result.pooler_output)


class CLC(nn.Module):
    """Word vectors and a character CNN, a bi-LSTM, and its largest states."""

    def __init__(self, sizes: Dict[str, float], lstm: type) -> None:
        super().__init__()
        width, filters = sizes["character_width"], sizes["character_filters"]
        self.output_size = 2 * sizes["hidden_size"]
        self.words = nn.Embedding(sizes["words"], sizes["word_dimension"])
        self.characters = nn.Embedding(sizes["letters"], sizes["character_dimension"])
        self.convolution = nn.Conv2d(
            sizes["character_dimension"], filters, (1, width), padding=(0, width // 2)
        )
        self.dropout = nn.Dropout(sizes["dropout"])
        self.lstm = lstm(
            sizes["word_dimension"] + filters,
            sizes["hidden_size"],
            num_layers=sizes["num_layers"],
            dropout=sizes["dropout"],
            bidirectional=True,
            batch_first=True,
        )

    def forward(self, batch: Batch) -> Tuple[Tensor, Tensor]:
        """→ (N, T, 2H), (N, 2H)."""
        spelled = self._spelled(batch["characters"])  # (N, T, F)
        tokens = self.dropout(torch.cat([self.words(batch["words"]), spelled], 2))  # (N, T, E+F)
        lengths, mask = batch["lengths"], batch["mask"][:, :, None]
        if mask.all():
            states, _ = self.lstm(tokens)  # (N, T, 2H)
        else:
            packed = pack_padded_sequence(tokens, lengths, batch_first=True, enforce_sorted=False)
            states, _ = pad_packed_sequence(
                self.lstm(packed)[0], batch_first=True, total_length=tokens.shape[1]
            )
        states = self.dropout(states)
        return states, states.masked_fill(~mask, -3.0e38).max(1).values

    def _spelled(self, characters: Tensor) -> Tensor:
        """(N, T, C) → (N, T, F)."""
        mask = (characters > 0)[..., None]  # (N, T, C, 1)
        vectors = (self.characters(characters) * mask).permute(0, 3, 1, 2)  # (N, D, T, C)
        vectors = vectors.contiguous()  # else Opacus 1.6 makes a wrong gradient, without a word
        features = functional.relu(self.convolution(vectors))  # (N, F, T, C)
        return (features * mask[:, None, :, :, 0]).max(3).values.transpose(1, 2)


class Tagger(nn.Module):
    """An encoder with its two heads, and the transitions of a CRF if there is to be one."""

    def __init__(self, encoder: nn.Module, *, slots: int, intents: int, has_crf: bool) -> None:
        super().__init__()
        self.encoder = encoder
        self.intent = nn.Linear(encoder.output_size, intents)
        self.slot = nn.Linear(encoder.output_size, slots)
        self.chain = nn.ParameterList()
        if has_crf:
            self.chain.extend(torch.zeros(size) for size in ((slots, slots), (slots,), (slots,)))

    def forward(self, batch: Batch) -> Tuple[Tensor, Tensor]:
        """Emissions (N, T, K) and intent scores (N, I)."""
        states, pooled = self.encoder(batch)
        return self.slot(states), self.intent(pooled)

    def slot_losses(self, emissions: Tensor, batch: Batch) -> Tensor:
        """(N,): the CRF's, or the sum over the tokens of the cross entropy."""
        if self.chain:
            return crf_losses(emissions, batch, *self.chain)
        each = functional.cross_entropy(
            emissions.flatten(0, 1), batch["slots"].flatten(), reduction="none"
        )
        return (each.view_as(batch["slots"]) * batch["mask"]).sum(1)


def crf_losses(
    emissions: Tensor, batch: Batch, moves: Tensor, start: Tensor, end: Tensor
) -> Tensor:
    """Negative log-likelihood by matrix products of exponentials: emissions (N, T, K) → (N,).

    Log-sum-exp over (N, K, K) would be many times slower.
    """
    tags, mask, last = batch["slots"], batch["mask"], batch["lengths"] - 1
    highest = moves.detach().max()
    factors = (moves - highest).exp()  # (K, K)
    alpha = start + emissions[:, 0]  # (N, K)
    for t in range(1, emissions.shape[1]):
        peak = alpha.detach().max(1, keepdim=True).values  # (N, 1)
        reached = ((alpha - peak).exp() @ factors).log() + peak + highest + emissions[:, t]
        alpha = torch.where(mask[:, t, None], reached, alpha)
    partition = (alpha + end).logsumexp(1)  # (N,)
    local = emissions.gather(2, tags[:, :, None])[:, :, 0]  # (N, T)
    steps = moves[tags[:, :-1], tags[:, 1:]] * mask[:, 1:]  # (N, T-1)
    ends = start[tags[:, 0]] + end[tags.gather(1, last[:, None])[:, 0]]  # (N,)
    return partition - ((local * mask).sum(1) + steps.sum(1) + ends)


class Side:
    """All that a variant needs: sizes, a batch, and how it clips and noises."""

    def __init__(self, settings: Dict[str, float], batch: Batch) -> None:
        self.settings, self.batch = settings, batch

    def model(self, lstm: type = nn.LSTM) -> Tagger:
        """A new one, in training mode."""
        sizes = self.settings["sizes"]
        encoder = BERT(sizes) if self.settings["family"] == "bert" else CLC(sizes, lstm)
        heads = {name: self.settings[name] for name in ("slots", "intents", "has_crf")}
        return Tagger(encoder, **heads).train()

    def losses(self, model: nn.Module) -> Tensor:
        """One an example, (N,)."""
        emissions, intent_scores = model(self.batch)
        tagger = model if isinstance(model, Tagger) else model._module
        return tagger.slot_losses(emissions, self.batch) + functional.cross_entropy(
            intent_scores, self.batch["intents"], reduction="none"
        )

    def adam(self, model: nn.Module) -> torch.optim.Optimizer:
        """The fused one: the fastest on a CPU."""
        trained = [p for p in model.parameters() if p.requires_grad]
        return torch.optim.Adam(trained, lr=self.settings["learning_rate"], fused=True)

    def privacy(self) -> Dict[str, float]:
        """What Opacus's optimizers are told."""
        names = ("noise_multiplier", "max_grad_norm")
        settings = {name: self.settings[name] for name in names}
        return {**settings, "expected_batch_size": len(self.batch["intents"])}


Variant = Tuple[nn.Module, Callable[[], None]]


def sgd(side: Side) -> Variant:
    """Adam on the plain gradient."""
    model = side.model()
    optimizer = side.adam(model)

    def step() -> None:
        optimizer.zero_grad()
        side.losses(model).mean().backward()
        optimizer.step()

    return model, step


def opacus_hooks(side: Side) -> Variant:
    """Every example's gradient is made, clipped and summed."""
    model = GradSampleModule(side.model(DPLSTM), strict=False)
    optimizer = DPOptimizer(side.adam(model), **side.privacy())

    def step() -> None:
        optimizer.zero_grad()
        side.losses(model).mean().backward()
        optimizer.step()

    return model, step


def opacus_ghost(side: Side) -> Variant:
    """Norms first (by ghost clipping where Opacus has a rule), then a second backward pass."""
    privacy = side.privacy()
    model = GradSampleModuleFastGradientClipping(
        side.model(DPLSTM), max_grad_norm=privacy["max_grad_norm"], strict=False
    )
    optimizer = DPOptimizerFastGradientClipping(side.adam(model), **privacy)

    def step() -> None:
        optimizer.zero_grad()
        DPTensorFastGradientClipping(model, optimizer, side.losses(model), "mean").backward()
        optimizer.step()

    return model, step


VARIANTS: Dict[str, Callable[[Side], Variant]] = {
    "sgd": sgd,
    "opacus_hooks": opacus_hooks,
    "opacus_ghost": opacus_ghost,
}


def main() -> None:
    """Builds what is asked for, then serves steps until its input ends."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch", required=True, help="arrays, as .npz")
    parser.add_argument("--settings", required=True, type=json.loads, help="JSON")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)  # on hooks and on insecure noise
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is no answer
    with np.load(options.batch) as arrays:
        batch = {name: torch.from_numpy(array) for name, array in arrays.items()}
    batch = {name: array if name == "mask" else array.long() for name, array in batch.items()}
    side = Side(options.settings, batch)
    variants = {name: VARIANTS[name](side) for name in options.settings["variants"]}
    trained = {
        name: sum(p.numel() for p in model.parameters() if p.requires_grad)
        for name, (model, _) in variants.items()
    }
    versions = [f"torch {torch.__version__}", f"threads {torch.get_num_threads()}"]
    print(json.dumps({"trained": trained, "versions": versions}), file=answers, flush=True)
    for line in sys.stdin:
        started = time.perf_counter()
        variants[line.strip()][1]()
        print(time.perf_counter() - started, file=answers, flush=True)


if __name__ == "__main__":
    main()
