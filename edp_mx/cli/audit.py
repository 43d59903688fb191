"""`edp-mx audit`: measure what leaks from the running system, and refute false claims."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edp_mx.accounting.choices import CLIPPINGS, SAMPLERS, UNITS, UNITS_OF, VARIANTS, unit_of
from edp_mx.cli.console import add_command, add_configs, add_overrides
from edp_mx.cli.plan_options import parse_scales
from edp_mx.errors import UserError

if TYPE_CHECKING:
    from edp_mx.attacks.audit.audited_step import AuditedStep

CLAIMS = ("published", "holds")
REFUTED = 1  # exit code
EXAMPLES = """examples:
  compare the noise of 8 workers with the accounting:
    launch/audit.sh noise
  attack single steps of 8 workers:
    launch/audit.sh step
  attack the paper's accounting (exit code 1: refuted):
    launch/audit.sh step --variant published
  the paper's eight micro-batches on two workers:
    NP=2 launch/audit.sh step --micro-batches-per-worker 4
  DP-SGD by ghost clipping on Poisson batches, per utterance, or per user of 8 utterances:
    NP=2 launch/audit.sh step --mechanism dp_sgd --clipping ghost --sampler poisson \\
        --adjacency zero-out
    NP=2 launch/audit.sh step --mechanism dp_sgd --unit user --utterances-per-user 8
  a whole run with 1000 canaries in its training part:
    NP=2 launch/audit.sh one-run configs/audit/one_run.yaml

Exit code 0: the claim was not refuted. 1: it was refuted. 2: the user has to correct something.
If a worker dies, launch/audit.sh also ends with 1, but prints no verdict.
With several workers use launch/audit.sh, which starts them by horovodrun.
"""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand and its three audits."""
    parser = subparsers.add_parser(
        "audit",
        help="attack the running system and compare the result with its epsilon",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measures a lower bound on epsilon through the real mechanism, trainer and "
        "workers. A claim that it refutes is false; one that it does not refute is not proven.",
    )
    audits = parser.add_subparsers(dest="audit", metavar="AUDIT", required=True)
    _add_noise(audits)
    _add_step(audits)
    _add_one_run(audits)


def _add_noise(audits: Any) -> None:
    """Declare the options of A0."""
    parser = _add(audits, "noise", run_noise, "compare the released noise with the accounting")
    _add_release(parser)
    add = parser.add_argument
    add("--size", type=int, default=100_000, metavar="n", help="coordinates per layer (100000)")
    add("--steps", type=int, default=4, metavar="T", help="steps with zero gradients (4)")
    add("--confidence", type=_confidence, default=0.999999, metavar="P",
        help="probability with which a sound system passes (0.999999)")  # fmt: skip


def _add_step(audits: Any) -> None:
    """Declare the options of A1."""
    parser = _add(audits, "step", run_step, "tell worst-case neighbours apart in single steps")
    _add_release(parser)
    add = parser.add_argument
    add("--draws", type=int, default=1000, metavar="D", help="in each world and layer (1000)")
    add("--delta", type=float, default=1e-5, metavar="D", help="of the bound and the claims (1e-5)")
    add("--confidence", type=_confidence, default=0.95, metavar="P", help="of the bound (0.95)")
    add("--claim", choices=CLAIMS, help="what is audited (published for that variant, else holds)")
    add("--alone", action="store_true", help="one worker moves at a time: N times slower")


def _add_one_run(audits: Any) -> None:
    """Declare the options of A2."""
    parser = _add(audits, "one-run", run_one_run, "train once with canaries and guess them")
    add_configs(parser)
    add_overrides(parser)
    add = parser.add_argument
    add("--canaries", type=int, default=1000, metavar="m", help="how many (1000)")
    add("--tokens", type=int, default=6, metavar="T", help="words of each canary (6)")
    add("--confidence", type=_confidence, default=0.95, metavar="P", help="of the bound (0.95)")
    add("--claim", choices=CLAIMS, default="holds", help="what is audited (holds)")
    add("--run", dest="run_directory", type=Path, help="the run directory (default: new)")
    add("--runs", type=Path, default=Path("runs"), help="where run directories go")


def _add(audits: Any, name: str, run: Any, summary: str) -> argparse.ArgumentParser:
    """Add one audit with the options that all have."""
    parser = add_command(audits, name, run, summary, EXAMPLES)
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    parser.add_argument("--check", action="store_true", help="check the settings, audit nothing")
    parser.add_argument("--workers", type=int, default=1, help="with --check: how many there are")
    return parser


