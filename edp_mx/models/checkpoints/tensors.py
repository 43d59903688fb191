"""The tensors of a folder that belong to a BERT, checked."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Collection, Dict, Mapping, Tuple

import numpy as np

from edp_mx.errors import UserError
from edp_mx.models.checkpoints.files import Tensor, open_tensors
from edp_mx.models.checkpoints.names import (
    MASKED_LM,
    PIECES,
    POOLER,
    TIED_BIAS,
    TIED_WEIGHT,
    canonical_name,
    is_of_bert,
)

logger = logging.getLogger(__name__)

Shapes = Mapping[str, Tuple[int, ...]]

_OPTIONAL = {*MASKED_LM, *POOLER}


def read_tensors(folder: Path, shapes: Shapes) -> Dict[str, np.ndarray]:
    """Read and check the tensors that our BERT has a place for; log what is skipped.

    Args:
        shapes: by canonical name; the pooler and the masked-LM head may be missing.
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
        logger.info("%s: heads unknown here are skipped: %s", folder, ", ".join(strange))
    return tensors


def _by_canonical_name(folder: Path, tensors: Dict[str, Tensor]) -> Dict[str, Tensor]:
    """Return the tensors that hold weights; no two may have the same canonical name."""
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
    there = [name for name in names if name in tensors]
    if there and not (is_sound and len(there) == len(names)):
        fault = "incomplete" if is_sound else f"not tied to the pieces' vectors ({TIED_WEIGHT})"
        logger.warning("%s: its %s is %s and is skipped", folder, part, fault)
        for name in there:
            del tensors[name]


def check_tensors(source: str, tensors: Mapping[str, np.ndarray], shapes: Shapes) -> None:
    """Check that every tensor is there, has the right shape and is finite.

    Args:
        source: what the error calls the tensors.
        shapes: by canonical name; the pooler and the masked-LM head may be missing.
    """
    for name, shape in shapes.items():
        if name not in tensors:
            if name in _OPTIONAL:
                continue
            raise UserError(f"{source} lacks the tensor {name}")
        if tensors[name].shape != shape:
            raise UserError(
                f"{source}: {name} has shape {tensors[name].shape}, but the sizes in its "
                f"settings make it {shape}"
            )
        if not np.isfinite(tensors[name]).all():
            raise UserError(f"{source}: {name} holds a value that is not finite")
