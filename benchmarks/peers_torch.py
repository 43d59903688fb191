"""The PyTorch side of `peers.py`: the same models plain, with Opacus' hooks and its ghost mode.

An example is one row of every tensor, as Opacus wants it: the convolution over characters is a
Conv2d with a window of 1 × 3 over (tokens, characters), which is the same as our Conv1d.
"""

import json
import sys
import time
import warnings
from typing import Any, Callable, Dict, Tuple

import numpy as np
import torch
from jobs import serve
from opacus import GradSampleModule
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from opacus.layers import DPLSTM
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel
from transformers.pytorch_utils import Conv1D

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
            token_type_ids=torch.zeros_like(pieces),  # Opacus wants one row per example
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
        characters = batch["characters"]  # (N, T, C)
        mask = (characters > 0)[..., None]  # (N, T, C, 1)
        vectors = (self.characters(characters) * mask).permute(0, 3, 1, 2)  # (N, D, T, C)
        vectors = vectors.contiguous()  # else Opacus 1.6 makes a wrong gradient, without a word
        features = functional.relu(self.convolution(vectors))  # (N, F, T, C)
        spelled = (features * mask[:, None, :, :, 0]).max(3).values.transpose(1, 2)  # (N, T, F)
        tokens = self.dropout(torch.cat([self.words(batch["words"]), spelled], 2))  # (N, T, E+F)
        states = self.dropout(self.lstm(tokens)[0])  # (N, T, 2H); no utterance is padded
        return states, states.max(1).values


class Tagger(nn.Module):
    """An encoder with its two heads."""

    def __init__(self, settings: Dict[str, Any], lstm: type) -> None:
        super().__init__()
        sizes = settings["sizes"]
        self.encoder = BERT(sizes) if settings["family"] == "bert" else CLC(sizes, lstm)
        self.intent = nn.Linear(self.encoder.output_size, settings["intents"])
        self.slot = nn.Linear(self.encoder.output_size, settings["slots"])

    def forward(self, batch: Batch) -> Tensor:
        """Return the loss of each example, (N,)."""
        states, pooled = self.encoder(batch)  # (N, T, H), (N, H)
        scores = self.slot(states).transpose(1, 2)  # (N, K, T)
        tokens = functional.cross_entropy(scores, batch["slots"], reduction="none")  # (N, T)
        intents = self.intent(pooled)  # (N, I)
        losses = functional.cross_entropy(intents, batch["intents"], reduction="none")  # (N,)
        return tokens.sum(1) + losses


class LanguageModel(nn.Module):
    """A GPT-2 whose output layer has a table of its own where Opacus clips: it knows none that is
    shared, nor the transposed layers of transformers, which become linear ones."""

    def __init__(self, settings: Dict[str, Any], *, is_tied: bool) -> None:
        super().__init__()
        sizes = settings["sizes"]
        config = GPT2Config(
            vocab_size=sizes["pieces"],
            n_positions=sizes["max_positions"],
            n_embd=sizes["hidden_size"],
            n_layer=sizes["num_layers"],
            n_head=sizes["num_heads"],
            n_inner=sizes["intermediate_size"],
            tie_word_embeddings=is_tied,
            **dict.fromkeys(("bos_token_id", "eos_token_id")),
            **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), sizes["dropout"]),
        )
        self.gpt2 = GPT2LMHeadModel(config)
        for block in self.gpt2.transformer.h:
            for part in (block.attn, block.mlp):
                for name, layer in part.named_children():
                    if isinstance(layer, Conv1D):
                        setattr(part, name, nn.Linear(*layer.weight.shape))

    def forward(self, batch: Batch) -> Tensor:
        """Return the loss of each text, the sum over its pieces but the first, (N,)."""
        pieces = batch["pieces"]  # (N, P)
        read = pieces[:, :-1].contiguous()
        places = torch.arange(read.shape[1]).repeat(len(read), 1)
        scores = self.gpt2(input_ids=read, position_ids=places).logits
        losses = functional.cross_entropy(
            scores.transpose(1, 2), pieces[:, 1:], reduction="none"
        )  # (N, P - 1)
        return losses.sum(1)


def build(name: str, settings: Dict[str, Any], batch: Batch) -> Tuple[nn.Module, Callable]:
    """Return a variant's model and its step.

    `opacus_hooks` makes every example's gradient, `opacus_ghost` their norms, then a second pass.
    """
    privacy = {key: settings[key] for key in ("noise_multiplier", "max_grad_norm")}
    privacy["expected_batch_size"] = len(batch["intents"])
    model: nn.Module
    if settings["family"] == "gpt2":
        model = LanguageModel(settings, is_tied=name == "sgd")
    else:
        model = Tagger(settings, nn.LSTM if name == "sgd" else DPLSTM)
    if name == "opacus_ghost":
        norm = privacy["max_grad_norm"]
        model = GradSampleModuleFastGradientClipping(model, max_grad_norm=norm, strict=False)
    elif name == "opacus_hooks":
        model = GradSampleModule(model, strict=False)
    # The fused Adam is the fastest on a CPU.
    optimizer = torch.optim.Adam(model.parameters(), lr=settings["learning_rate"], fused=True)
    if name == "opacus_ghost":
        optimizer = DPOptimizerFastGradientClipping(optimizer, **privacy)
    elif name == "opacus_hooks":
        optimizer = DPOptimizer(optimizer, **privacy)

    def step() -> None:
        optimizer.zero_grad()
        losses = model(batch)
        if name == "opacus_ghost":
            DPTensorFastGradientClipping(model, optimizer, losses, "mean").backward()
        else:
            losses.mean().backward()
        optimizer.step()

    return model.train(), step


def main(arrays_path: str, settings: str, address: str) -> None:
    """Build what is asked for, then take steps as told."""
    warnings.filterwarnings("ignore", category=UserWarning)  # on hooks and on insecure noise
    with np.load(arrays_path) as arrays:
        batch = {name: torch.from_numpy(array).long() for name, array in arrays.items()}
    given = json.loads(settings)
    variants = {name: build(name, given, batch) for name in given["variants"]}
    trained = {
        name: sum(parameter.numel() for parameter in model.parameters())
        for name, (model, _) in variants.items()
    }
    if given["family"] == "gpt2":  # the second table is not counted
        table = given["sizes"]["pieces"] * given["sizes"]["hidden_size"]
        trained.update({name: count - table for name, count in trained.items() if name != "sgd"})
    versions = [f"torch {torch.__version__}", f"threads {torch.get_num_threads()}"]

    def work(order: str) -> object:
        if order not in variants:
            return {"trained": trained, "versions": versions}
        started = time.perf_counter()
        variants[order][1]()
        return time.perf_counter() - started

    serve(address, work)


if __name__ == "__main__":
    main(*sys.argv[1:])
