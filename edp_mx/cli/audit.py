"""Measure a lower bound on epsilon through the real mechanism, trainer and workers.

A claim that it refutes is false; one that it does not refute is not proven.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, List, Optional

from edp_mx.cli.console import (
    add_command,
    add_configs,
    add_overrides,
    require_at_least,
    tell,
    values_of,
    whole,
    workers_to_check,
    written_as,
)
from edp_mx.cli.plan_options import add_layer_scales
from edp_mx.runs.early_plan import load_planned
from edp_mx.runtime.progress import progress_bar

if TYPE_CHECKING:
    from edp_mx.attacks.audit.audited_step import AuditedStep

CLAIMS = ("published", "holds")
REFUTED = 1  # exit code


def _confidence(text: str) -> float:
    """Parse a probability from 0.5 to below 1."""
    if not 0.5 <= float(text) < 1:
        raise ValueError
    return float(text)


CONFIDENCE = written_as("0.95", _confidence)
EXAMPLES = """examples:
  launch/audit.sh noise
  launch/audit.sh step
  NP=2 launch/audit.sh one-run configs/audit/one_run.yaml
  more: edp-mx audit step --help
"""
NOISE_EXAMPLES = """examples:
  compare the noise of 8 workers with the accounting:
    launch/audit.sh noise
"""
STEP_EXAMPLES = """examples:
  attack single steps of 8 workers:
    launch/audit.sh step
  attack the paper's accounting (exit code 1: refuted):
    launch/audit.sh step --set privacy.variant=published
  the paper's eight micro-batches on two workers:
    NP=2 launch/audit.sh step --set privacy.micro_batches_per_worker=4
  DP-SGD by ghost clipping on Poisson batches, per utterance, or per user of 8 utterances:
    NP=2 launch/audit.sh step --set privacy.mechanism=dp_sgd privacy.sampler=poisson \\
        privacy.adjacency=zero_out
    NP=2 launch/audit.sh step --set privacy.mechanism=dp_sgd privacy.unit=user \\
        privacy.max_utterances_per_user=8
  the step of a configuration, with noise of one's own where it has a target:
    NP=2 launch/audit.sh step configs/mechanism/dp_sgd.yaml --set privacy.noise_multiplier=1 \\
        privacy.target_epsilon=null training.batch_size=32
"""
READ = """
It reads the settings below `privacy`, and training.batch_size; its options are what no
configuration has.
"""
ONE_RUN_EXAMPLES = """examples:
  a whole run with 1000 canaries in its training part:
    NP=2 launch/audit.sh one-run configs/audit/one_run.yaml
"""
CODES = """
Exit code 0: the claim was not refuted. 1: it was refuted. 2: the user has to correct something.
If a worker dies, launch/audit.sh also ends with 1, but prints no verdict.
With several workers use launch/audit.sh, which starts them.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    audits = parser.add_subparsers(dest="audit", metavar="AUDIT", required=True)

    summary = "compare the released noise with the accounting"
    noise = _add(audits, "noise", run_noise, summary, NOISE_EXAMPLES + READ)
    _add_step(noise)
    add = noise.add_argument
    add("--size", type=whole, default=100_000, metavar="n", help="coordinates per layer (100000)")
    add("--steps", type=whole, default=4, metavar="T", help="steps with zero gradients (4)")
    add("--confidence", type=CONFIDENCE, default=0.999999, metavar="P",
        help="probability with which a sound system passes (0.999999)")  # fmt: skip

    summary = "tell worst-case neighbours apart in single steps"
    step = _add(audits, "step", run_step, summary, STEP_EXAMPLES + READ)
    _add_step(step)
    add = step.add_argument
    add("--draws", type=whole, default=1000, metavar="D", help="in each world and layer (1000)")
    _add_confidence(step)
    add("--claim", choices=CLAIMS, help="what is audited (published for that variant, else holds)")
    add("--alone", action="store_true", help="one worker moves at a time: N times slower")

    summary = "train once with canaries and guess them"
    one_run = _add(audits, "one-run", run_one_run, summary, ONE_RUN_EXAMPLES)
    add_configs(one_run)
    add_overrides(one_run)
    add = one_run.add_argument
    add("--canaries", type=whole, default=1000, metavar="m", help="number of canaries (1000)")
    add("--tokens", type=whole, default=6, metavar="T", help="words of each canary (6)")
    _add_confidence(one_run)
    add("--claim", choices=CLAIMS, default="holds", help="what is audited (holds)")
    add("--run", dest="run_directory", type=Path, help="the run directory (default: new)")
    add("--runs", type=Path, default=Path("runs"), help="where run directories go")


