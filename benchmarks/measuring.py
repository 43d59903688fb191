"""What all benchmarks share: options, steps that take turns, quartiles, tables and the record."""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence

from edp_mx.reports.table import render_table, show_quartiles
from edp_mx.runtime.files import write_json, write_text
from edp_mx.runtime.threads import allowed_threads

ROOT = Path(__file__).resolve().parents[1]
FAMILIES = ("clc", "bert")
PAUSE = 0.05  # seconds before a step, in which the threads of other libraries come to rest
WARM_UP = 2  # rounds that are not counted
clock = time.perf_counter  # `time.process_time` on a busy machine, for one thread

Seconds = Dict[str, List[float]]  # of each step, by round
Figures = Dict[str, List[float]]  # by the name that a bar knows, by round


def ratios(values: Mapping[str, Sequence[float]], name: str, base: str) -> List[float]:
    """Divide one list of measurements by another, round by round."""
    return [one / other for one, other in zip(values[name], values[base])]


def in_turn(
    steps: Mapping[str, Callable[[], float]], *, rounds: int, pause: float = 0.0
) -> Seconds:
    """Let steps take turns, in another order each round; return the seconds of each, by round.

    A pause before each step lets the threads of another library or process stop spinning. The order
    is drawn, because a step is slower behind some than behind others.
    """
    seconds: Seconds = {name: [] for name in steps}
    draw = random.Random(0)
    for number in range(WARM_UP + rounds):
        for name in draw.sample(list(steps), len(steps)):
            time.sleep(pause)
            taken = steps[name]()
            if number >= WARM_UP:
                seconds[name].append(taken)
    return seconds


def timed(work: Callable[[], object]) -> Callable[[], float]:
    """Return a step that does the work, waits until MXNet is done and returns the seconds."""
    import mxnet as mx  # not needed by those that only read figures

    def step() -> float:
        started = clock()
        work()
        mx.nd.waitall()
        return clock() - started

    return step


def show_seconds(title: str, seconds: Seconds, *bases: str) -> str:
    """Render milliseconds per step, and ratios to each of the bases, round by round."""
    times = {name: [1e3 * value for value in values] for name, values in seconds.items()}
    return _show_table(title, ("step", "ms"), times, bases, digits=1)


def show_rates(title: str, column: str, rates: Seconds, base: str, *, digits: int) -> str:
    """Render utterances per second, and ratios to the base, round by round."""
    return _show_table(title, (column, "utterances/s"), rates, (base,), digits=digits)


def _show_table(
    title: str, columns: Sequence[str], found: Seconds, bases: Sequence[str], *, digits: int
) -> str:
    rows = [
        [
            name,
            show_quartiles(values, digits),
            *(show_quartiles(ratios(found, name, base), 2) for base in bases),
        ]
        for name, values in found.items()
    ]
    table = render_table((*columns, *(f"÷ {base}" for base in bases)), rows)
    return f"\n{title}: median (quartiles)\n\n{table}"


def in_a_process(script: str, *arguments: str, **environment: str) -> Any:
    """Run a script in a process of its own and return what it prints as JSON."""
    command = [sys.executable, script, *arguments]
    environment = {**os.environ, **environment}
    process = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    return json.loads(process.stdout)


def build_parser(
    description: str, *, rounds: int, has_models: bool = True, more_models: Sequence[str] = ()
) -> argparse.ArgumentParser:
    """Return a parser with the options that all benchmarks share."""
    models = (*FAMILIES, *more_models)
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    if has_models:
        parser.add_argument(
            "--model", nargs="+", choices=models, default=FAMILIES, help="default: clc bert"
        )
    parser.add_argument("--rounds", type=int, default=rounds, help=f"default: {rounds}")
    parser.add_argument("--json", metavar="FILE", help="write the figures of each round here")
    return parser


def record(options: argparse.Namespace, figures: Figures) -> None:
    """Write the figures to the file that --json names, if any."""
    if options.json:
        rounded = {name: [float(f"{v:.4g}") for v in values] for name, values in figures.items()}
        write_json(options.json, rounded)


def settle_threads() -> None:
    """Restart the script with OMP_NUM_THREADS set: by itself MXNet takes half the cores."""
    if "OMP_NUM_THREADS" not in os.environ:  # workers have it from edp_mx
        environment = {**os.environ, "OMP_NUM_THREADS": str(allowed_threads())}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def progress(what: str) -> None:
    """Say on standard error what a benchmark is doing."""
    print(what, file=sys.stderr, flush=True)


def write_section(path: Path, text: str) -> None:
    """Write a section, from its heading `# …` on, into a page; its other sections stay."""
    page = path.read_text() if path.exists() else ""
    sections = re.split(r"^(?=# )", page, flags=re.M)
    heading = text.partition("\n")[0]
    places = [i for i, each in enumerate(sections) if each.partition("\n")[0] == heading]
    place = places[0] if places else len(sections)
    sections[place : place + 1] = [text.rstrip("\n") + "\n"]
    write_text(path, "\n".join(each.rstrip("\n") + "\n" for each in sections if each.strip()))
