"""The vocabulary and the model of a pre-training run, and how they are written down."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Dict

import mxnet as mx
from mxnet import gluon

from edp_mx.data.text import Text
from edp_mx.data.tokenizer import SETTINGS, Tokenizer, load_tokenizer
from edp_mx.models.bert import BERTConfig, initial_bert_values
from edp_mx.models.checkpoints.huggingface import (
    bert_tensors,
    load_bert,
    read_checkpoint,
    require_sizes,
    write_checkpoint,
)
from edp_mx.models.checkpoints.names import PIECE_BIAS
from edp_mx.models.initialization import initialize
from edp_mx.models.pretraining import MaskedLanguageModel
from edp_mx.models.quick import quicken
from edp_mx.runs.build import read_or_learn_pieces
from edp_mx.runs.pretraining.config import PretrainingConfig

logger = logging.getLogger(__name__)


def settle_vocabulary(config: PretrainingConfig, folder: Path) -> Tokenizer:
    """Return the word pieces: those in `folder`, else the checkpoint's, a file's, or learned ones.

    They are kept in `folder`, so that a resumed run has the same.
    """
    if (folder / SETTINGS).exists():
        return load_tokenizer(folder)
    if config.model.checkpoint is not None:
        tokenizer = read_checkpoint(config.model.checkpoint).tokenizer
    else:
        tokenizer = read_or_learn_pieces(
            lines=lambda: Text.open(config.text).lines(), **vars(config.vocabulary)
        )
    tokenizer.save(folder, max_positions=config.model.max_positions)
    return tokenizer


def build_model(
    config: PretrainingConfig, *, num_pieces: int, context: mx.Context
) -> MaskedLanguageModel:
    """Build a model with drawn weights, hybridized, with the same names in every process."""
    model = MaskedLanguageModel(config.model, num_pieces=num_pieces)
    initialize(model, seed=config.pretraining.seed, context=context, rule=initial_bert_values)
    quicken(model, context)
    model.hybridize(static_alloc=True)
    return model


def load_checkpoint(model: MaskedLanguageModel, config: BERTConfig) -> None:
    """Load the weights of `model.checkpoint`; a head that it lacks stays as drawn."""
    checkpoint = read_checkpoint(str(config.checkpoint))
    require_sizes(config, checkpoint)
    load_bert(model.bert, checkpoint)
    for name, parameter in _head_parameters(model).items():
        if checkpoint.has_masked_lm:
            parameter.set_data(mx.nd.array(checkpoint.tensors[name], dtype="float32"))
    if not checkpoint.has_masked_lm:
        logger.warning("%s has no masked-LM head: it starts from drawn values", config.checkpoint)


def write_model(
    model: MaskedLanguageModel, config: BERTConfig, tokenizer: Tokenizer, folder: Path
) -> None:
    """Write BERT and head in Hugging Face's layout."""
    tensors = bert_tensors(model.bert)
    for name, parameter in _head_parameters(model).items():
        tensors[name] = parameter.data().asnumpy()
    sizes = replace(config, checkpoint=None)
    write_checkpoint(folder, config=sizes, tokenizer=tokenizer, tensors=tensors)


def _head_parameters(model: MaskedLanguageModel) -> Dict[str, gluon.Parameter]:
    """The head's parameters by the names that Hugging Face's BertForMaskedLM has for them."""
    return {**model.head.tensors(), PIECE_BIAS: model.head.bias}
