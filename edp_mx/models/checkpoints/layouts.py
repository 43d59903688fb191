"""Encoders of Hugging Face's that are a BERT under other names: RoBERTa and DistilBERT."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Mapping, Tuple

import numpy as np

from edp_mx.errors import UserError
from edp_mx.models.bert import NUM_TOKEN_TYPES
from edp_mx.models.infilling import PIECE_BIAS

POSITIONS = "embeddings.position_embeddings.weight"
TOKEN_TYPES = "embeddings.token_type_embeddings.weight"
# Further copies of the pieces' vectors and of the pieces' bias, to which the decoder is tied.
TIED_WEIGHT, TIED_BIAS = "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"
_OLD_NAMES = {r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"}


@dataclass(frozen=True)
class Layout:
    """What tells an encoder of some `model_type` from a BERT; names are regular expressions.

    Attributes:
        prefix: of the encoder's tensors below a head.
        names: parts of its tensors' names → BERT's.
        settings: BERT's keys of `config.json` → its own.
        must_be: settings without which it is no BERT, by BERT's keys.
        num_token_types: how many vectors of token types it has; 0 is none.
        first_position: which row of the positions' vectors the first piece has; the rows before it
            are not used.
    """

    prefix: str
    names: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    must_be: Mapping[str, Any] = field(default_factory=dict)
    num_token_types: int = NUM_TOKEN_TYPES
    first_position: int = 0

    def key(self, name: str) -> str:
        """Return its own key of config.json for BERT's."""
        return self.settings.get(name, name)

    def name(self, name: str) -> str:
        """Return BERT's present name of a tensor, without "bert.".

        Example:
            >>> LAYOUTS["bert"].name("bert.embeddings.LayerNorm.gamma")
            'embeddings.LayerNorm.weight'
            >>> LAYOUTS["distilbert"].name("distilbert.transformer.layer.3.ffn.lin1.bias")
            'encoder.layer.3.intermediate.dense.bias'
        """
        name = name[len(self.prefix) :] if name.startswith(self.prefix) else name
        for pattern, new in {**_OLD_NAMES, **self.names}.items():
            name = re.sub(pattern, new, name)
        return name

    def shapes(self, ours: Mapping[str, Tuple[int, ...]]) -> Dict[str, Tuple[int, ...]]:
        """Return the shapes of its tensors from those that a BERT of these sizes has."""
        theirs = dict(ours)
        positions, hidden = ours[POSITIONS]
        theirs[POSITIONS] = (positions + self.first_position, hidden)
        theirs[TOKEN_TYPES] = (self.num_token_types, hidden)
        if not self.num_token_types:
            del theirs[TOKEN_TYPES]
        return theirs

    def as_bert(self, tensors: Dict[str, np.ndarray]) -> Dict[str, np.ndarray]:
        """Return the tensors of the BERT that computes the same for a single segment."""
        positions = tensors[POSITIONS][self.first_position :].copy()  # (P, H)
        kinds = tensors.get(TOKEN_TYPES, np.zeros((1, positions.shape[1]), np.float32))
        if len(kinds) < NUM_TOKEN_TYPES:  # the second is never read
            kinds = np.repeat(kinds, NUM_TOKEN_TYPES, axis=0)
        return {**tensors, POSITIONS: positions, TOKEN_TYPES: kinds}


_HEAD = "cls.predictions"
LAYOUTS: Mapping[str, Layout] = {
    "bert": Layout("bert.", must_be={"type_vocab_size": NUM_TOKEN_TYPES}),
    "roberta": Layout(
        "roberta.",
        names={
            r"^lm_head\.dense": f"{_HEAD}.transform.dense",
            r"^lm_head\.layer_norm": f"{_HEAD}.transform.LayerNorm",
            r"^lm_head\.decoder": f"{_HEAD}.decoder",
            r"^lm_head\.bias$": PIECE_BIAS,
        },
        must_be={
            "type_vocab_size": 1,
            "pad_token_id": 1,  # the first position is the next number
            "hidden_act": "gelu",  # which its masked-LM head has in any case
        },
        num_token_types=1,
        first_position=2,
    ),
    "distilbert": Layout(
        "distilbert.",
        names={
            r"^transformer\.layer": "encoder.layer",
            r"attention\.q_lin": "attention.self.query",
            r"attention\.k_lin": "attention.self.key",
            r"attention\.v_lin": "attention.self.value",
            r"attention\.out_lin": "attention.output.dense",
            r"sa_layer_norm": "attention.output.LayerNorm",
            r"ffn\.lin1": "intermediate.dense",
            r"ffn\.lin2": "output.dense",
            r"output_layer_norm": "output.LayerNorm",
            r"^vocab_transform": f"{_HEAD}.transform.dense",
            r"^vocab_layer_norm": f"{_HEAD}.transform.LayerNorm",
            r"^vocab_projector\.weight": TIED_WEIGHT,
            r"^vocab_projector\.bias": PIECE_BIAS,
        },
        settings={
            "num_hidden_layers": "n_layers",
            "num_attention_heads": "n_heads",
            "hidden_size": "dim",
            "intermediate_size": "hidden_dim",
            "hidden_act": "activation",
            "hidden_dropout_prob": "dropout",
        },
        num_token_types=0,
    ),
}


def layout_of(path: Path, settings: Mapping[str, Any]) -> Layout:
    """Return the layout that a `config.json` names; one that names none is BERT's."""
    kind = settings.get("model_type", "bert")
    if not isinstance(kind, str) or kind not in LAYOUTS:
        more = "; model.checkpoint takes a GPT-2's folder as it is, with model.family: gpt2"
        raise UserError(
            f"{path}: model_type is {kind!r}; only {', '.join(LAYOUTS)} can be read, of which the "
            f"last two become the BERT that computes the same{more if kind == 'gpt2' else ''}"
        )
    return LAYOUTS[kind]
