"""`edp-mx train`: one configuration, one run directory."""

from __future__ import annotations

import argparse
from typing import Any

EXAMPLES = """examples:
  edp-mx train configs/quickstart_edp_exponential.yaml
  NP=2 launch/train.sh configs/atis_clc_sgd.yaml --set training.epochs=20
  edp-mx train configs/atis_clc_sgd.yaml --check
  NP=2 launch/train.sh --resume runs/atis_clc_sgd-20260101-120000

With several workers use launch/train.sh, which starts them by horovodrun.
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "train",
        help="train a model from a configuration",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Trains a model and leaves a run directory that explains itself.",
    )
    from edp_mx.cli.console import add_start_options

    add_start_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Trains; rank 0 prints the scores and the guarantee."""
    from edp_mx.cli.console import refuse_mixed_start

    refuse_mixed_start(arguments)
    if arguments.check:
        return _check(arguments)

    from edp_mx.cli.console import progress_bar, settle, start_logging
    from edp_mx.config import dump_config
    from edp_mx.reports.curves import plot_curves
    from edp_mx.reports.summary import summarise
    from edp_mx.runs.train import train
    from edp_mx.runtime.distributed import start

    workers = start()

    config, directory = settle(
        arguments,
        workers,
        lambda: _config(arguments),
        lambda directory, config: directory.create(config.name, dump_config(config)),
    )
    start_logging(is_first=workers.is_first, file=directory.log(workers.rank))
    train(config, workers, directory, progress_bar(is_first=workers.is_first))
    if workers.is_first:
        plot_curves(directory)
        print(summarise(directory))
    return 0


def _config(arguments: argparse.Namespace) -> Any:
    """The configuration, or that of the run to go on with.

    Raises:
        UserError: it is unsound, there is no such run, or it has ended.
    """
    from edp_mx.config import load_config

    if arguments.resume is None:
        return load_config(arguments.config, arguments.overrides)
    from edp_mx.runs.run_directory import RunDirectory

    return load_config(RunDirectory.unfinished(arguments.resume).config)


def _check(arguments: argparse.Namespace) -> int:
    """Says whether the settings are sound; trains nothing."""
    from edp_mx.data.sampling import micro_batch_size

    config = _config(arguments)
    if config.privacy.sampler == "shuffle":
        lanes = arguments.workers * config.privacy.micro_batches_per_worker
        micro_batch_size(config.training.batch_size, lanes)
    print(f"{arguments.config or arguments.resume} is sound; nothing was trained")
    return 0
