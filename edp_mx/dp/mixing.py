"""Whether a network mixes the examples of a batch or keeps something of them, and its clipping."""

from __future__ import annotations

import random
from contextlib import contextmanager
from functools import partial
from typing import Any, Callable, Iterator, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from edp_mx.dp.accounting.clippings import CLIPPINGS
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.privacy.build_clipping import clipping_for
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.ghost.check import refuse_wrong_on
from edp_mx.dp.privacy.ghost.graph import unfit
from edp_mx.dp.privacy.layers import try_out
from edp_mx.dp.privacy.norm_clipping import NormClipping
from edp_mx.dp.safeguards import library_words
from edp_mx.dp.unit_losses import seed_dropout
from edp_mx.errors import UserError
from edp_mx.runtime.arrays import overwrite
from edp_mx.runtime.blas import Processor
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.precision import why_imitated

TRIED = 6  # records on which ghost clipping is compared with the loop


def tried_of(num_records: int) -> np.ndarray:
    """Return the tried records, from the first to the last: a data set may be sorted by length."""
    return np.unique(np.linspace(0, num_records - 1, TRIED).round().astype(np.int64))


@contextmanager
def away_from_start(network: gluon.Block) -> Iterator[None]:
    """Have the trained parameters elsewhere than where they start, and put them back in the end.

    A layer of zeros lets no value and no gradient through, and so would hide from all that is tried
    what the layers below it do.
    """
    rng = np.random.default_rng(0)
    trained = [each for each in network.collect_params().values() if each.grad_req != "null"]
    start = [each.data().asnumpy() for each in trained]
    try:
        for each, value in zip(trained, start):
            moved = 0.5 * rng.standard_normal(value.shape) / np.sqrt(value.size / len(value))
            overwrite(each, value + moved)
        yield
    finally:
        for each, value in zip(trained, start):
            overwrite(each, value)


def refuse_mixing(
    loss_of: Callable[[Any], mx.nd.NDArray],
    arrays_of: Callable[[np.ndarray], Any],
    records: np.ndarray,
) -> None:
    """Refuse a network that mixes examples while it is trained, though not while it predicts.

    The loss of no record (R,) may depend on another's: each takes the place of its neighbour once,
    under the same dropout masks. Where a batch then has other shapes, whose masks differ, nothing
    is told here; `refuse_wrong_on` compares such lengths without dropout.

    `loss_of` computes the losses (R,) of what `arrays_of` makes of some records (R,): their number
    and their arrays.
    """

    for place in range(len(records) - 1):
        other = records.copy()
        other[place] = records[place + 1]
        batches = arrays_of(records), arrays_of(other)
        shapes = [[array.shape for array in arrays] for _, arrays in batches]
        before, after = (
            np.delete(_trained_on(partial(loss_of, batch)), place) for batch in batches
        )
        if shapes[0] == shapes[1] and not np.allclose(before, after, rtol=1e-4, atol=1e-6):
            raise unfit(
                "the loss of an example depends on the other examples of its batch, such as by "
                "their mean"
            )


def clipping_that_fits(
    kind: str,
    release: Release,
    flat: FlatGradients,
    network: gluon.Block,
    loss_of: Callable[[Any], mx.nd.NDArray],
    batch_of: Callable[[np.ndarray], Any],
    num_records: int,
    *,
    chunk_size: int,
    workers: Workers,
) -> Tuple[NormClipping, str]:
    """Build the clipping that is asked for, or the loop where ghost clipping is not to be trusted.

    Args:
        loss_of: the losses of a batch, as `refuse_wrong_on` takes it.
        batch_of: the batch of some records, as `refuse_wrong_on` takes it.
        num_records: how many there are, of which a few are tried; nothing is released but whether
            it fits.

    Returns:
        The clipping, of one kind on all workers, and why it is not ghost clipping, if it should be
        (in the words of the library, which has no key privacy.clipping).
    """
    imitated = workers.gather(why_imitated(CLIPPINGS[kind].precision, Processor.read()))
    for why in filter(None, imitated):
        raise UserError(f'{why}; give make_plan clipping="ghost"', is_shared=True)
    refusal = ""
    try:
        with library_words():
            clipping = clipping_for(
                kind, release, flat, network, chunk_size=chunk_size, checks_rows=True
            )
            if CLIPPINGS[kind].takes_many:
                tried = tried_of(num_records)
                with away_from_start(network):
                    refuse_mixing(loss_of, batch_of, tried)
                    refuse_wrong_on(
                        clipping, loss_of, lambda r: batch_of(tried[r]), num_records=len(tried)
                    )
    except UserError as error:
        refusal = str(error)
    except MemoryError:
        raise
    except Exception as error:  # of any kind, by a network that the plain passes before bore
        refusal = f"ghost clipping cannot follow the network ({type(error).__name__}: {error})"
    refusals = [each for each in workers.gather(refusal) if each]
    if not refusals:
        return clipping, ""
    return clipping_for("loop", release, flat, network, chunk_size=1), refusals[0]


def refuse_state(network: gluon.Block, losses: Sequence[Callable[[], mx.nd.NDArray]]) -> None:
    """Refuse a network that keeps something of examples, in parameters (`try_out`) or elsewhere.

    Also the loop over examples would not see the latter. The first loss must be the same after
    itself and after each other one, with the same random numbers.
    """
    try_out(network, losses)
    states = np.random.get_state(), random.getstate()

    def first() -> np.ndarray:
        np.random.set_state(states[0])
        random.setstate(states[1])
        trained = _trained_on(losses[0])
        with autograd.predict_mode():
            return np.concatenate([trained, losses[0]().asnumpy()])

    with away_from_start(network):
        first()
        before = first()
        for loss in losses:
            with autograd.record():
                loss()
            if not np.allclose(before, first(), rtol=1e-4, atol=1e-6):
                raise UserError(
                    "the loss of an example depends on examples before it, such as by a running "
                    "mean that the network keeps: that would be kept without noise, and no epsilon "
                    "covers it; take it out of the network"
                )


def _trained_on(loss: Callable[[], mx.nd.NDArray]) -> np.ndarray:
    """The losses (R,) as a step computes them, under the same dropout masks at each call."""
    seed_dropout(0)
    with autograd.record():
        made = loss()
    return made.asnumpy()
