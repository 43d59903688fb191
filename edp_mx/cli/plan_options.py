"""Options of `account` and `calibrate` that say what a run would release."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any, Dict, Tuple

from edp_mx.accounting.choices import SAMPLERS, UNITS, UNITS_OF, VARIANTS, unit_of
from edp_mx.accounting.decay import KINDS, Decay
from edp_mx.accounting.delta import choose_delta
from edp_mx.accounting.plan import Plan
from edp_mx.accounting.release import Release
from edp_mx.errors import UserError

LONGEST_RUN = 100_000  # epochs; a report has one multiplier for each
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
    *DEFAULTS,
    "noise_multiplier",
    "epochs",
    "num_examples",
    "variant",
    "sample_rate",
    "steps_per_epoch",
)


def add_plan_options(parser: argparse.ArgumentParser, *, variant: str) -> None:
    """Declare the options; `variant` is the default of the command, for the help."""
    add = parser.add_argument
    add("--mechanism", choices=tuple(UNITS_OF),
        help="clips a micro-batch's mean gradient, or each unit's (edp_sgd)")  # fmt: skip
    add("--unit", choices=UNITS, help="what is clipped (micro_batch; with dp_sgd utterance)")
    add("--decay", choices=KINDS, help="how it falls by epoch (none)")
    add("--decay-rate", type=float, metavar="R", help="tau of the decay (0)")
    add("--epochs", type=int, metavar="T", help="epochs in all")
    add("--delta", type=float, metavar="D", help="delta; left out it is 1/(2n)")
    add("--num-examples", type=int, metavar="n", help="size of the training part, for 1/(2n)")
    add("--workers", type=int, metavar="N", help="workers with their own noise (1)")
    add("--micro-batches-per-worker", type=int, metavar="k",
        help="clipped on each worker, so that N = workers k (1)")  # fmt: skip
    add("--micro-batch-size", type=_size, metavar="M",
        help="utterances of a micro-batch, or units per worker; expected for poisson (2)"
    )  # fmt: skip
    add("--max-grad-norm", type=float, metavar="C", help="clipping norm (1)")
    add("--layer-scales", type=parse_scales, metavar="A1,A2,...",
        help="alpha of each layer, taken as given (1)")  # fmt: skip
    add("--adjacency", choices=("replace-one", "zero-out"), help="who is a neighbour (replace-one)")
    add("--variant", choices=VARIANTS,
        help=f"Algorithm 1, or calibrated ({variant}; dp_sgd has no other)")  # fmt: skip
    add("--sampler", choices=SAMPLERS, help="how batches are drawn (shuffle)")
    add("--sample-rate", type=float, metavar="q", help="of poisson; left out it is N M / n")
    add("--steps-per-epoch", type=int, metavar="S", help="of poisson; left out it is n / (N M)")


def plan_of(arguments: argparse.Namespace, *, variant: str, noise_multiplier: float = 1.0) -> Plan:
    """Return the plan that the options describe.

    Raises:
        UserError: something is missing, impossible, or does not go with the sampler.
    """
    if arguments.epochs is None:
        raise UserError("give --epochs, the epochs in all")
    if arguments.epochs > LONGEST_RUN:
        raise UserError(f"--epochs is {arguments.epochs}; at most {LONGEST_RUN} are reported")
    mechanism = _get(arguments, "mechanism")
    default = "calibrated" if mechanism == "dp_sgd" else variant
    release = Release(
        unit=unit_of(mechanism, arguments.unit),
        num_workers=_get(arguments, "workers"),
        micro_batches_per_worker=_get(arguments, "micro_batches_per_worker"),
        micro_batch_size=_get(arguments, "micro_batch_size"),
        max_grad_norm=_get(arguments, "max_grad_norm"),
        layer_scales=_get(arguments, "layer_scales"),
        adjacency=_get(arguments, "adjacency").replace("-", "_"),
        variant=arguments.variant or default,
        sampler=_get(arguments, "sampler"),
    )
    steps_per_epoch, sample_rate = _sampling(arguments, release)
    return Plan(
        release=replace(release, sample_rate=sample_rate),
        noise_multiplier=noise_multiplier,
        decay=Decay(_get(arguments, "decay"), _get(arguments, "decay_rate")),
        epochs=arguments.epochs,
        steps_per_epoch=steps_per_epoch,
        num_records=arguments.num_examples,
        delta=_delta(arguments),
        delta_mode="default" if arguments.delta is None else "value",
    )


def _sampling(arguments: argparse.Namespace, release: Release) -> Tuple[int, float]:
    """Steps per epoch and q, as given or from n."""
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
    if steps < 1:
        raise UserError(f"--steps-per-epoch is {steps}; it must be 1 or more")
    return steps, rate


def _delta(arguments: argparse.Namespace) -> float:
    """δ as given, or 1/(2n); with n it must be below 1/n."""
    if arguments.num_examples is not None:
        return choose_delta(num_examples=arguments.num_examples, delta=arguments.delta)
    if arguments.delta is None:
        raise UserError("give --delta, or --num-examples for delta = 1/(2n)")
    if not 0 < arguments.delta <= 1:
        raise UserError(f"delta is {arguments.delta}; it must be above 0 and at most 1")
    return arguments.delta


def _get(arguments: argparse.Namespace, name: str) -> Any:
    """What was asked for, or the default."""
    value = getattr(arguments, name)
    return DEFAULTS[name] if value is None else value


def _size(text: str) -> float:
    """A number that stays whole if it is."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def parse_scales(text: str) -> Tuple[float, ...]:
    """Parse numbers that commas separate."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of numbers; write for example 1,0.5"
        ) from None
