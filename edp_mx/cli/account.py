"""`edp-mx account`: both ε of a run, without running it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from edp_mx.accounting.decay import KINDS, Decay
from edp_mx.accounting.delta import choose_delta
from edp_mx.accounting.release import VARIANTS, Release
from edp_mx.errors import UserError

if TYPE_CHECKING:
    from edp_mx.accounting.bound import Bound

LONGEST_RUN = 1_000_000  # epochs; the report has one multiplier for each

EXAMPLES = """\
examples:
  the paper's CLC on ATIS without decay, log10 epsilon 4.4, and what holds with its 8 GPUs:
    edp-mx account --noise-multiplier 0.0321 --epochs 50 --delta 5e-4 --workers 8
  the calibrated variant with an exponential decay, for a corpus of 4478 utterances:
    edp-mx account --noise-multiplier 20 --decay exponential --decay-rate 0.1 --epochs 30 \\
        --num-examples 4478 --workers 8 --micro-batch-size 16 --variant calibrated
  for another program (infinite or beyond a double: null, beside log10 or the reason):
    edp-mx account --noise-multiplier 1 --epochs 50 --delta 1e-5 --json
"""


def add_parser(subparsers: Any) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "account",
        help="epsilon as published and epsilon that holds, without training",
        description="Counts epsilon of shuffled epochs twice: as the paper does, and as it holds "
        "for what Algorithm 1 releases.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--noise-multiplier", type=float, required=True, metavar="Z", help="z0, at epoch 0")
    add("--decay", choices=KINDS, default="none", help="how it falls by epoch (none)")
    add("--decay-rate", type=float, default=0.0, metavar="R", help="tau of the decay (0)")
    add("--epochs", type=int, required=True, metavar="T", help="epochs in all")
    add("--delta", type=float, metavar="D", help="delta; left out it is 1/(2n)")
    add("--num-examples", type=int, metavar="n", help="size of the training part, for 1/(2n)")
    add("--workers", type=int, default=1, metavar="N", help="workers with their own noise (1)")
    add("--micro-batch-size", type=int, default=2, metavar="M", help="examples clipped as one (2)")
    add("--max-grad-norm", type=float, default=1.0, metavar="C", help="clipping norm (1)")
    add(
        "--layer-scales",
        type=_scales,
        default=(1.0,),
        metavar="A1,A2,...",
        help="alpha of each layer, taken as given (1)",
    )
    add("--adjacency", choices=("replace-one", "zero-out"), default="replace-one")
    add("--variant", choices=VARIANTS, default="published", help="Algorithm 1, or calibrated")
    add("--json", action="store_true", help="JSON in full double precision")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints both ε."""
    from edp_mx.accounting.bound import count_as_published, count_what_holds

    if arguments.epochs > LONGEST_RUN:
        raise UserError(f"--epochs is {arguments.epochs}; at most {LONGEST_RUN} are reported")
    release = Release(
        num_workers=arguments.workers,
        micro_batch_size=arguments.micro_batch_size,
        max_grad_norm=arguments.max_grad_norm,
        layer_scales=arguments.layer_scales,
        adjacency=arguments.adjacency.replace("-", "_"),
        variant=arguments.variant,
    )
    decay = Decay(arguments.decay, arguments.decay_rate)
    delta = _delta(arguments)
    z, epochs = arguments.noise_multiplier, arguments.epochs
    published = count_as_published(noise_multiplier=z, decay=decay, epochs=epochs, delta=delta)
    holds = count_what_holds(
        release=release, noise_multiplier=z, decay=decay, epochs=epochs, delta=delta
    )
    effective = release.effective_noise_multiplier(z)
    released = {
        "kappa": release.kappa,
        "effective_noise_multiplier": [
            decay.noise_multiplier_at(effective, epoch) for epoch in range(epochs)
        ],
        "aggregate_noise_stddev": list(release.aggregate_noise_stddev(z)),
        "aggregate_sensitivity": release.aggregate_sensitivity,
    }
    if arguments.json:
        report = {
            "delta": delta,
            "as_published": published.to_dict(),
            "holds": {**holds.to_dict(), **released},
        }
        print(json.dumps(report, indent=2, allow_nan=False))
    else:
        print("\n".join(_table(published, holds, released, delta)))
    return 0


def _delta(arguments: argparse.Namespace) -> float:
    """δ as given, or 1/(2n); with n it must be below 1/n."""
    if arguments.num_examples is not None:
        return choose_delta(num_examples=arguments.num_examples, delta=arguments.delta)
    if arguments.delta is None:
        raise UserError("give --delta, or --num-examples for delta = 1/(2n)")
    return arguments.delta


def _scales(text: str) -> Tuple[float, ...]:
    """Numbers with commas between."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of numbers; write for example 1,0.5"
        ) from None


def _table(published: Bound, holds: Bound, released: Dict[str, Any], delta: float) -> List[str]:
    """The same for a reader: one line a number, one column a way of counting."""
    rows = [
        ("", "as published", "holds"),
        ("rho", str(published.rho), str(holds.rho)),
        ("epsilon", str(published.epsilon), str(holds.epsilon)),
        ("  by Renyi divergence", "", str(holds.epsilon_renyi)),
        ("  by plain zCDP", str(published.epsilon), str(holds.epsilon_zcdp)),
        ("kappa", "1", f"{released['kappa']:g}"),
    ]
    lines = [f"One utterance, delta = {delta:g}", ""]
    lines += [f"{name:<32}{left:>14}{right:>14}".rstrip() for name, left, right in rows]
    effective = released["effective_noise_multiplier"]
    if effective:
        lines.append(f"{'effective multiplier, first epoch':<46}{effective[0]:>14.6g}")
        lines.append(f"{'effective multiplier, last epoch':<46}{effective[-1]:>14.6g}")
    lines.append(f"{'sensitivity of the aggregate':<46}{released['aggregate_sensitivity']:>14.6g}")
    noise = ", ".join(f"{stddev:.6g}" for stddev in released["aggregate_noise_stddev"])
    lines += [
        f"noise on the aggregate at epoch 0, stddev by layer: {noise}",
        "",
        "as published: the multiplier as given, epsilon = rho + 2 sqrt(rho ln 1/delta), kappa 1",
        "holds: for whoever sees every aggregate; exact for shuffled epochs of disjoint batches",
    ]
    return lines + [f"infinite because {reason}" for reason in holds.reasons]
