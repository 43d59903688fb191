"""Comparison of ghost clipping with the loop, before it is trusted with a network."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import mxnet as mx
import numpy as np
from mxnet import autograd
from numpy.linalg import norm

from edp_mx.dp.privacy.clipping import Losses
from edp_mx.dp.privacy.ghost.graph import unfit
from edp_mx.dp.privacy.norm_clipping import LoopClipping, NormClipping
from edp_mx.errors import UserError

TOLERANCE = 1e-3  # relative to the values that are compared
# Relative to the whole gradient: values that cancel (an attention's keys) are float32 noise.
FLOOR = 1e-7


def refuse_wrong_on(
    ghost: NormClipping,
    loss_of: Callable[[Any], mx.nd.NDArray],
    batch_of: Callable[[np.ndarray], Any],
    *,
    num_records: int,
) -> None:
    """Try ghost clipping on the first records; see `refuse_wrong`.

    Utterances are tried one by one, other units with several rows each.

    `loss_of` computes the losses (R,) of a batch that `batch_of` makes of some records (R,).
    """
    ghost = ghost.in_full()  # the rules are the same
    rows = 1 if ghost.release.clips.has_one_record else 2
    units = np.arange(num_records // rows * rows).reshape(-1, rows)  # (U, rows)
    at_once = max(1, ghost.chunk_size // rows)

    def losses_of(chosen: np.ndarray, *, has_dropout: bool = False) -> Losses:
        batch = batch_of(chosen.ravel())

        def losses() -> mx.nd.NDArray:
            with autograd.train_mode() if has_dropout else autograd.predict_mode():
                made = loss_of(batch)  # (n · rows,)
            return made.reshape((len(chosen), rows)).sum(axis=1)  # (n,)

        return losses

    chunks = [units[i : i + at_once] for i in range(0, len(units), at_once)]

    def compare(*, has_dropout: bool) -> None:
        together = [losses_of(chunk, has_dropout=has_dropout) for chunk in chunks]
        alone = [losses_of(unit[None], has_dropout=has_dropout) for unit in units]
        refuse_wrong(ghost, together=together, alone=alone)

    try:
        compare(has_dropout=False)
    except UserError as error:  # MXNet's gradient of max pooling is wrong in predict mode
        try:
            compare(has_dropout=True)  # which is right where there is none
        except UserError:
            raise error from None
    for chunk in chunks:  # a network may do otherwise while it is trained, if only with its rows
        ghost.squared_norms(losses_of(chunk, has_dropout=True))
    ghost.flat.give_to(None)


def refuse_wrong(
    ghost: NormClipping, *, together: Sequence[Losses], alone: Sequence[Losses]
) -> None:
    """Refuse a network for which ghost clipping gives other norms or sums than the loop.

    A network can be built in ways that no rule foresees (rows of several units interleaved, a value
    that reaches another unit), and a norm that is too small would silently break the guarantee. So
    each layer's norm is compared for each unit, relative to itself, and each parameter's sum.

    The losses are of units of different lengths that hold nothing private, with dropout off:
    `together` (U,) each in chunks as `ghost` takes them, `alone` (1,) each.
    """
    flat = ghost.flat
    loop = LoopClipping(flat=flat, release=ghost.release)
    squares = np.concatenate([loop.squared_norms(losses) for losses in alone])  # (U, L)
    found = np.concatenate([ghost.squared_norms(losses) for losses in together])  # (U, L)
    names = [layer.name for layer in flat.layers]
    norms, wholes = np.sqrt(squares), np.sqrt(squares.sum(axis=1, keepdims=True))  # (U, L), (U, 1)
    room = TOLERANCE * norms + FLOOR * wholes  # (U, L)
    difference = np.abs(np.sqrt(found.clip(min=0)) - norms) / np.maximum(room, _TINY)  # (U, L)
    _refuse("norms", dict(zip(names, difference.max(axis=0))))

    values, factor = loop.clip(alone).take()
    expected = factor * values.astype(np.float64)  # (P,)
    values, factor = ghost.clip(together).take()
    distances = flat.views(values * factor - expected)
    ghost.take_statistics()
    flat.give_to(None)  # what was clipped here must not train
    whole = np.sqrt(np.square(expected).sum())
    _refuse("clipped sums", {
        name: norm(distances[name]) / max(TOLERANCE * norm(sums) + FLOOR * whole, _TINY)
        for name, sums in flat.views(expected).items()
    })  # fmt: skip


_TINY = float(np.finfo(np.float32).tiny)


def _refuse(what: str, differences: dict) -> None:
    """Refuse differences above 1 (in units of the tolerance), and NaN."""
    worst = max(differences, key=lambda name: np.nan_to_num(differences[name], nan=np.inf))
    if not differences[worst] <= 1:
        raise unfit(
            f"ghost clipping and the loop disagree on this network: the {what} of {worst} differ "
            f"by {differences[worst]:.3g} times what is allowed"
        )
