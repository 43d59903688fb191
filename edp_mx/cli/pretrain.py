"""`edp-mx pretrain`: a BERT from public text."""

from __future__ import annotations

import argparse
from typing import Any

EXAMPLES = """examples:
  edp-mx data text snips nlu_eval communication health video --size 4000 --out text/for_atis.txt.gz
  edp-mx pretrain configs/pretrain/for_atis.yaml
  NP=2 launch/pretrain.sh configs/pretrain/for_atis.yaml --set pretraining.epochs=5
  NP=2 launch/pretrain.sh --resume runs/pretrain_for_atis-20260101-120000

With several workers use launch/pretrain.sh, which starts them by horovodrun. RUN/model is then a
BERT in Hugging Face's layout: set model.checkpoint to it to fine-tune it.
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "pretrain",
        help="pre-train a BERT on public text",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Pre-trains a BERT as a masked language model. The text must be public: there "
        "is no privacy here.",
    )
    from edp_mx.cli.console import add_start_options

    add_start_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Pre-trains; rank 0 prints the perplexity."""
    from edp_mx.cli.console import progress_bar, refuse_mixed_start, settle, start_logging

    refuse_mixed_start(arguments)
    if arguments.check:
        return _check(arguments)

    from edp_mx.config import dump_config
    from edp_mx.reports.pretraining_curves import plot_pretraining
    from edp_mx.runs.pretraining import directory as pretraining_directory
    from edp_mx.runs.pretraining.pretrain import pretrain
    from edp_mx.runtime.distributed import start

    workers = start()

    config, directory = settle(
        arguments,
        workers,
        lambda: _config(arguments),
        lambda directory, config: pretraining_directory.create(
            directory, config.name, dump_config(config)
        ),
    )
    start_logging(is_first=workers.is_first, file=directory.log(workers.rank))
    results = pretrain(config, workers, directory, progress_bar(is_first=workers.is_first))
    if workers.is_first:
        plot_pretraining(directory)
        print(
            f"held-out perplexity {results['perplexity']:.2f} (unigram "
            f"{results['unigram_perplexity']:.1f}); the model is {directory.path / 'model'}"
        )
    return 0


def _config(arguments: argparse.Namespace) -> Any:
    """The configuration, or that of the run to go on with.

    Raises:
        UserError: it is unsound, there is no such run, or it has ended.
    """
    from edp_mx.config import load_config
    from edp_mx.runs.pretraining.config import PretrainingConfig
    from edp_mx.runs.run_directory import RunDirectory

    if arguments.resume is None:
        return load_config(arguments.config, arguments.overrides, kind=PretrainingConfig)
    run = RunDirectory.unfinished(arguments.resume)
    return load_config(run.config, kind=PretrainingConfig)


def _check(arguments: argparse.Namespace) -> int:
    """Says whether the settings are sound; trains nothing."""
    from edp_mx.data.sampling import micro_batch_size
    from edp_mx.data.text import Text

    config = _config(arguments)
    micro_batch_size(config.pretraining.batch_size, arguments.workers)
    Text.open(config.text)
    print(f"{arguments.config or arguments.resume} is sound; nothing was trained")
    return 0
