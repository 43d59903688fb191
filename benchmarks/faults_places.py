"""Kill what faults.py does not: sweeps, tables, runs that store features or average their weights.

Run: .venv/bin/python benchmarks/faults_places.py --out results/faults.md     after faults.py
     … --kills 2 --only sweep --out /tmp/faults.md                            a first, smaller table

SIGKILL strikes at drawn instants; the same command is then called again, and at last let end. Each
time all that lies there is looked at, and in the end what was released is counted again.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Dict, List, NamedTuple

import numpy as np
import psutil
from faults import PATIENCE, recount
from measuring import ROOT, write_section

from edp_mx.dp.checkpoint_file import damage_of
from edp_mx.reports.table import render_table
from edp_mx.runs.file_types import Record
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_text

SIZES = [
    "data.embeddings.dimension=8", "model.hidden_size=8", "model.character_filters=4",
    "training.batch_size=16", "training.checkpoints.every_steps=2",
]  # fmt: skip
DP = ["mechanism/dp_sgd.yaml"]
NOISE = ["privacy.target_epsilon=null", "privacy.noise_multiplier=1.0", "privacy.chunk_size=16"]
HEADS = ["model.trained=heads", "data.size=2000", "training.batch_size=128", "training.epochs=6"]
EMA = ["data.size=200", "training.epochs=8", "training.average.kind=ema",
       "training.average.decay=0.9"]  # fmt: skip
RUNS = {
    "stored features": ([], HEADS),
    "stored features, DP-SGD": (DP, [*HEADS, *NOISE]),
    "average (ema)": ([], EMA),
    "average (ema), DP-SGD": (DP, [*EMA, *NOISE]),
}
SWEEP = """\
base: [{base}]
parameters:
  training.seed: [0, 1, 2]
  data.size: [200]
  training.epochs: [4]
  privacy.noise_multiplier: [1.0]
