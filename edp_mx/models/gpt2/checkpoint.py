"""Checkpoints of a GPT-2 in Hugging Face's layout: GPT-2's own, DistilGPT-2 and DialoGPT."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any, Dict, Mapping

import mxnet as mx
import numpy as np

from edp_mx.data.tokenizer import Tokenizer, load_tokenizer, read_object
from edp_mx.dp.weights import weights_of
from edp_mx.errors import UserError
from edp_mx.models.checkpoints.files import (
    CONFIG,
    check_folder,
    check_tensors,
    open_tensors,
    write_files,
)
from edp_mx.models.checkpoints.huggingface import Checkpoint
from edp_mx.models.gpt2.config import GPT2Config
from edp_mx.models.gpt2.decoder import GPT2
from edp_mx.models.gpt2.names import PIECES, parameters_of, rows_of, shapes_of, tensor_of
from edp_mx.runtime.files import PathLike
from edp_mx.runtime.json_text import read_json
from edp_mx.runtime.structured import structure

logger = logging.getLogger(__name__)

_KEYS = {
    "num_layers": "n_layer",
    "num_heads": "n_head",
    "hidden_size": "n_embd",
    "intermediate_size": "n_inner",
    "max_positions": "n_positions",
    "layer_norm_epsilon": "layer_norm_epsilon",
    "dropout": "resid_pdrop",
}
SIZES = tuple(key for key in _KEYS if key != "dropout")  # a start fixes them
# With any other value it is a different model from ours. A key that is left out has this one.
_MUST_BE: Dict[str, Any] = {
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
_WIDER = 4  # times the hidden size, where n_inner is left out or null
_PREFIX, _OUTPUT = "transformer.", "lm_head.weight"
_BUFFERS = re.compile(r"h\.\d+\.attn\.(masked_)?bias$")  # of old versions: the causal mask


def read_config(path: Path) -> GPT2Config:
    """Read the sizes of a checkpoint; what is left out is the smallest GPT-2's, as in theirs.

    Edge cases: the dropout of the layers' outputs is used for embeddings and attention too.

    Raises:
        UserError: it is no GPT-2, or one that computes something else than ours.
    """
    settings = read_object(path)
    for key, wanted in _MUST_BE.items():
        if settings.get(key, wanted) != wanted:
            raise UserError(
                f"{path}: {key} is {settings[key]!r}, but a gpt2 can be read only with {wanted!r}"
            )
    ours = {key: settings[theirs] for key, theirs in _KEYS.items() if theirs in settings}
    hidden = ours.get("hidden_size", GPT2Config.hidden_size)
    if ours.get("intermediate_size") is None and isinstance(hidden, int):
        ours["intermediate_size"] = _WIDER * hidden
    try:
        return structure(ours, GPT2Config)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def read_checkpoint(folder: PathLike) -> Checkpoint:
    """Read and check the settings, the tokenizer and the tensors of a folder.

    Edge cases: vectors beyond the last piece are cut off. Buffers and other heads are skipped.

    Raises:
        UserError: a file is missing, damaged or of another model, or the output layer is not tied.
    """
    folder = Path(folder)
    check_folder(folder, "a tokenizer and weights")
    config, tokenizer = read_config(folder / CONFIG), load_tokenizer(folder)
    num_vectors = read_json(folder / CONFIG).get("vocab_size") or len(tokenizer)
    shapes = shapes_of(GPT2(config, num_pieces=num_vectors, prefix=""))
    tensors = _read_tensors(folder, shapes, len(tokenizer))
    return Checkpoint(config, tokenizer, tensors, str(folder))


def _read_tensors(folder: Path, shapes: Dict[str, Any], num_pieces: int) -> Dict[str, np.ndarray]:
    """Read and check the tensors of a GPT-2."""
    found = {
        name[len(_PREFIX) :] if name.startswith(_PREFIX) else name: read
        for name, read in open_tensors(folder).items()
    }
    tensors = {name: found[name]() for name in shapes if name in found}
    check_tensors(str(folder), tensors, shapes)
    if _OUTPUT in found and not np.array_equal(found[_OUTPUT](), tensors[PIECES]):
        raise UserError(
            f"{folder}: {_OUTPUT} is not {PIECES}, but the output layer of a gpt2 is its pieces' "
            "vectors"
        )
    strange = sorted(n for n in found if n not in (*shapes, _OUTPUT) and not _BUFFERS.match(n))
    if strange:
        logger.info("%s: ignored tensors: %s", folder, ", ".join(strange))
    tensors[PIECES] = tensors[PIECES][:num_pieces].copy()
    return tensors


def load_gpt2(decoder: GPT2, checkpoint: Checkpoint) -> None:
    """Set every parameter of an initialised GPT-2, frozen ones too."""
    check_tensors(checkpoint.folder, checkpoint.tensors, shapes_of(decoder))
    for name, parameters in parameters_of(decoder).items():
        rows = rows_of(name, checkpoint.tensors[name], parameters)
        for parameter, values in zip(parameters, rows):
            parameter.set_data(mx.nd.array(values, dtype="float32"))


def checkpoint_of(decoder: GPT2, tokenizer: Tokenizer) -> Checkpoint:
    """Return copies of all parameters, as `load_gpt2` takes them; adapters are merged."""
    config = decoder.config
    plain = config.trained_part.plain(weights_of(decoder), config)
    tensors = {
        name: tensor_of(name, [plain[each.name] for each in parameters])
        for name, parameters in parameters_of(decoder).items()
    }
    return Checkpoint(config, tokenizer, tensors)


def write_checkpoint(
    folder: PathLike,
    *,
    config: GPT2Config,
    tokenizer: Tokenizer,
    tensors: Mapping[str, np.ndarray],
) -> None:
    """Write what `transformers` and `read_checkpoint` read; see `huggingface.write_checkpoint`."""
    folder = Path(folder)
    shapes = shapes_of(GPT2(config, num_pieces=len(tokenizer), prefix=""))
    check_tensors(f"cannot write {folder}: the model", tensors, shapes)
    write_files(
        folder,
        tensors={f"{_PREFIX}{name}": values for name, values in tensors.items()},
        settings=_config_json(config, tokenizer),
        tokenizer=tokenizer,
        max_positions=config.max_positions,
    )


def _config_json(config: GPT2Config, tokenizer: Tokenizer) -> Dict[str, Any]:
    """Return the settings from which `transformers` builds the same GPT-2."""
    ids = tokenizer.special_ids
    return {
        "architectures": ["GPT2LMHeadModel"],
        **_MUST_BE,
        **{theirs: getattr(config, ours) for ours, theirs in _KEYS.items()},
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
        "vocab_size": len(tokenizer),
        "bos_token_id": ids.cls,
        "eos_token_id": ids.sep,
        "pad_token_id": ids.pad,
        "torch_dtype": "float32",
    }
