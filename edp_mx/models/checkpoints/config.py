"""Hugging Face's `config.json` of a BERT, or of an encoder that is one under other names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, NamedTuple

from edp_mx.data.tokenizer import Tokenizer, read_object
from edp_mx.errors import UserError
from edp_mx.models.bert import NUM_TOKEN_TYPES, BERTConfig
from edp_mx.models.checkpoints.layouts import Layout, layout_of

SIZES = {
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "hidden_size": "hidden_size",
    "intermediate_size": "intermediate_size",
    "max_positions": "max_position_embeddings",
}
ADOPTED = (*SIZES, "activation", "layer_norm_epsilon")  # a start fixes them; the dropout may differ
_ACTIVATIONS = {"gelu": "gelu", "gelu_python": "gelu", "relu": "relu"}  # theirs → ours; both exact
# The values that `transformers` takes for keys that config.json leaves out.
DEFAULTS = {
    "max_position_embeddings": 512,
    "type_vocab_size": NUM_TOKEN_TYPES,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.1,
}
# With any other value a "BERT" is a different model from ours.
_MUST_BE: Dict[str, Any] = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
}
_INITIAL_RANGE = 0.02


class Described(NamedTuple):
    """A `config.json`: the sizes, how many vectors of pieces there are, and the layout."""

    config: BERTConfig
    num_vectors: int
    layout: Layout


def read_config(path: Path) -> Described:
    """Read the sizes of a checkpoint.

    Edge cases: the hidden states' dropout is used for attention too.
    """
    settings = read_object(path)
    layout = layout_of(path, settings)
    settings = {**{layout.key(key): value for key, value in DEFAULTS.items()}, **settings}
    for key, wanted in {**_MUST_BE, **layout.must_be}.items():
        if settings.get(key, wanted) != wanted:
            raise UserError(
                f"{path}: {key} is {settings[key]!r}, but it can be read only with {wanted!r}"
            )
    activated = layout.key("hidden_act")
    activation = _ACTIVATIONS.get(str(settings[activated]))
    if activation is None:
        raise UserError(
            f"{path}: {activated} is {settings[activated]!r}; it must be one of "
            f"{', '.join(_ACTIVATIONS)}"
        )
    sizes: Dict[str, Any] = {
        ours: _whole_number(path, settings, layout.key(theirs)) for ours, theirs in SIZES.items()
    }
    sizes["max_positions"] -= layout.first_position
    num_pieces = _whole_number(path, settings, "vocab_size")
    try:
        config = BERTConfig(
            **sizes,
            activation=activation,
            layer_norm_epsilon=_number(path, settings, "layer_norm_eps"),
            dropout=_number(path, settings, layout.key("hidden_dropout_prob")),
        )
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    return Described(config, num_pieces, layout)


def _whole_number(path: Path, settings: Dict[str, Any], key: str) -> int:
    value = settings.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        found = "is missing" if value is None else f"is {value!r}"
        raise UserError(f"{path}: {key} {found}; it must be a whole number of at least 1")
    return value


def _number(path: Path, settings: Dict[str, Any], key: str) -> float:
    value = settings[key]
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise UserError(f"{path}: {key} is {value!r}; it must be a number")
    return float(value)


def config_json(config: BERTConfig, tokenizer: Tokenizer, *, has_masked_lm: bool) -> Dict[str, Any]:
    """Return the settings from which `transformers` builds the same BERT."""
    return {
        "architectures": ["BertForMaskedLM" if has_masked_lm else "BertModel"],
        "model_type": "bert",
        "vocab_size": len(tokenizer),
        **{theirs: getattr(config, ours) for ours, theirs in SIZES.items()},
        "type_vocab_size": NUM_TOKEN_TYPES,
        "hidden_act": config.activation,
        "layer_norm_eps": config.layer_norm_epsilon,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.dropout,
        "initializer_range": _INITIAL_RANGE,
        "position_embedding_type": "absolute",
        "pad_token_id": tokenizer.special_ids.pad,
        "torch_dtype": "float32",
    }