"""
STORING = "frozen layers"  # what a run says while it stores features


class Released(NamedTuple):
    """A run and the record of its steps, as `faults.recount` asks for them."""

    run: RunDirectory
    record: Path

    def released(self) -> Counter:
        lines = self.record.read_text().split("\n") if self.record.exists() else []
        return Counter(tuple(map(int, line.split())) for line in lines if line)


class Place:
    """A command that is killed and called again, and the folder in which it works."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.records = name, folder, folder / "steps"
        self.records.mkdir(parents=True)
        self.kills: List[str] = []
        self._ledgers: Dict[Path, bytes] = {}

    def words(self) -> List[str]:
        """The module and its words, whose run folders lie in `self.folder`."""
        if self.name in RUNS:
            layers, settings = RUNS[self.name]
            if (self.folder / "run" / "environment.json").exists():
                return ["edp_mx", "train", "--resume", str(self.folder / "run")]
            configs = [str(ROOT / "configs" / name) for name in ("quickstart.yaml", *layers)]
            run = str(self.folder / "run")
            return ["edp_mx", "train", *configs, "--run", run, "--set", *SIZES, *settings]
        out, kept = str(self.folder / "runs"), str(self.folder / "kept")
        if self.name == "sweep":
            base = ["quickstart.yaml", "mechanism/edp_calibrated.yaml"]
            text = SWEEP.format(base=", ".join(str(ROOT / "configs" / name) for name in base))
            text += "".join(f"  {each.replace('=', ': [')}]\n" for each in SIZES)
            write_text(self.folder / "sweep.yaml", text)
            return ["edp_mx", "sweep", str(self.folder / "sweep.yaml"), "--out", out,
                    "--records", kept]  # fmt: skip
        return ["experiments.table1", "--corpora", "health", "--models", "clc", "--methods", "sgd",
                "edp_linear_calibrated", "edp_none", "--runs", out, "--records", kept, "--configs",
                str(ROOT / "configs"), "--out", str(self.folder / "table1.md"), "--set", *SIZES,
                "data.size=200", "training.epochs=4"]  # fmt: skip

    def start(self) -> "psutil.Popen":
        path = os.pathsep.join([str(ROOT / "benchmarks" / "recorder"), str(ROOT)])
        environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": path, "EDP_MX_CACHE": "off",
                       "EDP_MX_FAULTS_RECORD": str(self.records)}  # fmt: skip
        with open(self.folder / "output", "a") as output:
            return psutil.Popen(
                [sys.executable, "-m", *self.words()], stdout=output, stderr=output,
                env={**os.environ, **environment},
            )  # fmt: skip

    def kill(self, draw: random.Random) -> None:
        """Start, kill at a drawn instant, and look at what is left."""
        job, before = self.start(), self.moves()
        kind, ahead = draw.choice(("steps", "steps", "early")), draw.randint(1, 12)
        if kind == "early" and "stored" in self.name:
            self.wait(job, self.stores)
        elif kind == "early":
            time.sleep(draw.uniform(0.2, 6.0))
        else:
            self.wait(job, lambda: self.moves() >= before + ahead)
        time.sleep(draw.uniform(0, 0.3))
        said = (self.folder / "output").read_text()[-1000:]
        assert job.poll() is None, f"it ended before it was killed: {said}"
        family = [job, *job.children(recursive=True)]
        at = "storing" if self.stores() else ["starting", "training"][self.moves() > before]
        victim = draw.choice(family)
        is_job = victim.pid == job.pid
        self.kills.append(at)
        victim.send_signal(signal.SIGKILL)
        if not is_job:  # the sweep goes on with the next trial, and says so of this one
            time.sleep(draw.uniform(0, 1.0))
            job.send_signal(signal.SIGKILL)
        job.wait()
        _, alive = psutil.wait_procs(family, timeout=60)
        assert not alive, f"still there: {alive}"
        self.look()
        print(self.name, at, "the command" if is_job else "a training", sep=" · ", flush=True)

    def wait(self, job: "psutil.Popen", is_there) -> None:  # type: ignore[no-untyped-def]
        deadline = time.monotonic() + PATIENCE
        while not is_there() and job.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)

    def moves(self) -> int:
        """How many steps were begun, in all runs and attempts."""
        return sum(path.read_text().count("\n") for path in self.records.iterdir())

    def stores(self) -> bool:
        sign = self.folder / "run" / ".workers" / "worker_0.json"
        try:
            return STORING in sign.read_text()
        except OSError:
            return False

    def runs(self) -> List[Released]:
        found = [path.parent for path in self.folder.rglob("config.yaml")]
        return [
            Released(RunDirectory(path), self.records / f"{path.name}.0") for path in sorted(found)
        ]

    def look(self) -> None:
        """Each file is whole, and no ledger has lost a line."""
        for path in self.folder.rglob("[!.]*.json"):
            json.loads(path.read_text())
        for path in self.folder.rglob("checkpoint*.npz"):
            assert damage_of(path) == "", path
        for path in self.folder.rglob("privacy_ledger.jsonl"):
            content = path.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            assert whole.startswith(self._ledgers.get(path, b"")), f"{path} has lost a line"
            self._ledgers[path] = whole

    def finish(self) -> None:
        """Let the command end, and look at all that it has left."""
        job = self.start()
        assert job.wait(timeout=PATIENCE) == 0, (self.folder / "output").read_text()[-2000:]
        self.look()
        assert "Traceback" not in (self.folder / "output").read_text()
        left = [path.name for path in self.folder.rglob(".*")]
        assert set(left) <= {".lock"}, f"left behind: {left}"

    def verdict(self, reference: Path) -> List[str]:
        """The row of the table."""
        if self.name in ("sweep", "table1"):
            self._refuse_repeated()
        epsilons = []
        for each in self.runs():
            if not each.run.has("results"):
                continue
            if not each.run.ledger.exists():
                self._compare(each, reference)
                continue
            epsilon = recount(each)  # type: ignore[arg-type]
            assert epsilon["ledger"] >= epsilon["released"] * (1 - 1e-3), f"{epsilon}"
            epsilons.append(epsilon)
        released, ledger = (
            ", ".join(f"{each[key]:.4g}" for each in epsilons) for key in ("released", "ledger")
        )
        counts = Counter(self.kills)
        when = ", ".join(f"{count} {at}" for at, count in sorted(counts.items()))
        outcome = "the ledgers have all that was released" if epsilons else "the same bits"
        return [self.name, str(len(self.kills)), when, released, ledger, outcome]

    def _compare(self, one: Released, reference: Path) -> None:
        if self.name not in RUNS:
            return
        with np.load(one.run.weights) as found, np.load(reference / "weights.npz") as wanted:
            for name in wanted.files:
                assert found[name].tobytes() == wanted[name].tobytes(), f"{name} is another"

    def _refuse_repeated(self) -> None:
        """Each trial was finished once, though some were begun more often."""
        records = [each.run.load(Record) for each in self.runs() if each.run.has("results")]
        assert len(records) == len({each.hash for each in records}) == 3, records


def tried(name: str, folder: Path, kills: int, draw: random.Random) -> List[str]:
    """Kill a command so often; return its row."""
    place, reference = Place(name, folder / "killed"), Place(name, folder / "reference")
    try:
        if name in RUNS and not RUNS[name][0]:  # without noise, the weights are compared
            reference.finish()
        while len(place.kills) < kills and not (place.folder / "run" / "results.json").exists():
            place.kill(draw)
        place.finish()
        return place.verdict(reference.folder / "run")
    except AssertionError as error:
        print(f"FAILED: {name}: {error}", file=sys.stderr, flush=True)
        return [name, str(len(place.kills)), "", "", "", f"FAILED: {error}"]


def section(rows: List[List[str]], command: str) -> str:
    """What the page says below its heading."""
    header = ["what", "kills", "while", "ε released", "ε by the ledger", "outcome"]
    return f"""# Kills elsewhere

Made by `{command}`.

SIGKILL strikes a sweep, a table or one of their trainings, or a run of one worker, at a drawn
instant; the same command is called again. After each kill all processes had ended, each file was
whole, and no ledger had lost a line; no temporary file was left in the end, and no trial was
finished twice.

{render_table(header, rows)}
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    names = ("sweep", "table1", *RUNS)
    parser.add_argument("--kills", type=int, default=10, help="of each (10)")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    draw, rows = random.Random(arguments.seed), []
    command = f".venv/bin/python benchmarks/faults_places.py --out {arguments.out}"
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only:
            rows.append(tried(name, Path(folder, name), arguments.kills, draw))
            write_section(arguments.out, section(rows, command))
    return int(any(row[-1].startswith("FAILED") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
