"""The clipping of a release: C, α and the rule are those of the release, and given nowhere else."""

from __future__ import annotations

from typing import Any, Callable, ContextManager, NamedTuple, Tuple

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.dp.accounting.clippings import CLIPPINGS, TAKE_LOOP
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.ghost.check import refuse_wrong_on
from edp_mx.dp.privacy.ghost.clipping import GhostClipping
from edp_mx.dp.privacy.norm_clipping import LoopClipping, NormClipping
from edp_mx.errors import UserError
from edp_mx.runtime.blas import Processor
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.precision import why_imitated

TRIED = 6  # records on which ghost clipping is compared with the loop


class TryOn(NamedTuple):
    """What ghost clipping is tried on before it is trusted.

    Attributes:
        loss_of: the losses of a batch, as `refuse_wrong_on` takes it.
        batch_of: the batch of some records, as `refuse_wrong_on` takes it.
        num_records: how many there are, of which a few are tried.
        away_from_start, refuse_mixing: of `dp.mixing`; this room has no random numbers but its
            noise.
    """

    loss_of: Callable[[Any], mx.nd.NDArray]
    batch_of: Callable[[np.ndarray], Any]
    num_records: int
    away_from_start: Callable[[gluon.Block], ContextManager[None]]
    refuse_mixing: Callable[..., None]


def tried_of(num_records: int) -> np.ndarray:
    """Return the tried records, from the first to the last: a data set may be sorted by length."""
    return np.unique(np.linspace(0, num_records - 1, TRIED).round().astype(np.int64))


def clipping_for(
    kind: str, release: Release, flat: FlatGradients, network: gluon.Block, *, chunk_size: int
) -> NormClipping:
    """Build the clipping of the gradients of the release's units, by its name in `CLIPPINGS`."""
    way = CLIPPINGS[kind]
    if not way.takes_many:
        return LoopClipping(flat=flat, release=release)
    return GhostClipping(
        flat=flat,
        release=release,
        network=network,
        chunk_size=chunk_size,
        precision=way.precision,
    )


def clipping_that_fits(
    kind: str,
    release: Release,
    flat: FlatGradients,
    network: gluon.Block,
    *,
    chunk_size: int,
    try_on: TryOn,
    workers: Workers,
) -> Tuple[NormClipping, str]:
    """Build the clipping that is asked for, or the loop where ghost clipping is not to be trusted.

    Args:
        try_on: what it is tried on; nothing is released but whether it fits.

    Returns:
        The clipping, of one kind on all workers, and why it is not ghost clipping, if it should be
        (in the words of the library, which has no key privacy.clipping).
    """
    imitated = workers.gather(why_imitated(CLIPPINGS[kind].precision, Processor.read()))
    for why in filter(None, imitated):
        raise UserError(f'{why}; give make_plan clipping="ghost"', is_shared=True)
    refusal = ""
    try:
        clipping = clipping_for(kind, release, flat, network, chunk_size=chunk_size)
        if CLIPPINGS[kind].takes_many:
            tried = tried_of(try_on.num_records)
            with try_on.away_from_start(network):
                try_on.refuse_mixing(try_on.loss_of, try_on.batch_of, tried)
                refuse_wrong_on(
                    clipping,
                    try_on.loss_of,
                    lambda rows: try_on.batch_of(tried[rows]),
                    num_records=len(tried),
                )
    except UserError as error:
        refusal = str(error)
    refusals = [each for each in workers.gather(refusal) if each]
    if not refusals:
        return clipping, ""
    refusal = refusals[0].replace(TAKE_LOOP, 'give make_plan clipping="loop"')
    return clipping_for("loop", release, flat, network, chunk_size=1), refusal
