"""The BERT of a run in Hugging Face's layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Optional

from edp_mx.config import ExperimentConfig
from edp_mx.data.origin import ORIGIN, write_origin
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.weights import weights_of
from edp_mx.errors import UserError
from edp_mx.models.bert import BERTConfig
from edp_mx.models.checkpoints.huggingface import Checkpoint, bert_tensors, write_checkpoint
from edp_mx.runs.ancestors import origin_of
from edp_mx.runs.run_directory import MODEL, RunDirectory
from edp_mx.tasks.model import TaskModel


def export(
    run: RunDirectory,
    config: ExperimentConfig,
    model: TaskModel,
    vocabulary: Vocabulary,
    out: Optional[Path] = None,
) -> Checkpoint:
    """Write a trained BERT, its heads and its ancestry.

    Args:
        out: the folder; by default `model` in that of the run.

    Raises:
        UserError: the model is no BERT, or one that the layout has no place for.
    """
    if not isinstance(config.model, BERTConfig) or vocabulary.tokenizer is None:
        raise UserError(
            f"{run.path} trained a {config.model.family}; only a run with model.family: bert can "
            "be exported"
        )
    part = config.model.trained_part
    if not part.is_merged:
        raise UserError(
            f"{run.path} has model.trained: {part.name}, and this layout has no place for a "
            f"{part.name}"
        )
    folder = run.path / MODEL if out is None else out
    heads = {name: values.data().asnumpy() for name, values in model.tensors().items()}
    tensors = {**bert_tensors(model.encoder.bert), **heads}
    checkpoint = Checkpoint(config.model, vocabulary.tokenizer, tensors)
    more: Dict[str, Any] = {}
    if not heads:  # the layout has no place for them
        others = [weights_of(head) for head in model.heads.values()]
        more["more_tensors"] = {name: values for each in others for name, values in each.items()}
        labels = {"intents": list(vocabulary.intents), "slots": list(vocabulary.slots)}
        more["more_settings"] = labels
    write_origin(folder / ORIGIN, origin_of(run.path))  # first: no weights without it
    write_checkpoint(
        folder, config=checkpoint.config, tokenizer=checkpoint.tokenizer, tensors=tensors, **more
    )
    return checkpoint
