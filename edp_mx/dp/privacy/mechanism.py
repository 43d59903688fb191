"""The private mechanism of one worker: Algorithm 1 (eDP-SGD) and DP-SGD in one."""

from __future__ import annotations

from typing import Iterable, Iterator, Tuple, Union

import mxnet as mx

from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.privacy.clipping import Losses, Unclipped
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.dp.privacy.norm_clipping import NormClipping
from edp_mx.errors import UserError


class Released:
    """A gradient in the flat array, which it owns, that may leave this worker once.

    Args:
        loss: of the step, (1,): the mean over the units, their public number.
    """

    def __init__(self, *, flat: FlatGradients, loss: mx.nd.NDArray) -> None:
        self.loss = loss
        flat.give_to(self)

    def use(self, flat: FlatGradients) -> None:
        """Mark it as released, once; a `ClippedSum`, which has no noise, cannot be used."""
        flat.take_from(self)


class Mechanism:
    """Makes one step of this worker private; the trainer aggregates afterwards.

    The mechanism knows neither what a unit is (a micro-batch: Algorithm 1; an utterance or a user:
    DP-SGD) nor how its gradient is computed (`clipping`). For the gradients Δ_j of the units j of
    this worker:

      1. Scale     Δ_j,k ← Δ_j,k / α_k
      2. Clip      Δ_j ← min(1, C / ‖Δ_j‖₂) Δ_j
      3. Rescale   Δ_j,k ← α_k Δ_j,k;  u ← Σ_j Δ_j / (units of a worker, a public number)
      4. Set       z_t ← z₀ · d(t)
      5. Noise     u_k ← u_k + y_k,  y_k ~ N(0, σ_k²), σ = `Release.worker_noise_stddev(z_t)`
      6. Aggregate u ← 1/workers Σ u  (`trainer.PrivateTrainer`)

    Algorithm 1 to the letter is the unit micro_batch, one per worker, and the published variant:
    σ = C z_t / N. The calibrated variant has σ_k = α_k κ C z_t √workers / (workers · units).

    Steps 1 to 3 multiply all layers of a unit by the same factor min(1, C/‖(Δ_k/α_k)_k‖₂), so that
    scaling and rescaling need no pass of their own; a factor due on the sum is applied in step 5.

    Args:
        plan: of the run, with its layer scales; noise and accountant read the same plan.
        clipping: built from the plan's release, around the network's gradients.
        noise: this worker's own stream.

    Attributes:
        mask_key: secret key of the dropout masks; see `dp.unit_losses.UnitLosses`.

    Guarantee: before the noise, one unit more or less moves what leaves `privatise` by at most
    C α_k / units in layer k, whatever its gradient. `accounting.release` states what that costs.

    Edge cases: a unit whose gradient is not finite counts as zero, and the sum of a step without
    units is zero; noise is added in both cases. z₀ = 0 adds no noise and gives no privacy.

    Source: eDP-SGD, Algorithm 1; Abadi et al. (2016), Algorithm 1; docs/privacy.md, sections 1, 3
    and 8.

    Departs: for DP-SGD z_t may fall by epoch and layers may be scaled by α, as in eDP-SGD; no decay
    and α = 1 are the original.
    """

    def __init__(self, *, plan: Plan, clipping: NormClipping, noise: NoiseStream) -> None:
        self.plan, self.clipping = plan, clipping
        self._release = _checked(plan, clipping, noise)
        self.mask_key = noise.mask_key
        self._flat, self._noise = clipping.flat, noise
        self._units = self._release.units_per_worker
        self._epoch = -1
        self._parts: Tuple[Tuple[slice, float], ...] = ()  # of an epoch, with their noise

    def privatise(self, chunks: Iterable[Losses], *, epoch: int) -> Released:
        """Run one step of Algorithm 1 up to the aggregation.

        Args:
            chunks: the losses of the units, chunk by chunk; see `clipping.Losses`.
            epoch: t, from 0; determines the noise.

        Raises:
            UserError: a raw gradient, or one that was already released, would be released.
        """
        clipped = self.clipping.clip(chunks)  # steps 1 to 3
        values, factor = clipped.take()  # (P,)
        if epoch != self._epoch:
            parts = self._noise_segments(self.plan.noise_multiplier_at(epoch))
            self._epoch, self._parts = epoch, tuple(parts)
        gradients = self._flat.gradients()  # (P,)
        self._noise.scale_and_add_parts(
            gradients, parts=self._parts, factor=factor / self._units, source=values
        )
        self._flat.put_gradients(gradients)
        return Released(flat=self._flat, loss=clipped.loss / self._units)  # the trainer aggregates

    def _noise_segments(self, noise_multiplier: float) -> Iterator[Tuple[slice, float]]:
        """Slices of the flat array and their noise; neighbours with equal noise are merged."""
        stddevs = self._release.worker_noise_stddev(noise_multiplier)  # (L,)
        start = 0
        for k, stddev in enumerate(stddevs):
            if k + 1 == len(stddevs) or stddevs[k + 1] != stddev:
                end = self._flat.segments[k].stop
                yield slice(start, end), float(stddev)
                start = end


class WithoutPrivacy:
    """The plain mean gradient in place of a mechanism: the paper's SGD; dropout's masks are public.

    Args:
        units_per_worker: divisor of the sum over a worker's units.
    """

    mask_key = b""

    def __init__(self, *, clipping: Unclipped, units_per_worker: float = 1) -> None:
        self.clipping = clipping
        self._flat, self._units = clipping.flat, units_per_worker

    def privatise(self, chunks: Iterable[Losses], *, epoch: int) -> Released:  # noqa: ARG002
        """Run `Mechanism.privatise` without its steps 1 to 5."""
        clipped = self.clipping.clip(chunks)
        values, factor = clipped.take()  # (P,)
        if factor != self._units:
            values *= values.dtype.type(factor / self._units)
        self._flat.put_gradients(values)
        return Released(flat=self._flat, loss=clipped.loss / self._units)


AnyMechanism = Union[Mechanism, WithoutPrivacy]


def _checked(plan: Plan, clipping: NormClipping, noise: NoiseStream) -> Release:
    """The plan's release, after checking that clipping and noise are the plan's."""
    release = plan.release
    if release is None:
        raise UserError(
            "the plan has no mechanism (mechanism: none), so that there is no noise to add"
        )
    if clipping.release != release:
        raise UserError("the clipping was built from another release than that of the plan")
    if noise.gaussian != plan.gaussian:
        raise UserError(f"the noise is {noise.gaussian}, and that of the plan {plan.gaussian}")
    return release
