"""The clipping of a release: C, α and the rule are those of the release, and given nowhere else."""

from __future__ import annotations

from mxnet import gluon

from edp_mx.dp.accounting.clippings import CLIPPINGS
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.ghost.clipping import GhostClipping
from edp_mx.dp.privacy.norm_clipping import LoopClipping, NormClipping


def clipping_for(
    kind: str,
    release: Release,
    flat: FlatGradients,
    network: gluon.Block,
    *,
    chunk_size: int,
    checks_rows: bool = False,
) -> NormClipping:
    """Build the clipping of the gradients of the release's units, by its name in `CLIPPINGS`.

    `checks_rows` as for `GhostClipping`: for a network that is not this project's own.
    """
    way = CLIPPINGS[kind]
    if not way.takes_many:
        return LoopClipping(flat=flat, release=release)
    return GhostClipping(
        flat=flat,
        release=release,
        network=network,
        chunk_size=chunk_size,
        precision=way.precision,
        checks_rows=checks_rows,
    )
