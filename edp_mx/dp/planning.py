"""The plan of a training of one's own, in the words of DP-SGD libraries."""

from __future__ import annotations

from typing import Optional

from edp_mx.dp.accounting.budget import refuse_blind_budget
from edp_mx.dp.accounting.choices import UNITS, check_choice, check_count, check_rate
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.delta import choose_delta
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.target import calibrated
from edp_mx.dp.sampling.dealing import deal
from edp_mx.dp.sampling.draws import release_of
from edp_mx.errors import UserError


def make_plan(
    *,
    num_examples: int,
    epochs: int,
    batch_size: Optional[int] = None,
    sample_rate: Optional[float] = None,
    target_epsilon: Optional[float] = None,
    noise_multiplier: Optional[float] = None,
    delta: Optional[float] = None,
    max_grad_norm: float = 1.0,
    unit: str = "example",
    variant: str = "calibrated",
    adjacency: str = "zero_out",
    sampler: str = "poisson",
    decay: Optional[Decay] = None,
    layer_scales: str = "ones",
    clip_rule: str = "abadi",
    clipping: str = "ghost",
    gaussian: str = "plain",
    max_epsilon: Optional[float] = None,
    num_workers: int = 1,
    micro_batches_per_worker: int = 1,
) -> Plan:
    """Return the plan of a training; a target ε is turned into the noise that meets it.

    Args:
        num_examples: n, the examples of the data set; for the unit "user", its users.
        epochs: T.
        batch_size: B, the expected number of examples (or users) per step, over all workers.
        sample_rate: q, in place of B, which becomes q · n rounded to a whole number. The plan's
            `release.sample_rate` is B / n.
        target_epsilon: the ε that the whole training may cost; z₀ is found for it.
        noise_multiplier: z₀, in place of a target.
        delta: δ, below 1 / n; 1 / (2n) if left out.
        max_grad_norm: C.
        unit: what is clipped: "example" or "user" (DP-SGD), or "micro_batch" (eDP-SGD). Ledgers
            and reports call an example an utterance.
        variant: "calibrated", or "published" for Algorithm 1 of eDP-SGD to the letter.
        adjacency: who is a neighbour: "zero_out" or "replace_one".
        sampler: "poisson" or "shuffle".
        decay: how the noise falls by epoch; constant if left out.
        layer_scales: α: "ones", or "sqrt_dim" (by the size of each layer).
        clip_rule: "abadi" or "automatic".
        clipping: "ghost", or "loop" (one backward pass per unit). A network that ghost clipping
            cannot follow is trained by the loop.
        gaussian: how noise is drawn: "plain" or "hardened".
        max_epsilon: training ends before the step with which ε would exceed it.
        num_workers: processes of the training, `horovod.mxnet.size()`.
        micro_batches_per_worker: k, for the unit "micro_batch".

    Raises:
        UserError: a number or a name that no training can have, or two that exclude each other.

    Example:
        >>> plan = make_plan(num_examples=60_000, sample_rate=0.005, epochs=10, target_epsilon=8)
        >>> print(round(plan.noise_multiplier, 3), plan.release.batch_size, plan.steps)
        0.536 300.0 2000
    """
    for name, pair in (
        ("batch_size and sample_rate", (batch_size, sample_rate)),
        ("target_epsilon and noise_multiplier", (target_epsilon, noise_multiplier)),
    ):
        given = sum(value is not None for value in pair)
        if given != 1:
            raise UserError(f"give one of {name}, not {'both' if given else 'none'}")
    check_choice("unit", unit, ("example", *UNITS))
    check_choice("layer_scales", layer_scales, ("ones", "sqrt_dim"))
    check_count(num_examples, "num_examples", least=1)
    if sample_rate is not None:
        check_rate(sample_rate)
        batch_size = max(1, round(sample_rate * num_examples))
    assert batch_size is not None
    check_count(batch_size, "batch_size", least=1, most=num_examples)
    check_count(num_workers, "num_workers", least=1)
    unit = "utterance" if unit == "example" else unit
    draws = deal(
        unit="utterance" if unit == "user" else unit,  # users are dealt as utterances are
        sampler=sampler,
        num_records=num_examples,
        batch_size=batch_size,
        rank=0,
        num_workers=num_workers,
        seed=0,
        micro_batches_per_worker=micro_batches_per_worker,
    )
    release = release_of(
        draws,
        unit=unit,
        num_workers=num_workers,
        max_grad_norm=max_grad_norm,
        clip_rule=clip_rule,
        adjacency=adjacency,
        variant=variant,
    )
    plan = Plan(
        release=release,
        noise_multiplier=noise_multiplier or 0.0,
        decay=decay or Decay(),
        epochs=epochs,
        steps_per_epoch=draws.steps_per_epoch,
        num_records=num_examples,
        delta=choose_delta(num_examples=num_examples, delta=delta),
        delta_mode="default" if delta is None else "value",
        scales_source=layer_scales,
        clipping=clipping,
        gaussian=gaussian,
        max_epsilon=max_epsilon,
    )
    if target_epsilon is None:
        return plan
    refuse_blind_budget(plan, "target_epsilon")
    return calibrated(plan, target_epsilon=target_epsilon)
