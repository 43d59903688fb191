"""Whether a long training stays as it began: memory, file handles, threads, speed of each worker.

Run: .venv/bin/python benchmarks/soak.py [--steps 20000] [--workers 2] [--out results/soak.md]

It is a whole `train` of a tiny CLC by DP-SGD with hardened noise: ledger, checkpoints, validation
and logs included. Speed is judged by processor time, which other work on the machine disturbs
least. A quantity is flat if its slope after the first fifth (Theil and Sen, with the 95 % interval)
comes to no more than its allowance over the rest of the run.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence

import numpy as np
from measuring import ROOT
from scipy.stats import theilslopes

from edp_mx.reports.table import render_table
from edp_mx.runtime.files import write_text
from edp_mx.runtime.processes import launcher

SAMPLES = 200  # of a run
CONFIGS = [ROOT / "configs" / "quickstart.yaml", ROOT / "configs" / "mechanism" / "dp_sgd.yaml"]
SETTINGS = [
    *("data.embeddings.dimension=8", "model.hidden_size=8", "model.character_filters=4"),
    *("data.size=1600", "training.batch_size=4", "training.schedule.kind=constant"),
    *("training.checkpoints.every_steps=25", "training.average.kind=ema"),
    *("privacy.target_epsilon=null", "privacy.noise_multiplier=1", "privacy.sampler=shuffle"),
    "privacy.noise.gaussian=hardened",
]
Sample = Dict[str, float]


class Verdict(NamedTuple):
    """How a quantity moved over the whole run: its median, the change and its interval."""

    name: str
    median: float
    change: float
    low: float
    high: float
    allowance: float  # of the change

    @property
    def is_flat(self) -> bool:
        """Whether it has not risen beyond its allowance."""
        return self.change <= self.allowance


# Of each quantity, by how much it may rise over the run: a share of its median, and a number.
ALLOWED = {
    "memory, MB": (0.02, 1.0),
    "file handles": (0.0, 0.5),
    "threads": (0.0, 0.5),
    "processor ms per step": (0.10, 0.0),
}


def main() -> int:
    """Train and judge; or be a worker."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20_000, help="default: 20000")
    parser.add_argument("--workers", type=int, default=2, help="default: 2")
    parser.add_argument("--out", type=Path, help="a Markdown file for the table")
    parser.add_argument("--samples", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.samples:
        work(options.steps, options.samples)
        return 0
    started = time.monotonic()
    by_worker = train(options.steps, options.workers)
    page = describe(by_worker, options.steps, minutes=(time.monotonic() - started) / 60)
    print(page)
    if options.out:
        write_text(options.out, page)
    return 0 if all(v.is_flat for samples in by_worker for v in judge(samples)) else 1


def train(steps: int, workers: int) -> List[List[Sample]]:
    """Run a training of so many workers; return the samples of each."""
    folder = Path(tempfile.mkdtemp(prefix="edp_mx_soak_"))
    command = [sys.executable, __file__, "--steps", str(steps), "--samples", str(folder)]
    if workers > 1:
        command = [*launcher(workers), *command]
    threads = max(1, (os.cpu_count() or 1) // workers)
    path = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])
    environment = {"PYTHONPATH": path, "OMP_NUM_THREADS": str(threads), **os.environ}
    try:
        subprocess.run(command, env=environment, check=True, stdout=sys.stderr)
        files = sorted(folder.glob("samples_*.jsonl"))
        return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def work(steps: int, folder: Path) -> None:
    """Train as one of the workers, and append a sample now and then."""
    from edp_mx.config import load_config
    from edp_mx.data.corpus import load_corpus
    from edp_mx.runs.run_directory import RunDirectory
    from edp_mx.runs.train import train as train_run
    from edp_mx.runtime.distributed import start

    workers = start()
    config = load_config(CONFIGS, SETTINGS)
    per_epoch = len(load_corpus(config.data).train) // config.training.batch_size
    epochs = f"training.epochs={-(-steps // per_epoch)}"
    config = load_config(CONFIGS, [*SETTINGS, epochs])
    run = RunDirectory(folder / "run")
    if workers.is_first:
        run.create("soak", "name: soak\n")
    workers.agree("the folder", str(folder))
    watch = Watch(folder / f"samples_{workers.rank}.jsonl", every=max(1, steps // SAMPLES))
    train_run(config, workers, run, watch.progress)


class Watch:
    """Stands for the progress bars, and samples this process every so many training steps."""

    def __init__(self, path: Path, *, every: int) -> None:
        self._path, self._every, self._step = path, every, 0
        self._last: Optional[float] = None  # processor seconds at the last sample

    def progress(self, items: Iterable[Any], what: str, _: Optional[int]) -> Iterable[Any]:
        return self._steps(items) if what.startswith("epoch") else items

    def _steps(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            yield item
            self._step += 1
            if self._step % self._every == 0:
                self._sample()

    def _sample(self) -> None:
        busy = time.process_time()
        if self._last is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(self._state(busy - self._last)) + "\n")
        self._last = busy

    def _state(self, busy: float) -> Sample:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return {
            "step": self._step,
            "memory, MB": pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
            "file handles": len(os.listdir("/proc/self/fd")),
            "threads": len(os.listdir("/proc/self/task")),
            "processor ms per step": 1000 * busy / self._every,
        }


def judge(samples: Sequence[Sample]) -> List[Verdict]:
    """Return how each quantity of a worker moved from the first fifth of its run on."""
    kept = samples[len(samples) // 5 :]
    steps = np.array([sample["step"] for sample in kept])
    verdicts = []
    for name, (share, number) in ALLOWED.items():
        values = np.array([sample[name] for sample in kept])
        slope, _, low, high = theilslopes(values, steps)
        length, median = steps[-1] - steps[0], float(np.median(values))
        moved = [float(each * length) for each in (slope, low, high)]
        verdicts.append(Verdict(name, median, *moved, allowance=share * median + number))
    return verdicts


def describe(by_worker: Sequence[Sequence[Sample]], steps: int, *, minutes: float) -> str:
    rows = [
        [
            *(str(rank), v.name, f"{v.median:.2f}"),
            f"{v.change:+.2f} ({v.low:+.2f} to {v.high:+.2f})",
            f"{v.allowance:.2f}",
            "flat" if v.is_flat else "RISES",
        ]
        for rank, samples in enumerate(by_worker)
        for v in judge(samples)
    ]
    header = ("worker", "quantity", "median", "change over the run (95 %)", "allowed", "")
    count = len(list(chain(*by_worker)))
    return (
        f"# {steps:,} steps of {len(by_worker)} workers\n\n"
        f"`.venv/bin/python benchmarks/soak.py --steps {steps} --workers {len(by_worker)}`: "
        f"{minutes:.0f} minutes, {count} samples, the first fifth of each worker's left out.\n\n"
        f"{render_table(header, rows)}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
