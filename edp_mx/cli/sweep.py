"""Train many settings and find the best on validation: a grid, random draws, or TPE, by Optuna.

Each trial is an `edp-mx train` with a run directory of its own below --out, where trials.png shows
the results; a pruner may stop it early. Call the same command again after an interruption: a trial
that is finished, here or in results/runs.jsonl, is not trained again.
No epsilon covers a choice that was made on private data.
"""

from __future__ import annotations

import argparse
import math
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Optional

from edp_mx.cli.console import add_limits, add_wide, print_json, show, whole, workers_of
from edp_mx.runs.record import RECORDS
from edp_mx.runtime.files import keep_private
from edp_mx.runtime.progress import start_logging

if TYPE_CHECKING:
    from edp_mx.runs.sweep.search import Sweep
    from edp_mx.runs.sweep.trial import Trial

EXAMPLES = """\
examples:
  edp-mx sweep configs/sweep/quickstart.yaml --out sweeps/quickstart
  NP=2 launch/sweep.sh configs/sweep/quickstart.yaml --out sweeps/quickstart
  at most 10 trainings and three hours now, two trials at a time; call it again to go on:
    edp-mx sweep configs/sweep/atis_clc_dp_sgd.yaml --out sweeps/atis \\
      --budget-runs 10 --budget-hours 3 --workers-at-once 2
  look at the trials, and keep their records:
    edp-mx runs sweeps/atis --sort validation
    edp-mx runs keep sweeps/atis/trial-*/

A sweep's file, with paths relative to it:
  base: [../quickstart.yaml, ../mechanism/sgd.yaml]
  method: tpe                # or grid (lists only), or random
  trials: 18
  parameters:
    training.learning_rate: {log_uniform: [1.0e-3, 1.0e-2]}
    training.batch_size: [16, 32]
    model.hidden_size: {int: [32, 96]}
    model.dropout: {uniform: [0.0, 0.5]}
  pruner: halving            # or median, or none: by the score on validation after each epoch
  first_epochs: 2
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("sweep_file", type=Path, metavar="SWEEP", help="YAML file with the settings to try")
    add("--out", type=Path, required=True, metavar="FOLDER", help="folder of the trials' runs")
    add("--budget-runs", type=whole, default=math.inf, metavar="N",
        help="trainings of this call at most")  # fmt: skip
    add_limits(parser)
    add("--records", type=Path, default=RECORDS, metavar="FOLDER|FILE",
        help=f"records of runs that are not trained again ({RECORDS})")  # fmt: skip
    add("--retry", action="store_true", help="train again what failed")
    add("--json", action="store_true", help="print the trials as JSON")
    add_wide(parser)


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.reports.sweep_results import describe_sweep
    from edp_mx.runs.sweep.budget import Budget
    from edp_mx.runs.sweep.config import load_sweep, places_of
    from edp_mx.runs.sweep.search import Sweep

    workers = workers_of(arguments, "edp-mx sweep")
    config, base = load_sweep(arguments.sweep_file)
    start_logging(is_first=True)
    keep_private()
    sweep = Sweep(
        config,
        base,
        arguments.out,
        workers=workers,
        records=[arguments.records],
        places=places_of(arguments.sweep_file),
        is_retried=arguments.retry,
    )
    with closing(sweep):
        is_done = sweep.run(
            Budget(arguments.budget_runs, arguments.budget_hours, arguments.workers_at_once)
        )
    picture = _draw(sweep)
    if arguments.json:
        print_json([_as_json(trial) for trial in sweep.trials])
    else:
        show(describe_sweep(sweep.trials, sweep.folder), is_wide=arguments.wide)
        if picture:
            print(f"{picture} shows the score on validation against each setting")
    if not is_done:
        print(
            "the budget is spent before all trials were trained; call this again to go on",
            file=sys.stderr if arguments.json else sys.stdout,
        )
    return 0


def _draw(sweep: Sweep) -> Optional[Path]:
    """Write the picture of the trials that are trained; return where, None if there are too few."""
    from edp_mx.reports.figures import save_figure
    from edp_mx.reports.sweep_results import Point, plot_sweep

    scored = [trial for trial in sweep.trials if trial.score is not None]
    points = [Point(trial.values, trial.score or 0.0) for trial in scored]
    figure = plot_sweep(points, metric=scored[0].task.metric) if scored else None
    if figure is None:
        return None
    path = sweep.folder / "trials.png"
    save_figure(figure, path)
    return path


def _as_json(trial: Trial) -> Dict[str, Any]:
    names = ("hash", "values", "error", "is_stopped", "records")
    told = {name: getattr(trial, name) for name in names}
    return {**told, trial.task.metric.key: trial.score}
