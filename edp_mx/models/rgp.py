"""Reparametrised gradients: per example, a weight's gradient is taken in a subspace of low rank.

In place of the gradient of a weight W there are those of two small matrices, its carriers: L, whose
columns are orthonormal, and R, whose rows are. From their released gradients that of W is made.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Dict, List

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from edp_mx.models.lora import LowRank, LowRankPart
from edp_mx.runtime.arrays import overwrite
from edp_mx.runtime.limits import MOST_WIDE
from edp_mx.runtime.settings import SettingError, Settings, setting


class Carriers(LowRank):
    """L R x − L R x: the output stays as it is, and L and R have gradients.

    Their gradients are ∂W Rᵀ and Lᵀ ∂W, ∂W being that of the weight. Both are one layer of
    Algorithm 1.

    Shapes: (…, d) → (…, p), zeros; R (r, d), `down_weight`; L (p, r), `up_weight`.
    Source: Yu et al. 2021 ("Large scale private learning via low-rank reparametrization"),
        section 3.
    """

    MARK = "rgp_"

    def hybrid_forward(self, F, x, down_weight, up_weight):
        """See the class; the gradient of x is left to the weight."""
        carried = super().hybrid_forward(F, F.stop_gradient(x), down_weight, up_weight)
        return carried - F.stop_gradient(carried)


_DOWN, _UP = f"{Carriers.MARK}down_weight", f"{Carriers.MARK}up_weight"


@dataclass(frozen=True)
class RGPSettings(Settings):
    """Settings of reparametrised gradients.

    Attributes:
        rgp_rank: rank of the carriers of a gradient.
    """

    rgp_rank: int = setting(1, at_least=1, at_most=MOST_WIDE)


class RGP(LowRankPart):
    """The weights of a transformer's upper layers and of its pooler, by way of carriers.

    The carriers have gradients, and the weights are updated.
    """

    name, settings, endings = "rgp", RGPSettings, (_DOWN, _UP)
    kind = Carriers

    def check(self, config: Any) -> None:
        smallest = min(config.hidden_size, config.intermediate_size)
        if config.rgp_rank > smallest:
            raise SettingError(
                "rgp_rank",
                f"must be at most {smallest} (hidden_size or intermediate_size), not "
                f"{config.rgp_rank}",
            )

    def sizes(self, config: Any) -> Dict[str, Any]:
        return {"rank": config.rgp_rank, "scale": 1.0}

    def trainer(self, encoder: gluon.Block, config: Any, *, seed: int, workers: Any, **more: Any):  # noqa: ARG002
        """See `TrainedPart`; it chooses the first carriers."""
        from edp_mx.models.rgp_trainer import CarriedTrainer  # it loads Horovod

        carried = carried_weights(encoder, seed=seed)
        return CarriedTrainer(carried=carried, workers=workers, **more)


class CarriedWeight:
    """A weight that is updated from the released gradients of its carriers.

    The carriers span the largest part of W − W_0; at the first step, of W_0.

    Args:
        weight: W (p, d), which has no gradient of its own; it counts as W_0 now.
        left: L (p, r).
        right: R (r, d).
        seed: of the power iteration.

    Attributes:
        updated: W for an optimiser: the same memory, with the gradient that `reconstruct` makes.

    Guarantee: carriers and gradient are computed from the seed, from W_0, which is public, and from
        what was released before: post-processing.

    Source: Yu et al. 2021, algorithms 1 and 2, with one power iteration as in their code.
    Departs: their code for BERT takes the largest part of W at each step.
    """

    def __init__(
        self, weight: gluon.Parameter, left: gluon.Parameter, right: gluon.Parameter, *, seed: int
    ) -> None:
        self._weight, self.carriers = weight, (left, right)
        self._seed = (seed, zlib.crc32(weight.name.encode()))
        self._first = weight.data().copy()  # W_0
        self.updated = _with_gradient(weight)
        self.refresh(step=0)

    def reconstruct(self) -> None:
        """Make W's gradient, (I − L Lᵀ) ∂L R + L ∂R, from those that the carriers have now."""
        left, right = (carrier.data() for carrier in self.carriers)
        left_gradient, right_gradient = (carrier.grad() for carrier in self.carriers)
        inside = mx.nd.dot(left, mx.nd.dot(left, left_gradient, transpose_a=True))  # (p, r)
        gradient = mx.nd.dot(left_gradient - inside, right) + mx.nd.dot(left, right_gradient)
        self.updated.grad()[:] = gradient

    def refresh(self, *, step: int) -> None:
        """Choose the carriers anew, after a number of steps; the same on every worker."""
        weight, (left, right) = self._weight.data(), self.carriers
        matrix = weight - self._first if step > 0 else weight  # (p, d)
        drawn = np.random.default_rng([*self._seed, step]).standard_normal(right.shape)
        start = mx.nd.array(drawn, ctx=weight.context, dtype="float32")  # (r, d)
        columns = _orthonormal(mx.nd.dot(matrix, start, transpose_b=True))  # (p, r)
        overwrite(left, columns)
        rows = _orthonormal(mx.nd.dot(matrix, left.data(), transpose_a=True))  # (d, r)
        overwrite(right, rows.T)


def carried_weights(block: gluon.Block, *, seed: int = 0) -> List[CarriedWeight]:
    """Return the weights below a block that have carriers, in order."""
    parameters = block.collect_params()
    found = []
    for name in parameters:
        if name.endswith(_DOWN):
            stem = name[: -len(_DOWN)]
            matrices = (parameters[f"{stem}{end}"] for end in ("weight", _UP, _DOWN))
            found.append(CarriedWeight(*matrices, seed=seed))
    return found


def _orthonormal(columns: mx.nd.NDArray) -> np.ndarray:
    """Return an orthonormal basis of the space of some columns. Shapes: (n, r) → (n, r) float32."""
    return np.linalg.qr(columns.asnumpy().astype(np.float64))[0].astype(np.float32)


def _with_gradient(weight: gluon.Parameter) -> gluon.Parameter:
    """Return a parameter that shares a weight's memory and has room for a gradient.

    No operator reads it: a backward pass cannot write to its gradient.
    """
    settings = {"lr_mult": weight.lr_mult, "wd_mult": weight.wd_mult}
    updated = gluon.Parameter(weight.name, shape=weight.shape, **settings)
    updated.initialize(mx.init.Zero(), ctx=weight.list_ctx())
    updated._data = [weight.data().detach()]  # noqa: SLF001 (Gluon has no public way)
    autograd.mark_variables(updated._data, updated._grad)  # noqa: SLF001
    return updated