def _add_confidence(parser: argparse.ArgumentParser) -> None:
    """Add the confidence of an audit that ends with a bound on ε."""
    parser.add_argument(
        "--confidence", type=CONFIDENCE, default=0.95, metavar="P", help="of the bound (0.95)"
    )


def _add(audits: Any, name: str, run: Any, summary: str, said: str) -> argparse.ArgumentParser:
    """Add one audit with the options that all have."""
    parser = add_command(audits, name, run, summary, said + CODES)
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    parser.add_argument("--check", "--check-files", action="store_true",
                        help="check the settings, audit nothing")  # fmt: skip
    parser.add_argument("--workers", type=whole, help="with --check: how many there are (1)")
    return parser


def _add_step(parser: argparse.ArgumentParser) -> None:
    """Declare the configuration of the step, and the options of an audit."""
    add_configs(parser, nargs="*")
    add_overrides(parser, "privacy.variant=published privacy.noise_multiplier=2")
    add_layer_scales(parser, default=(1.0, 0.25), help="alpha of each layer (1,0.25)")
    parser.add_argument(
        "--sample-rate", type=float, default=0.5, metavar="q", help="of poisson, about (0.5)"
    )


def run_noise(arguments: argparse.Namespace) -> int:
    """Run A0; rank 0 prints the checks."""
    count = workers_to_check(arguments)
    require_at_least(arguments.size, 1000, "--size")
    require_at_least(arguments.steps, 2, "--steps")
    if arguments.check:
        return _check_step(arguments, count)

    from edp_mx.attacks.audit.noise import audit_noise
    from edp_mx.runtime.distributed import start

    workers = start()
    step = _step(arguments, workers.size)
    settings = {key: getattr(arguments, key) for key in ("size", "steps", "confidence")}
    return _report(audit_noise(workers, step, **settings), arguments, is_first=workers.is_first)


def run_step(arguments: argparse.Namespace) -> int:
    """Run A1; rank 0 prints the verdict."""
    count = workers_to_check(arguments)
    require_at_least(arguments.draws, 10, "--draws")
    if arguments.check:
        return _check_step(arguments, count)

    from edp_mx.attacks.audit.step import audit_step
    from edp_mx.runtime.distributed import start

    workers = start()
    step = _step(arguments, workers.size)
    variant = step.release.variant
    audit = audit_step(
        workers,
        step,
        draws=arguments.draws,
        confidence=arguments.confidence,
        claim=arguments.claim or ("published" if variant == "published" else "holds"),
        is_alone=arguments.alone,
        progress=progress_bar(is_first=workers.is_first),
    )
    return _report(audit, arguments, is_first=workers.is_first)


def run_one_run(arguments: argparse.Namespace) -> int:
    """Run A2; rank 0 fills the run directory and prints the verdict."""
    from edp_mx.attacks.audit.one_run import README, OneRunSettings, audit_one_run
    from edp_mx.runs.check import check_numbers
    from edp_mx.runs.lifecycle import RunRequest, carry_out

    count = workers_to_check(arguments)
    settings = OneRunSettings(**values_of(OneRunSettings, arguments))
    request = RunRequest(suffix="-audit", readme=README, **values_of(RunRequest, arguments))
    if arguments.check:
        check_numbers(request.config(), count or 1)
        return _say_sound()

    from edp_mx.reports.attack_pictures import plot_canaries

    audits: List[Any] = []

    def work(config: Any, workers: Any, directory: Any, progress: Any, _: Any) -> None:
        audits.append(audit_one_run(config, workers, directory, settings, progress))
        if workers.is_first:
            plot_canaries(directory)

    workers, _ = carry_out(request, work)
    return _report(audits[0], arguments, is_first=workers.is_first)


def _report(audit: Any, arguments: argparse.Namespace, *, is_first: bool) -> int:
    """Print on rank 0 and return its exit code; another code would end the job before it prints."""
    if not is_first:
        return 0
    tell(arguments, audit.to_dict, audit.describe)
    return REFUTED if audit.is_refuted else 0


def _step(arguments: argparse.Namespace, num_workers: int) -> AuditedStep:
    """Build the audited step, and refuse settings that no run can have."""
    from edp_mx.attacks.audit.audited_step import AuditedStep

    config = load_planned(arguments.configs, arguments.overrides)
    return AuditedStep.of(
        config.privacy,
        batch_size=config.training.batch_size,
        num_workers=num_workers,
        layer_scales=arguments.layer_scales,
        sample_rate=arguments.sample_rate,
    )


def _check_step(arguments: argparse.Namespace, count: Optional[int]) -> int:
    _step(arguments, count or 1)
    return _say_sound()


def _say_sound() -> int:
    """Report that --check found nothing wrong."""
    print("the settings are sound; nothing was audited")
    return 0
