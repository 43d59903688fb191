"""Plans: of the settings below `privacy:`, and of a training of one's own."""

from __future__ import annotations

from functools import wraps
from numbers import Integral, Real
from typing import Any, Callable, Optional, Tuple, TypeVar, cast

from edp_mx.dp.accounting.budget import refuse_blind_budget
from edp_mx.dp.accounting.choices import (
    PAPER_INTERNAL,
    PAPER_PUBLIC,
    check_choice,
    check_count,
    check_rate,
    choose_delta,
)
from edp_mx.dp.accounting.config import NoiseConfig, PrivacyConfig, ScaleRelease
from edp_mx.dp.accounting.counting import grid_resolution
from edp_mx.dp.accounting.coverage import PRIVATE_INPUTS
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.accounting.samplers import Sizes, sizes_of
from edp_mx.dp.accounting.target import calibrated
from edp_mx.dp.accounting.units import UNITS
from edp_mx.errors import UserError
from edp_mx.runtime.settings import SettingError

Function = TypeVar("Function", bound=Callable[..., Any])
NUMBERS = (
    "sample_rate", "target_epsilon", "noise_multiplier", "delta", "max_grad_norm", "max_epsilon"
)  # fmt: skip


def plan_of(
    privacy: PrivacyConfig,
    sizes: Sizes,
    *,
    epochs: int,
    num_workers: int,
    corpus_is_public: bool = True,
    private_inputs: Tuple[str, ...] = (),
) -> Plan:
    """Return the plan of the settings below `privacy:`; `settled` finds the z₀ of a target.

    Args:
        corpus_is_public: which of the paper's two δ is meant by `delta_mode: paper`.
        private_inputs: further inputs that reach the model without passing the mechanism.

    Raises:
        UserError: δ is not given, nor n from which it follows, or is not below 1/n; α is released
            with too little noise.
    """
    found = {*private_inputs, *["layer_scales"] * (privacy.layer_scales == "first_batch")}
    is_released = privacy.layer_scales == "dp_release"
    if is_released and privacy.mechanism != "none" and privacy.noise.gaussian == "hardened":
        _refuse_coarse(privacy.scale_release, num_workers)
    return Plan(
        release=_release_of(privacy, sizes, num_workers),
        noise_multiplier=privacy.noise_multiplier or 0.0,
        decay=privacy.decay,
        epochs=epochs,
        steps_per_epoch=sizes.steps_per_epoch,
        num_records=sizes.num_units,
        delta=_delta_of(privacy, sizes, corpus_is_public=corpus_is_public),
        delta_mode=privacy.delta_mode if privacy.delta is None else "value",
        scales_source=privacy.layer_scales,
        scales_unit=privacy.layer_scales_unit,
        scales_multiplier=privacy.scale_release.noise_multiplier if is_released else None,
        private_inputs=tuple(name for name in PRIVATE_INPUTS if name in found),
        assumed_public=tuple(sorted(privacy.assume_public)),
        clipping=privacy.clipping or "loop",
        gaussian=privacy.noise.gaussian,
        seed_is_fixed=privacy.insecure_fixed_seed is not None,
        max_epsilon=privacy.max_epsilon,
    )


def _refuse_coarse(release: ScaleRelease, num_workers: int) -> None:
    """Refuse a release of α whose sums over all workers float32 cannot hold on the noise's grid."""
    largest = release.share(0, num_workers=num_workers) * release.clip
    if release.worker_noise_stddev(num_workers) < grid_resolution(num_workers) * largest:
        raise SettingError(
            "privacy.scale_release.micro_batches",
            f"is {release.micro_batches:,}, too many beside noise_multiplier "
            f"{release.noise_multiplier:g}: float32 cannot hold their sum on the grid of hardened "
            "noise, so that no ε would hold; take fewer, or more noise",
        )


def settled(plan: Plan, target_epsilon: Optional[float], *, key: str = "target_epsilon") -> Plan:
    """Return the plan with the z₀ of its target, if there is one.

    Raises:
        UserError: the target (named by its key) cannot be met, or cannot see why ε is infinite.
    """
    if target_epsilon is None or plan.release is None:
        return plan
    refuse_blind_budget(plan, key)
    return calibrated(plan, target_epsilon=target_epsilon)


def _release_of(privacy: PrivacyConfig, sizes: Sizes, num_workers: int) -> Optional[Release]:
    if privacy.mechanism == "none":
        return None
    assert privacy.unit is not None  # PrivacyConfig settles it
    return Release(
        unit=privacy.unit,
        num_workers=num_workers,
        micro_batches_per_worker=sizes.micro_batches_per_worker,
        micro_batch_size=sizes.micro_batch_size,
        max_grad_norm=privacy.max_grad_norm,
        clip_rule=privacy.clip_rule,
        adjacency=privacy.adjacency,
        variant=privacy.variant,
        sampler=privacy.sampler,
        sample_rate=sizes.sample_rate,
    )