def _add_release(parser: argparse.ArgumentParser) -> None:
    """Declare what a step releases, in the words of `edp-mx account`."""
    add = parser.add_argument
    add("--mechanism", choices=tuple(UNITS_OF), default="edp_sgd",
        help="clip the means of micro-batches, or each unit (edp_sgd)")  # fmt: skip
    add("--unit", choices=UNITS, help="what is clipped (micro_batch; with dp_sgd utterance)")
    add("--clipping", choices=CLIPPINGS, default="loop",
        help="a backward pass per unit, or ghost clipping (loop)")  # fmt: skip
    add("--variant", choices=VARIANTS, default="calibrated", help="Algorithm 1, or calibrated")
    add("--noise-multiplier", type=float, default=1.0, metavar="Z", help="z (1)")
    add("--max-grad-norm", type=float, default=1.0, metavar="C", help="clipping norm (1)")
    add("--layer-scales", type=parse_scales, default=(1.0, 0.25), metavar="A1,A2,...",
        help="alpha of each layer (1,0.25)")  # fmt: skip
    add("--adjacency", choices=("replace-one", "zero-out"), default="replace-one",
        help="which data sets are neighbours (replace-one)")  # fmt: skip
    add("--micro-batch-size", type=int, default=16, metavar="M",
        help="utterances clipped as one, or units per worker (16)")  # fmt: skip
    add("--micro-batches-per-worker", type=int, default=1, metavar="k",
        help="so that N = workers k (1)")  # fmt: skip
    add("--utterances-per-user", type=int, default=4, metavar="K", help="with --unit user (4)")
    add("--sampler", choices=SAMPLERS, default="shuffle", help="how batches are drawn (shuffle)")
    add("--sample-rate", type=float, default=0.5, metavar="q", help="of poisson, about (0.5)")


def run_noise(arguments: argparse.Namespace) -> int:
    """Run A0; rank 0 prints the checks."""
    step = _step(arguments)
    _at_least(arguments.size, 1000, "--size")
    _at_least(arguments.steps, 2, "--steps")
    if arguments.check:
        return _say_sound()

    from edp_mx.attacks.audit.noise import audit_noise
    from edp_mx.runtime.distributed import start

    workers = start()
    settings = {key: getattr(arguments, key) for key in ("size", "steps", "confidence")}
    audit = audit_noise(workers, step, **settings)
    return _report(audit, arguments, is_first=workers.is_first)


def run_step(arguments: argparse.Namespace) -> int:
    """Run A1; rank 0 prints the verdict."""
    from edp_mx.accounting.delta import choose_delta

    step = _step(arguments)
    _at_least(arguments.draws, 10, "--draws")
    choose_delta(num_examples=1, delta=arguments.delta)  # refuses an impossible δ
    if arguments.check:
        return _say_sound()

    from edp_mx.attacks.audit.step import audit_step
    from edp_mx.cli.console import progress_bar
    from edp_mx.runtime.distributed import start

    workers = start()
    audit = audit_step(
        workers,
        step,
        draws=arguments.draws,
        delta=arguments.delta,
        confidence=arguments.confidence,
        claim=arguments.claim or ("published" if step.variant == "published" else "holds"),
        is_alone=arguments.alone,
        progress=progress_bar(is_first=workers.is_first),
    )
    return _report(audit, arguments, is_first=workers.is_first)


def run_one_run(arguments: argparse.Namespace) -> int:
    """Run A2; rank 0 fills the run directory and prints the verdict."""
    from edp_mx.attacks.audit.one_run import OneRunSettings, audit_one_run
    from edp_mx.config import ExperimentConfig, load_config
    from edp_mx.data.sampling import micro_batch_size

    config: ExperimentConfig = load_config(arguments.configs, arguments.overrides)
    names = [field.name for field in fields(OneRunSettings)]
    settings = OneRunSettings(**{name: getattr(arguments, name) for name in names})
    if arguments.check:
        micro_batch_size(config.training.batch_size, arguments.workers)
        return _say_sound()

    from edp_mx.attacks.audit.directory import README
    from edp_mx.cli.start import create_run, enter_run
    from edp_mx.reports.audit_scores import plot_scores
    from edp_mx.runtime.distributed import start

    workers = start()
    # Rank 0 prepares the directory; no worker writes before it exists.
    directory = workers.on_first(
        lambda: create_run(arguments, config, readme=README, suffix="-audit")
    )
    progress = enter_run(directory, workers)
    audit = audit_one_run(config, workers, directory, settings, progress)
    if workers.is_first:
        plot_scores(directory)
    return _report(audit, arguments, is_first=workers.is_first)


def _report(audit: Any, arguments: argparse.Namespace, *, is_first: bool) -> int:
    """Print on rank 0 and return its exit code; another code would end the job before it prints."""
    if not is_first:
        return 0
    if arguments.json:
        print(json.dumps(audit.to_dict(), indent=2, allow_nan=False), flush=True)
    else:
        print(audit.describe(), flush=True)
    return REFUTED if audit.is_refuted else 0


def _step(arguments: argparse.Namespace) -> AuditedStep:
    """Build the audited settings.

    Raises:
        UserError: no run can have these settings.
    """
    from edp_mx.attacks.audit.audited_step import AuditedStep

    _at_least(arguments.utterances_per_user, 1, "--utterances-per-user")
    settings = {field.name: getattr(arguments, field.name) for field in fields(AuditedStep)}
    settings["adjacency"] = arguments.adjacency.replace("-", "_")
    settings["unit"] = unit_of(arguments.mechanism, arguments.unit)
    step = AuditedStep(**settings)
    step.release(max(arguments.workers, 1))  # refuses impossible numbers
    return step


def _at_least(value: int, least: int, name: str) -> None:
    """Refuse a smaller value."""
    if value < least:
        raise UserError(f"{name} is {value}; it must be {least} or more")


def _say_sound() -> int:
    """Report that --check found nothing wrong."""
    print("the settings are sound; nothing was audited")
    return 0


def _confidence(text: str) -> float:
    """Parse a probability from 0.5 to below 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.5 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no confidence; write for example 0.95")
    return value
