"""Measure a lower bound on epsilon through the real mechanism, trainer and workers.

A claim that it refutes is false; one that it does not refute is not proven.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edp_mx.cli.console import (
    add_command,
    add_configs,
    add_overrides,
    require_at_least,
    tell,
    values_of,
    whole,
    written_as,
)
from edp_mx.cli.plan_options import add_release_options
from edp_mx.dp.accounting.choices import CLIP_RULES, CLIPPINGS, unit_of
from edp_mx.runs.run_directory import RunDirectory
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
With several workers use launch/audit.sh, which starts them.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the three audits."""
    audits = parser.add_subparsers(dest="audit", metavar="AUDIT", required=True)

    noise = _add(audits, "noise", run_noise, "compare the released noise with the accounting")
    _add_step(noise)
    add = noise.add_argument
    add("--size", type=whole, default=100_000, metavar="n", help="coordinates per layer (100000)")
    add("--steps", type=whole, default=4, metavar="T", help="steps with zero gradients (4)")
    add("--confidence", type=CONFIDENCE, default=0.999999, metavar="P",
        help="probability with which a sound system passes (0.999999)")  # fmt: skip

    step = _add(audits, "step", run_step, "tell worst-case neighbours apart in single steps")
    _add_step(step)
    add = step.add_argument
    add("--draws", type=whole, default=1000, metavar="D", help="in each world and layer (1000)")
    add("--delta", type=float, default=1e-5, metavar="D", help="delta of bound and claims (1e-5)")
    _add_confidence(step)
    add("--claim", choices=CLAIMS, help="what is audited (published for that variant, else holds)")
    add("--alone", action="store_true", help="one worker moves at a time: N times slower")

    one_run = _add(audits, "one-run", run_one_run, "train once with canaries and guess them")
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


def _add(audits: Any, name: str, run: Any, summary: str) -> argparse.ArgumentParser:
    """Add one audit with the options that all have."""
    parser = add_command(audits, name, run, summary, EXAMPLES)
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    parser.add_argument("--check", "--check-files", action="store_true",
                        help="check the settings, audit nothing")  # fmt: skip
    parser.add_argument("--workers", type=whole, default=1, help="with --check: how many there are")
    return parser


def _add_step(parser: argparse.ArgumentParser) -> None:
    """Declare the fields of `AuditedStep`, whose defaults the help repeats."""
    add_release_options(
        parser, size=int, variant="calibrated", micro_batch_size=16, layer_scales="1,0.25"
    )
    add = parser.add_argument
    add("--clipping", choices=CLIPPINGS, help="a backward pass per unit, or ghost clipping (loop)")
    add("--clip-rule", choices=CLIP_RULES, help="how a unit is shortened to C (abadi)")
    add("--noise-multiplier", type=float, metavar="Z", help="noise multiplier z (1)")
    add("--utterances-per-user", type=whole, metavar="K", help="with --unit user (4)")
    add("--sample-rate", type=float, metavar="q", help="sample rate of poisson, about (0.5)")


def run_noise(arguments: argparse.Namespace) -> int:
    """Run A0; rank 0 prints the checks."""
    step = _step(arguments)
    require_at_least(arguments.size, 1000, "--size")
    require_at_least(arguments.steps, 2, "--steps")
    if arguments.check:
        return _say_sound()

    from edp_mx.attacks.audit.noise import audit_noise
    from edp_mx.runtime.distributed import start

    workers = start()
    settings = {key: getattr(arguments, key) for key in ("size", "steps", "confidence")}
    return _report(audit_noise(workers, step, **settings), arguments, is_first=workers.is_first)


def run_step(arguments: argparse.Namespace) -> int:
    """Run A1; rank 0 prints the verdict."""
    from edp_mx.dp.accounting.delta import choose_delta

    step = _step(arguments)
    require_at_least(arguments.draws, 10, "--draws")
    choose_delta(num_examples=1, delta=arguments.delta)  # refuses an impossible δ
    if arguments.check:
        return _say_sound()

    from edp_mx.attacks.audit.step import audit_step
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
    from edp_mx.attacks.audit.one_run import README, OneRunSettings, audit_one_run
    from edp_mx.config import ExperimentConfig, load_config
    from edp_mx.dp.sampling.shuffle import micro_batch_size

    config: ExperimentConfig = load_config(arguments.configs, arguments.overrides)
    settings = OneRunSettings(**values_of(OneRunSettings, arguments))
    if arguments.check:
        micro_batch_size(config.training.batch_size, arguments.workers)
        return _say_sound()

    from edp_mx.reports.attack_pictures import plot_canaries
    from edp_mx.runs.lifecycle import RunRequest, enter_run
    from edp_mx.runtime.distributed import start

    workers = start()
    # Rank 0 prepares the directory; no worker writes before it exists.
    request = RunRequest(readme=README, **values_of(RunRequest, arguments))
    path = workers.on_first(lambda: str(request.create(config, suffix="-audit").path))
    directory = RunDirectory(Path(path))
    progress = enter_run(directory, workers)
    audit = audit_one_run(config, workers, directory, settings, progress)
    if workers.is_first:
        plot_canaries(directory)
    return _report(audit, arguments, is_first=workers.is_first)


def _report(audit: Any, arguments: argparse.Namespace, *, is_first: bool) -> int:
    """Print on rank 0 and return its exit code; another code would end the job before it prints."""
    if not is_first:
        return 0
    tell(arguments, audit.to_dict, audit.describe)
    return REFUTED if audit.is_refuted else 0


def _step(arguments: argparse.Namespace) -> AuditedStep:
    """Build the audited settings, and refuse those that no run can have."""
    from edp_mx.attacks.audit.audited_step import AuditedStep

    asked = values_of(AuditedStep, arguments)
    settings = {name: value for name, value in asked.items() if value is not None}
    settings["unit"] = unit_of(arguments.mechanism or "edp_sgd", arguments.unit)
    settings["adjacency"] = (arguments.adjacency or "replace-one").replace("-", "_")
    step = AuditedStep(**settings)
    require_at_least(step.utterances_per_user, 1, "--utterances-per-user")
    step.release(max(arguments.workers, 1))  # refuses impossible numbers
    return step


def _say_sound() -> int:
    """Report that --check found nothing wrong."""
    print("the settings are sound; nothing was audited")
    return 0
