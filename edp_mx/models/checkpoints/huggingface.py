"""Reading and writing whole checkpoints, and copying their tensors into our BERT and out of it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

import mxnet as mx
import numpy as np

from edp_mx.data.tokenizer import SETTINGS, TOKENIZER, VOCABULARY, Tokenizer, load_tokenizer
from edp_mx.dp.weights import weights_of
from edp_mx.errors import UserError
from edp_mx.models.bert import BERT, BERTConfig
from edp_mx.models.checkpoints.config import config_json, read_config
from edp_mx.models.checkpoints.files import (
    CONFIG,
    WHOLE,
    check_folder,
    check_tensors,
    read_tensors,
    write_files,
)
from edp_mx.models.checkpoints.layouts import PIECE_BIAS
from edp_mx.models.checkpoints.names import (
    MASKED_LM,
    PIECES,
    POOLER,
    is_of_bert,
    parameters_of,
    shapes_of,
)
from edp_mx.runtime.files import PathLike

logger = logging.getLogger(__name__)

FILES = (CONFIG, VOCABULARY, SETTINGS, TOKENIZER, WHOLE)  # all that `write_checkpoint` writes


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A pre-trained GPT-2 or BERT; a RoBERTa or DistilBERT is the BERT that computes the same.

    Attributes:
        tensors: float32, by Hugging Face's present names without "bert." or "transformer.". The
            pooler and the masked-LM head of a BERT are optional. What shares the pieces' vectors,
            the head's decoder or a GPT-2's output layer, is not stored.
        folder: where it was read, for messages.
    """

    config: Any
    tokenizer: Tokenizer
    tensors: Dict[str, np.ndarray]
    folder: str = "the checkpoint"

    @property
    def has_pooler(self) -> bool:
        return set(self.tensors) >= POOLER

    @property
    def has_masked_lm(self) -> bool:
        return set(MASKED_LM) <= set(self.tensors)

    @property
    def num_parameters(self) -> int:
        return sum(values.size for values in self.tensors.values())


def read_checkpoint(folder: PathLike) -> Checkpoint:
    """Read and check the settings, the tokenizer and the tensors of a folder.

    Edge cases: vectors beyond the last piece are cut off (some models are padded
    to a round number of pieces). Buffers are skipped. Heads that have no counterpart here, and a
    masked-LM head that is incomplete or has an untied decoder, are skipped and logged.
    """
    folder = Path(folder)
    check_folder(folder, f"{VOCABULARY} and {WHOLE}")
    config, num_vectors, layout = read_config(folder / CONFIG)
    tokenizer = load_tokenizer(folder)
    num_pieces = len(tokenizer)
    tensors = read_tensors(folder, shapes_of(config, num_pieces=num_vectors), layout)
    if num_pieces < num_vectors:
        logger.info(
            "%s: %d vectors beyond the last piece are cut off", folder, num_vectors - num_pieces
        )
        for name in {PIECES, PIECE_BIAS} & set(tensors):
            tensors[name] = tensors[name][:num_pieces].copy()
    return Checkpoint(config, tokenizer, tensors, str(folder))


def load_bert(bert: BERT, checkpoint: Checkpoint) -> None:
    """Set every parameter of an initialised BERT, frozen ones too.

    Raises:
        UserError: it lacks a tensor: the masked-LM head, for a BERT that reads [MASK].

    Edge cases: with a checkpoint that has no pooler the drawn one stays, with a warning.
    """
    if bert.mask_state is not None and not checkpoint.has_masked_lm:
        raise UserError(
            f"model.intents: infilling needs a masked-LM head, and {checkpoint.folder} has none "
            "that is whole; start from the model that pre-training wrote, in RUN/model"
        )
    parameters = parameters_of(bert)
    if bert.has_pooler and not checkpoint.has_pooler:
        logger.warning("%s has no pooler: the pooler starts from random values", checkpoint.folder)
        for name in POOLER:
            del parameters[name]
    shapes = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    check_tensors(checkpoint.folder, checkpoint.tensors, shapes)
    for name, parameter in parameters.items():
        parameter.set_data(mx.nd.array(checkpoint.tensors[name], dtype="float32"))


def bert_tensors(bert: BERT) -> Dict[str, np.ndarray]:
    """Return copies of all parameters by Hugging Face's names, as `load_bert` takes them.

    Edge cases: adapters are merged into the weights.
    """
    plain = bert.config.trained_part.plain(weights_of(bert), bert.config)
    return {name: plain[values.name].copy() for name, values in parameters_of(bert).items()}


def write_checkpoint(
    folder: PathLike,
    *,
    config: BERTConfig,
    tokenizer: Tokenizer,
    tensors: Mapping[str, np.ndarray],
    more_tensors: Optional[Mapping[str, np.ndarray]] = None,
    more_settings: Optional[Mapping[str, Any]] = None,
) -> None:
    """Write what `transformers` and `read_checkpoint` read, each file whole or not at all.

    The folder is created if needed; other files in it are left alone. `more_tensors` are other
    heads, under their own names, and `more_settings` keys to add to config.json.
    """
    folder = Path(folder)
    shapes = shapes_of(config, num_pieces=len(tokenizer))
    check_tensors(f"cannot write {folder}: the model", tensors, shapes)
    for name in tensors:
        if name not in shapes:
            raise UserError(f"a checkpoint has no place for the tensor {name}")
    named = {f"bert.{name}" if is_of_bert(name) else name: tensors[name] for name in tensors}
    named.update(more_tensors or {})
    settings = config_json(config, tokenizer, has_masked_lm=set(MASKED_LM) <= set(tensors))
    write_files(
        folder,
        tensors=named,
        settings={**settings, **(more_settings or {})},
        tokenizer=tokenizer,
        max_positions=config.max_positions,
    )
