"""Epoch time of a configuration, before and after: an earlier commit beside the code as it is.

Run: .venv/bin/python benchmarks/epoch_time.py [CONFIG …] [--before COMMIT] [--json FILE]

The earlier code is taken out of git into a temporary folder. Both train the configuration, each its
own, from the same seed on the same data, and take turns of a few steps: the same steps of the same
epoch, one right after the other. One worker with all cores, as the launcher starts it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Dict, List

from rounds import progress, ratio
from sides import Side, end_sides_on_sigterm

from edp_mx.reports.table import render_table
from edp_mx.runtime.files import write_json

ROOT = Path(__file__).resolve().parents[1]
BEFORE = "506e47e"  # the last one before noise in numbered blocks, where issue 7 began
CONFIGS = ("atis_clc_sgd", "atis_clc_edp_exponential")


def main() -> None:
    """Takes out, measures and prints."""
    options = _options()
    end_sides_on_sigterm()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        take_out(options.before, Path(folder))
        for config in options.configs:
            progress(f"{config}: preparing both")
            results[config] = measure(config, Path(folder), options)
    print(page(results), flush=True)
    if options.json:
        write_json(options.json, results)


def take_out(commit: str, folder: Path) -> None:
    """The files of a commit, into a folder.

    Raises:
        SystemExit: git does not have it.
    """
    packed = subprocess.run(
        ["git", "-C", ROOT, "archive", commit, "edp_mx", "configs"], capture_output=True
    )
    if packed.returncode:
        why = packed.stderr.decode(errors="replace").strip()
        raise SystemExit(
            f"the code of {commit} cannot be had from git ({why}): fetch the whole history, or "
            "name another commit by --before"
        )
    subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)


def measure(config: str, before: Path, options: argparse.Namespace) -> Dict[str, Any]:
    """Seconds of the turns of both, and how many steps each turn had."""
    seconds: Dict[str, List[float]] = {"before": [], "after": []}
    turns: List[int] = []
    with ExitStack() as stack:
        sides = {}
        for name, root in (("before", before), ("after", ROOT)):
            sides[name] = start(config, root)
            stack.callback(sides[name].close)
        epoch = sides["after"].about[0]["steps"]
        left = min(options.steps or epoch, epoch - 1)  # the first one is in no turn
        while left:
            turns.append(min(options.turn, left))
            left -= turns[-1]
            for name in sorted(sides, reverse=len(turns) % 2 == 1):
                seconds[name] += sides[name].turn(turns[-1])
            progress(f"{config}: {left} steps left of each")
    return {"seconds": seconds, "turns": turns, "steps": epoch, "before": options.before}


def start(config: str, root: Path) -> Side:
    """Trains a configuration with the code of a folder."""
    threads = str(len(os.sched_getaffinity(0)))  # as launch/environment.sh, for one worker
    side = str(Path(__file__).with_name("epoch_side.py"))
    return Side(
        [sys.executable, side, *map(str, files_of(config, root / "configs"))],
        environment={"OMP_NUM_THREADS": threads, "PYTHONPATH": str(root)},
    )


def files_of(config: str, configs: Path) -> List[Path]:
    """The files of a corpus, model and mechanism; older commits have one for each combination."""
    whole = configs / f"{config}.yaml"
    if whole.exists():
        return [whole]
    corpus, family, mechanism = re.fullmatch(r"(.*)_(clc|bert)_(.*)", config).groups()
    return [configs / f"{corpus}_{family}.yaml", configs / "mechanism" / f"{mechanism}.yaml"]


def page(results: Dict[str, Dict[str, Any]]) -> str:
    """The table: an epoch's seconds, from the steps that were taken, and their ratio by turns."""
    rows = []
    for config, result in results.items():
        seconds, measured = result["seconds"], sum(result["turns"])
        epochs = [sum(seconds[name]) / measured * result["steps"] for name in ("before", "after")]
        rows.append(
            [
                config,
                f"{measured} of {result['steps']}",
                *(f"{value:.1f}" for value in epochs),
                ratio(seconds, "after", "before").show(2),
            ]
        )
    commits = " and ".join(sorted({result["before"] for result in results.values()}))
    title = (
        f"An epoch, one worker, before ({commits}) and after; ratio by turns: median (quartiles)"
    )
    columns = ("configuration", "steps", "before, s", "after, s", "after ÷ before")
    return f"\n{title}\n\n{render_table(columns, rows)}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "configs", nargs="*", default=CONFIGS, help="<corpus>_<model>_<mechanism> …"
    )
    parser.add_argument("--before", default=BEFORE, metavar="COMMIT")
    parser.add_argument("--steps", type=int, help="of the epoch; all if left out")
    parser.add_argument("--turn", type=int, default=4, help="steps of a turn")
    parser.add_argument("--json", metavar="FILE", help="where to write all seconds")
    return parser.parse_args()


if __name__ == "__main__":
    main()
