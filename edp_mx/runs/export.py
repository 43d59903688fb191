"""The model of a run in Hugging Face's layout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Optional

from edp_mx.config import ExperimentConfig
from edp_mx.data.origin import ORIGIN, write_origin
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.weights import weights_of
from edp_mx.errors import UserError
from edp_mx.models.registry import FAMILIES, family_of
from edp_mx.runs.ancestors import origin_of
from edp_mx.runs.run_directory import MODEL, RunDirectory
from edp_mx.tasks.model import TaskModel


def export(
    run: RunDirectory,
    config: ExperimentConfig,
    model: TaskModel,
    vocabulary: Vocabulary,
    out: Optional[Path] = None,
) -> Any:
    """Write a trained model, its heads and its ancestry; return its checkpoint.

    Args:
        out: the folder; by default `model` in that of the run.

    Raises:
        UserError: the layout has no place for the model.
    """
    family, tokenizer = family_of(config.model), vocabulary.tokenizer
    if family.checkpoint_of is None or family.write_checkpoint is None or tokenizer is None:
        able = " or ".join(each.name for each in FAMILIES.values() if each.checkpoint_of)
        raise UserError(
            f"{run.path} trained a {config.model.family}; only a run with model.family: {able} can "
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
    checkpoint = family.checkpoint_of(model.encoder, tokenizer)
    checkpoint = replace(checkpoint, tensors={**checkpoint.tensors, **heads})
    more: Dict[str, Any] = {}
    if model.heads and not heads:  # the layout has no place for them
        others = [weights_of(head) for head in model.heads.values()]
        more["more_tensors"] = {name: values for each in others for name, values in each.items()}
        labels = {"intents": list(vocabulary.intents), "slots": list(vocabulary.slots)}
        more["more_settings"] = labels
    write_origin(folder / ORIGIN, origin_of(run.path))  # first: no weights without it
    family.write_checkpoint(
        folder,
        config=checkpoint.config,
        tokenizer=tokenizer,
        tensors=checkpoint.tensors,
        **more,
    )
    return checkpoint