def _delta_of(privacy: PrivacyConfig, sizes: Sizes, *, corpus_is_public: bool) -> float:
    if privacy.delta_mode == "paper":
        return PAPER_PUBLIC if corpus_is_public else PAPER_INTERNAL
    n, delta = sizes.num_units, privacy.delta
    if n is None and delta is None:
        raise UserError("give delta, or the number of examples n, from which 1/(2n) follows")
    return choose_delta(num_examples=1 if n is None else n, delta=delta)


def _of_plain_numbers(function: Function) -> Function:
    """Have numbers, such as NumPy's, given as Python's, which a ledger can hold."""

    @wraps(function)
    def called(**given: Any) -> Any:
        return function(**{name: _plain(value, name) for name, value in given.items()})

    return cast(Function, called)


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, Real) and not isinstance(value, bool):
        return int(value) if isinstance(value, Integral) else float(value)
    if name in NUMBERS and value is not None:
        raise UserError(f"{name} is {value!r}; it must be a number")
    if name == "decay" and not isinstance(value, (Decay, type(None))):
        raise UserError(
            f"decay is {value!r}; give a Decay(kind, rate) of edp_mx.dp, or leave it out"
        )
    return value


@_of_plain_numbers
def make_plan(
    *,
    num_examples: int,
    epochs: int,
    batch_size: Optional[int] = None,
    sample_rate: Optional[float] = None,
    steps_per_epoch: Optional[int] = None,
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
        steps_per_epoch: about 1 / q if left out; for the sampler "poisson" alone.
        target_epsilon: the ε that the whole training may cost; z₀ is found for it.
        noise_multiplier: z₀, in place of a target.
        delta: δ, below 1 / n; 1 / (2n) if left out.
        max_grad_norm: C.
        unit: of clipping: "example" or "user" (DP-SGD), or "micro_batch" (eDP-SGD). Ledgers
            and reports call an example an utterance.
        variant: "calibrated", or "published" for Algorithm 1 of eDP-SGD to the letter.
        adjacency: who is a neighbour: "zero_out" or "replace_one".
        sampler: "poisson" or "shuffle".
        decay: how the noise falls by epoch; constant if left out.
        layer_scales: α: "ones", or "sqrt_dim" (by the size of each layer).
        clip_rule: "abadi" or "automatic".
        clipping: "ghost", "ghost_bfloat16" (with rounded products), or "loop" (one backward pass
            per unit). A network that ghost clipping cannot follow is trained by the loop.
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
    _give_one(batch_size=batch_size, sample_rate=sample_rate)
    _give_one(target_epsilon=target_epsilon, noise_multiplier=noise_multiplier)
    check_choice("unit", unit, ("example", *UNITS))
    check_choice("layer_scales", layer_scales, ("ones", "sqrt_dim"))
    check_count(num_examples, "num_examples", least=1)
    if sample_rate is not None:
        check_rate(sample_rate)
        batch_size = max(1, round(sample_rate * num_examples))
    assert batch_size is not None
    check_count(batch_size, "batch_size", least=1, most=num_examples)
    check_count(num_workers, "num_workers", least=1)
    privacy = PrivacyConfig(
        mechanism="edp_sgd" if unit == "micro_batch" else "dp_sgd",
        unit="utterance" if unit == "example" else unit,
        micro_batches_per_worker=micro_batches_per_worker,
        variant=variant,
        clipping=clipping,
        noise_multiplier=noise_multiplier,
        noise=NoiseConfig(gaussian),
        max_grad_norm=max_grad_norm,
        clip_rule=clip_rule,
        decay=decay or Decay(),
        layer_scales=layer_scales,
        sampler=sampler,
        adjacency=adjacency,
        target_epsilon=target_epsilon,
        max_epsilon=max_epsilon,
        delta=delta,
    )
    sizes = sizes_of(
        sampler,
        batch_size=batch_size,
        num_workers=num_workers,
        micro_batches_per_worker=micro_batches_per_worker,
        num_units=num_examples,
        steps_per_epoch=steps_per_epoch,
        units="users" if unit == "user" else "examples",
    )
    plan = plan_of(privacy, sizes, epochs=epochs, num_workers=num_workers)
    return settled(plan, target_epsilon)


def _give_one(**pair: Optional[float]) -> None:
    """Refuse none or both of two arguments."""
    given = sum(value is not None for value in pair.values())
    if given != 1:
        names = " and ".join(pair)
        raise UserError(f"give one of {names}, not {'both' if given else 'none'}")
