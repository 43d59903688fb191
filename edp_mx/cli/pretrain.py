"""Pre-train a BERT as a masked language model.

The text must be public: pre-training gives it no privacy.
"""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import Any

from edp_mx.cli.console import values_of
from edp_mx.cli.start import add_start_options, start_run

EXAMPLES = """\
examples:
  edp-mx data text snips nlu_eval communication health video --size 4000 --out text/for_atis.txt.gz
  edp-mx pretrain configs/pretrain/pretraining.yaml --set text.train=[text/for_atis.txt.gz]
  NP=2 launch/pretrain.sh configs/pretrain/public_text.yaml --set pretraining.epochs=5
  NP=2 launch/pretrain.sh --resume runs/pretraining-20260101-120000

With several workers use launch/pretrain.sh, which starts them. RUN/model is then a
BERT in Hugging Face's layout: set model.checkpoint to it to fine-tune it.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_start_options(parser, "pretraining.epochs=5 pretraining.batch_size=32")


def run(arguments: argparse.Namespace) -> int:
    """Pre-train; rank 0 prints the perplexity."""
    from edp_mx.runs.lifecycle import RunRequest
    from edp_mx.runs.pretraining.config import PretrainingConfig
    from edp_mx.runs.pretraining.directory import README

    request = RunRequest(kind=PretrainingConfig, readme=README, **values_of(RunRequest, arguments))
    return start_run(
        arguments,
        request,
        _pretrain,
        check=_check,
        describe=_describe,
        as_json=lambda directory: {"path": str(directory.path), **directory.read("results")},
    )


def _pretrain(config: Any, workers: Any, directory: Any, progress: Any, parting: Any) -> None:
    from edp_mx.reports.curves import plot_pretraining
    from edp_mx.runs.pretraining.pretrain import pretrain

    pretrain(config, workers, directory, progress, parting)
    if workers.is_first:
        plot_pretraining(directory)


def _describe(directory: Any) -> str:
    from edp_mx.runs.pretraining.scores import MaskedScores

    results = directory.read("results")
    scores = MaskedScores(**{field.name: results[field.name] for field in fields(MaskedScores)})
    return f"{scores.describe()}; the model is {directory.path / 'model'}"


def _check(config: Any, num_workers: int, *_: Any) -> str:
    from edp_mx.data.text import Text
    from edp_mx.dp.sampling.shuffle import micro_batch_size

    micro_batch_size(config.pretraining.batch_size, num_workers, "pretraining.batch_size")
    Text.open(config.text)
    return f"{config.name}: the text is there"
