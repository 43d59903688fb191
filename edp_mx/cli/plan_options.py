"""Options of `account`, `calibrate` and `audit` that say what is released."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any, Callable, Dict, Tuple

from edp_mx.cli.console import require_at_least, whole, written_as
from edp_mx.dp.accounting.choices import SAMPLERS, UNITS, UNITS_OF, VARIANTS, check_delta, unit_of
from edp_mx.dp.accounting.decay import KINDS, Decay
from edp_mx.dp.accounting.delta import choose_delta
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release
from edp_mx.errors import UserError
from edp_mx.runtime.limits import MOST_EPOCHS

# Applied late, so that a command can tell what was asked for from what was left out.
DEFAULTS: Dict[str, Any] = {
    "mechanism": "edp_sgd",
    "unit": None,
    "decay": "none",
    "decay_rate": 0.0,
    "workers": 1,
    "micro_batches_per_worker": 1,
    "micro_batch_size": 2,
    "max_grad_norm": 1.0,
    "layer_scales": (1.0,),
    "adjacency": "replace-one",
    "sampler": "shuffle",
}
PLAN_OPTIONS = (
    *(*DEFAULTS, "noise_multiplier", "epochs", "num_examples", "variant", "sample_rate"),
    "steps_per_epoch",
)


def add_release_options(
    parser: argparse.ArgumentParser, *, size: Callable[[str], float], **defaults: Any
) -> None:
    """Declare what a step releases; an option that is left out is None, not its default.

    Args:
        size: type of the micro-batch size.
        defaults: `variant`, `micro_batch_size` and `layer_scales` of the command, for the help.
    """
    add = parser.add_argument
    add("--mechanism", choices=tuple(UNITS_OF),
        help="clips a micro-batch's mean gradient, or each unit's (edp_sgd)")  # fmt: skip
    add("--unit", choices=UNITS, help="what is clipped (micro_batch; with dp_sgd utterance)")
    add("--variant", choices=VARIANTS,
        help=f"Algorithm 1, or calibrated ({defaults['variant']}; dp_sgd has no other)"
    )  # fmt: skip
    add("--max-grad-norm", type=float, metavar="C", help="clipping norm (1)")
    add("--layer-scales", type=written_as("1,0.5", _scales), metavar="A1,A2,...",
        help=f"alpha of each layer, taken as given ({defaults['layer_scales']})")  # fmt: skip
    add("--adjacency", choices=("replace-one", "zero-out"), help="who is a neighbour (replace-one)")
    add("--micro-batch-size", type=size, metavar="M",
        help="utterances of a micro-batch, or units per worker; expected for poisson "
        f"({defaults['micro_batch_size']})")  # fmt: skip
    add("--micro-batches-per-worker", type=whole, metavar="k",
        help="micro-batches that each worker clips: N is k times the workers (1)")  # fmt: skip
    add("--sampler", choices=SAMPLERS, help="how batches are drawn (shuffle)")


def add_plan_options(parser: argparse.ArgumentParser, *, variant: str) -> None:
    """Declare the options; `variant` is the default of the command, for the help."""
    size = written_as("16", _size)  # Poisson steps may expect a fraction
    add_release_options(parser, size=size, variant=variant, micro_batch_size=2, layer_scales="1")
    add = parser.add_argument
    add("--decay", choices=KINDS, help="how the noise falls by epoch (none)")
    add("--decay-rate", type=float, metavar="R", help="tau of the decay (0)")
    add("--epochs", type=whole, metavar="T", help="epochs in all")
    add("--delta", type=float, metavar="D", help="delta; left out it is 1/(2n)")
    add("--num-examples", type=whole, metavar="n", help="size of the training part, for 1/(2n)")
    add("--workers", type=whole, metavar="N", help="workers with their own noise (1)")
    add("--sample-rate", type=float, metavar="q", help="q of poisson; left out, N M / n")
    add("--steps-per-epoch", type=whole, metavar="S", help="steps of poisson; left out, n / (N M)")


def plan_of(arguments: argparse.Namespace, *, variant: str, noise_multiplier: float = 1.0) -> Plan:
    """Return the plan that the options describe.

    Raises:
        UserError: something is missing, impossible, or does not go with the sampler.
    """
    if arguments.epochs is None:
        raise UserError("give --epochs, the epochs in all")
    if arguments.epochs > MOST_EPOCHS:
        raise UserError(f"--epochs is {arguments.epochs}; at most {MOST_EPOCHS} are reported")
    asked = {name: value for name, value in vars(arguments).items() if value is not None}
    given = {**DEFAULTS, **asked}
    release = Release(
        unit=unit_of(given["mechanism"], arguments.unit),
        num_workers=given["workers"],
        micro_batches_per_worker=given["micro_batches_per_worker"],
        micro_batch_size=given["micro_batch_size"],
        max_grad_norm=given["max_grad_norm"],
        layer_scales=given["layer_scales"],
        adjacency=given["adjacency"].replace("-", "_"),
        variant=arguments.variant or ("calibrated" if given["mechanism"] == "dp_sgd" else variant),
        sampler=given["sampler"],
    )
    steps_per_epoch, sample_rate = _sampling(arguments, release)
    return Plan(
        release=replace(release, sample_rate=sample_rate),
        noise_multiplier=noise_multiplier,
        decay=Decay(given["decay"], given["decay_rate"]),
        epochs=arguments.epochs,
        steps_per_epoch=steps_per_epoch,
        num_records=arguments.num_examples,
        delta=_delta(arguments),
        delta_mode="default" if arguments.delta is None else "value",
    )


def _sampling(arguments: argparse.Namespace, release: Release) -> Tuple[int, float]:
    """Return the steps per epoch and q, as given or from n."""
    steps, rate, n = arguments.steps_per_epoch, arguments.sample_rate, arguments.num_examples
    if release.sampler == "shuffle":
        if rate is not None or steps is not None:
            raise UserError(
                "--sample-rate and --steps-per-epoch belong to --sampler poisson: shuffled epochs "
                "cost the same however many steps they have, and sampling does not amplify them"
            )
        return 1, 1.0
    if (rate is None or steps is None) and n is None:
        raise UserError(
            "--sampler poisson needs --sample-rate and --steps-per-epoch, or --num-examples from "
            "which both follow (q = N M / n)"
        )
    if rate is None:
        rate = release.batch_size / n if n > 0 else 0.0
    if not 0 <= rate <= 1:
        raise UserError(f"--sample-rate is {rate:g}; it must lie between 0 and 1")
    if steps is None:
        steps = max(1, round(n / release.batch_size))
    require_at_least(steps, 1, "--steps-per-epoch")
    return steps, rate


def _delta(arguments: argparse.Namespace) -> float:
    """Return δ as given, or 1/(2n); with n it must be below 1/n."""
    if arguments.num_examples is not None:
        return choose_delta(num_examples=arguments.num_examples, delta=arguments.delta)
    if arguments.delta is None:
        raise UserError("give --delta, or --num-examples for delta = 1/(2n)")
    check_delta(arguments.delta)
    return arguments.delta


def _size(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _scales(text: str) -> Tuple[float, ...]:
    return tuple(map(float, text.split(",")))
