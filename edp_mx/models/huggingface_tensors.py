"""Which of a folder's tensors are a BERT's, and whether they are whole."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Collection, Dict, Mapping, Tuple

import numpy as np

from edp_mx.errors import UserError
from edp_mx.models.huggingface_names import (
    MASKED_LM,
    PIECES,
    POOLER,
    TIED_BIAS,
    TIED_WEIGHT,
    canonical_name,
    is_of_bert,
)
from edp_mx.models.tensor_files import Tensor, open_tensors

logger = logging.getLogger(__name__)

Shapes = Mapping[str, Tuple[int, ...]]

_OPTIONAL = {*MASKED_LM, *POOLER}


def read_tensors(folder: Path, shapes: Shapes) -> Dict[str, np.ndarray]:
    """What ours has a place for, checked; logs what is left aside.

    Args:
        shapes: by canonical name; pooler and masked-LM head may be missing.

    Raises:
        UserError: a file is torn; a tensor is missing, of another shape, not finite, or one that
            config.json does not know of.
    """
    found = _by_canonical_name(folder, open_tensors(folder))
    bias = found.pop(TIED_BIAS, None)
    if bias is not None:
        found.setdefault("cls.predictions.bias", bias)
    decoder = found.pop(TIED_WEIGHT, None)
    strange = sorted(set(found) - set(shapes))
    tensors = {name: found[name]() for name in shapes if name in found}
    is_tied = decoder is None or np.array_equal(decoder(), tensors.get(PIECES, np.empty(0)))
    _leave_aside(folder, tensors, "pooler", POOLER)
    _leave_aside(folder, tensors, "masked-LM head", MASKED_LM, is_sound=is_tied)
    check_tensors(str(folder), tensors, shapes)
    for name in strange:
        if is_of_bert(name):
            raise UserError(f"{folder}: config.json describes a BERT that has no tensor {name}")
    if strange:
        logger.info("%s: heads without a place here: %s", folder, ", ".join(strange))
    return tensors


def _by_canonical_name(folder: Path, tensors: Dict[str, Tensor]) -> Dict[str, Tensor]:
    """Those that hold weights; no two may have the same name."""
    named: Dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        canonical = canonical_name(name)
        if canonical in named:
            raise UserError(f"{folder} holds {canonical} twice, under an old and a new name")
        if canonical is not None:
            named[canonical] = tensor
    return named


def _leave_aside(
    folder: Path,
    tensors: Dict[str, np.ndarray],
    part: str,
    names: Collection[str],
    is_sound: bool = True,
) -> None:
    """Removes a part that cannot be used."""
    there = [name for name in names if name in tensors]
    if there and not (is_sound and len(there) == len(names)):
        fault = "incomplete" if is_sound else f"not tied to the pieces ({TIED_WEIGHT})"
        logger.warning("%s: its %s is %s and is left aside", folder, part, fault)
        for name in there:
            del tensors[name]


def check_tensors(source: str, tensors: Mapping[str, np.ndarray], shapes: Shapes) -> None:
    """Every tensor there, of the right shape, and finite.

    Args:
        source: what the sentence calls them.
        shapes: by canonical name; pooler and masked-LM head may be missing.

    Raises:
        UserError: one is not.
    """
    for name, shape in shapes.items():
        if name not in tensors:
            if name in _OPTIONAL:
                continue
            raise UserError(f"{source} lacks the tensor {name}")
        if tensors[name].shape != shape:
            raise UserError(
                f"{source}: {name} has shape {tensors[name].shape}, but by its sizes it must "
                f"have {shape}"
            )
        if not np.isfinite(tensors[name]).all():
            raise UserError(f"{source}: {name} holds a value that is not finite")
