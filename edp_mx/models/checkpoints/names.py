"""Hugging Face's names for the tensors of a BERT, and which of our parameters each one is."""

from __future__ import annotations

from typing import Dict, Iterator, Tuple

from mxnet import gluon

from edp_mx.models.bert import BERT, NUM_TOKEN_TYPES, BERTConfig
from edp_mx.models.checkpoints.layouts import PIECE_BIAS, POSITIONS, TOKEN_TYPES

# Their name, our path below BERT.model (or below a layer), and the shape in the letters Hidden,
# Intermediate, Vocabulary, Positions, Types.
Row = Tuple[str, str, str]
_EMBEDDINGS: Tuple[Row, ...] = (
    ("embeddings.word_embeddings.weight", "word_embed.0.weight", "VH"),
    (POSITIONS, "encoder.position_weight", "PH"),
    (TOKEN_TYPES, "token_type_embed.0.weight", "TH"),
    ("embeddings.LayerNorm.weight", "encoder.layer_norm.gamma", "H"),
    ("embeddings.LayerNorm.bias", "encoder.layer_norm.beta", "H"),
)
_LAYER: Tuple[Row, ...] = (
    ("attention.self.query.weight", "attention_cell.query_weight", "HH"),
    ("attention.self.query.bias", "attention_cell.query_bias", "H"),
    ("attention.self.key.weight", "attention_cell.key_weight", "HH"),
    ("attention.self.key.bias", "attention_cell.key_bias", "H"),
    ("attention.self.value.weight", "attention_cell.value_weight", "HH"),
    ("attention.self.value.bias", "attention_cell.value_bias", "H"),
    ("attention.output.dense.weight", "proj.weight", "HH"),
    ("attention.output.dense.bias", "proj.bias", "H"),
    ("attention.output.LayerNorm.weight", "layer_norm.gamma", "H"),
    ("attention.output.LayerNorm.bias", "layer_norm.beta", "H"),
    ("intermediate.dense.weight", "ffn.ffn_1.weight", "IH"),
    ("intermediate.dense.bias", "ffn.ffn_1.bias", "I"),
    ("output.dense.weight", "ffn.ffn_2.weight", "HI"),
    ("output.dense.bias", "ffn.ffn_2.bias", "H"),
    ("output.LayerNorm.weight", "ffn.layer_norm.gamma", "H"),
    ("output.LayerNorm.bias", "ffn.layer_norm.beta", "H"),
)
_POOLER: Tuple[Row, ...] = (
    ("pooler.dense.weight", "pooler.weight", "HH"),
    ("pooler.dense.bias", "pooler.bias", "H"),
)
PIECES = _EMBEDDINGS[0][0]
POOLER = frozenset(name for name, _, _ in _POOLER)
MASKED_LM: Dict[str, str] = {
    "cls.predictions.transform.dense.weight": "HH",
    "cls.predictions.transform.dense.bias": "H",
    "cls.predictions.transform.LayerNorm.weight": "H",
    "cls.predictions.transform.LayerNorm.bias": "H",
    PIECE_BIAS: "V",
}
BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")  # without weights


def is_of_bert(name: str) -> bool:
    """Whether a canonical name belongs to the encoder rather than to a head on top of it."""
    return name.startswith(("embeddings.", "encoder.", "pooler."))


def shapes_of(config: BERTConfig, *, num_pieces: int) -> Dict[str, Tuple[int, ...]]:
    """Return the shapes of all tensors by canonical name, including the masked-LM head's."""
    sizes = {
        "H": config.hidden_size,
        "I": config.intermediate_size,
        "V": num_pieces,
        "P": config.max_positions,
        "T": NUM_TOKEN_TYPES,
    }
    letters = {theirs: letters for theirs, _, letters in _rows(config.num_layers)}
    letters.update(MASKED_LM)
    return {name: tuple(sizes[letter] for letter in word) for name, word in letters.items()}


def parameters_of(bert: BERT) -> Dict[str, gluon.Parameter]:
    """Return a BERT's parameters by canonical name; one that reads [MASK] has its head's."""
    rows = [*_rows(len(bert.model.encoder.transformer_cells))]
    own = {
        n: _follow(bert.model, ours) for n, ours, _ in rows if bert.has_pooler or n not in POOLER
    }
    return own if bert.mask_state is None else {**own, **bert.mask_state.tensors()}


def _rows(num_layers: int) -> Iterator[Row]:
    yield from _EMBEDDINGS
    for i in range(num_layers):
        for theirs, ours, letters in _LAYER:
            layer = f"encoder.transformer_cells.{i}"
            yield f"encoder.layer.{i}.{theirs}", f"{layer}.{ours}", letters
    yield from _POOLER


def _follow(block: gluon.Block, path: str) -> gluon.Parameter:
    for part in path.split("."):
        block = block[int(part)] if part.isdigit() else getattr(block, part)
    return block
