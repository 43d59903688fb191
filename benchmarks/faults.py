"""Kill runs of two workers at random instants, resume them, and count again what they released.

Run: .venv/bin/python benchmarks/faults.py --out results/faults.md        as root, for the last two
     … --chains 1 --kills 2 --out /tmp/faults.md                           a first, smaller table

A chain is a run that is killed some times and then trains to its end. Two further kills take a host
of two, with all its processes, in namespaces (tests/support/hosts.py). The instants are drawn.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

import numpy as np
import psutil
from measuring import ROOT, write_section

from edp_mx.dp.accounting.ledger import read_ledger
from edp_mx.reports.table import render_table
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.processes import launcher

sys.path.insert(0, str(ROOT / "tests"))

SIZES = [
    "data.embeddings.dimension=8", "model.hidden_size=8", "model.character_filters=4",
    "data.size=200", "training.batch_size=16", "training.epochs=10",
    "training.checkpoints.every_steps=2", "training.watchdog_seconds=120",
]  # fmt: skip
NOISE = ["privacy.target_epsilon=null", "privacy.noise_multiplier=1.0"]
CONFIGS = {
    "SGD": ([], []),
    "eDP-SGD": (["edp_calibrated"], NOISE),
    "DP-SGD": (["dp_sgd"], [*NOISE, "privacy.chunk_size=16"]),
}
VICTIMS = ("worker 0", "worker 1", "both workers", "the launcher")
WORKER = ["-m", "edp_mx", "train"]
PATIENCE = 600  # seconds


class Kill(NamedTuple):
    """One kill: of whom, when, and what became of it."""

    mechanism: str
    victim: str
    at: str
    seconds: float
    goes_on: str


class Chain:
    """A run, its processes and its record."""

    def __init__(self, folder: Path, mechanism: str, hosts: Any = None) -> None:
        self.mechanism, self.hosts = mechanism, hosts
        self.run, self._record = RunDirectory(folder / "run"), folder / "record"
        self._record.mkdir()
        self._log = folder / "output"
        self._job: Optional[subprocess.Popen] = None

    def start(self) -> None:
        """Start the run, or resume it."""
        layers, settings = CONFIGS[self.mechanism]
        configs = ["quickstart.yaml", *(f"mechanism/{name}.yaml" for name in layers)]
        words = [*(str(ROOT / "configs" / name) for name in configs), "--run", str(self.run.path),
                 "--set", *SIZES, *settings]  # fmt: skip
        if (self.run.path / "environment.json").exists():
            words = ["--resume", str(self.run.path)]
        worker = [sys.executable, *WORKER, *words]
        path = os.pathsep.join([str(ROOT / "benchmarks" / "recorder"), str(ROOT)])
        environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": path,
                       "HOROVOD_GLOO_TIMEOUT_SECONDS": "300",
                       "EDP_MX_FAULTS_RECORD": str(self._record)}  # fmt: skip
        if self.hosts is None:
            with open(self._log, "a") as output:
                self._job = subprocess.Popen(
                    [*launcher(2), *worker],
                    env={**os.environ, **environment}, stdout=output, stderr=output,
                )  # fmt: skip
        else:
            words = [*launcher(2, hosts="a:1,b:1"), *worker]
            self._job = self.hosts.train(self._log, *words, on="a", **environment)

    def steps(self) -> int:
        """How many steps rank 0 has begun, in all attempts."""
        path = self._file(0)
        return path.read_text().count("\n") if path.exists() else 0

    def wait(self, steps: int, seconds: float = PATIENCE) -> bool:
        """Wait until so many steps are begun; return whether the job still runs then."""
        assert self._job is not None
        deadline = time.monotonic() + seconds
        while self.steps() < steps and time.monotonic() < deadline:
            if self._job.poll() is not None:
                return False
            time.sleep(0.005)
        return self._job.poll() is None

    def finish(self) -> int:
        """Wait for the end of the job; return its exit code."""
        assert self._job is not None
        return self._job.wait(timeout=PATIENCE)

    def kill(self, victim: str, at: str) -> Kill:
        """Kill, wait until the last process has ended, and see where the run goes on."""
        assert self._job is not None
        job = psutil.Process(self._job.pid)
        family = [job, *job.children(recursive=True)]
        workers = {rank: each for each in family if (rank := _rank(each)) is not None}
        began = time.monotonic()
        if victim == "host b":
            self.hosts.all["b"].die()
        elif victim == "the launcher":
            job.send_signal(signal.SIGKILL)
        else:
            ranks = [0, 1] if victim == "both workers" else [int(victim[-1])]
            for rank in ranks:
                if rank in workers:
                    workers[rank].kill()
                else:  # it was not there yet
                    victim = "the launcher"
                    job.send_signal(signal.SIGKILL)
                    break
        while alive := [each for each in family if not _has_ended(each)]:
            assert time.monotonic() - began < PATIENCE, f"still there: {alive}"
            time.sleep(0.05)
        seconds = time.monotonic() - began
        self._job.wait()
        return Kill(self.mechanism, victim, at, seconds, _standing(self.run))

    def released(self) -> Counter:
        """How often each (epoch, step) was about to be released, by the record of the workers."""
        counts = []
        for rank in (0, 1):
            path = self._file(rank)
            lines = path.read_text().split("\n") if path.exists() else []
            counts.append(Counter(tuple(map(int, line.split())) for line in lines if line))
        return counts[0] | counts[1]  # the larger of both

    def where(self) -> str:
        """The last step of rank 0, in words."""
        path = self._file(0)
        lines = path.read_text().split("\n") if path.exists() else []
        if len(lines) < 2:
            return "starting"
        epoch, step = lines[-2].split()
        return f"epoch {int(epoch) + 1}, step {int(step) + 1}"

    def _file(self, rank: int) -> Path:
        return self._record / f"{self.run.path.name}.{rank}"


def _has_ended(process: psutil.Process) -> bool:
    """Return whether a process is gone; in a namespace without an init nobody buries the dead."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _rank(process: psutil.Process) -> Optional[int]:
    with suppress(psutil.Error):
        if process.cmdline()[1:4] == WORKER:
            return int(process.environ().get("HOROVOD_RANK", "0"))
    return None


def _standing(run: RunDirectory) -> str:
    """Where an interrupted run goes on."""
    from edp_mx.training.state import TrainingState

    if not run.checkpoint.exists():
        return "the beginning"
    state = TrainingState.read(run.checkpoint)
    return f"epoch {state.epochs + 1}, step {state.steps + 1}"


def outcome(
    chain: Chain, count: int, draw: random.Random, kills: List[Kill], reference: Path
) -> List[str]:
    """Return the row of a chain; its kills are added to the others."""
    try:
        one_chain(chain, count, draw, kills)
        return verdict(chain, reference)
    except AssertionError as error:
        print(f"FAILED: {error}", file=sys.stderr, flush=True)
        return [chain.mechanism, "", "", "", f"FAILED: {error}"]


def one_chain(chain: Chain, count: int, draw: random.Random, kills: List[Kill]) -> None:
    """Kill a run some times, then let it end."""
    for _ in range(count):
        victim = "host b" if chain.hosts else draw.choice(VICTIMS)
        before, is_early = chain.steps(), draw.random() < 0.25 and chain.hosts is None
        ahead, pause, early = draw.randint(1, 6), draw.uniform(0, 0.3), draw.uniform(0.2, 12.0)
        chain.start()
        if is_early:
            runs = chain.wait(before + 1, seconds=early)
        else:
            runs = chain.wait(before + ahead)
            time.sleep(pause)
        assert runs, "the run ended before it was killed"
        at = chain.where() if chain.steps() > before else "starting"
        kills.append(chain.kill(victim, at))
        print(*kills[-1], sep=" · ", flush=True)
        if chain.hosts:
            chain.hosts.revive("b")
    chain.start()
    code = chain.finish()
    assert code == 0, f"the resumed run ended with {code}"


def recount(chain: Chain) -> Dict[str, float]:
    """ε by the ledger, and of what was released by another way, at the same δ."""
    from support.gaussian import gaussian_epsilon

    ledger = read_ledger(chain.run.ledger)
    event, delta = ledger.entries[0].event, ledger.plan.delta
    z, counts = event.effective_noise_multiplier, chain.released()
    by_ledger = json.loads((chain.run.path / "privacy.json").read_text())["holds_if"]["epsilon"]
    if event.sampler == "poisson":
        import dp_accounting
        from dp_accounting.pld import PLDAccountant

        steps = sum(counts.values())
        assert sum(entry.event.count for entry in ledger.entries) >= steps
        one = dp_accounting.PoissonSampledDpEvent(
            event.sample_rate, dp_accounting.GaussianDpEvent(z)
        )
        accountant = PLDAccountant(value_discretization_interval=1e-3)
        accountant.compose(one, steps)
        return {"ledger": by_ledger, "released": accountant.get_epsilon(delta)}
    most: Dict[int, int] = {}
    for (epoch, _), count in counts.items():
        most[epoch] = max(most.get(epoch, 0), count)  # a unit is in one step of an epoch
    plan = ledger.plan
    mu2 = sum(
        n / (z / plan.noise_multiplier_at(0) * plan.noise_multiplier_at(epoch)) ** 2
        for epoch, n in most.items()
    )
    return {"ledger": by_ledger, "released": gaussian_epsilon(delta, np.sqrt(mu2))}


def verdict(chain: Chain, reference: Path) -> List[str]:
    """The row of a chain that has ended: its ε, or that its weights are those without a kill."""
    repeated = sum(chain.released().values()) - len(chain.released())
    if chain.mechanism == "SGD":
        with np.load(reference / "weights.npz") as one, np.load(chain.run.weights) as other:
            for name in one.files:
                assert one[name].tobytes() == other[name].tobytes(), f"{name} is another"
        return [chain.mechanism, str(repeated), "", "", "the same bits as without a kill"]
    epsilon = recount(chain)
    assert epsilon["ledger"] >= epsilon["released"] * (1 - 1e-3), f"{epsilon}"
    shown = [f"{epsilon[key]:.3f}" for key in ("released", "ledger")]
    return [chain.mechanism, str(repeated), *shown, "the ledger has all that was released"]


def page(kills: List[Kill], chains: List[List[str]], command: str) -> str:
    rows = [
        [str(i), k.mechanism, k.victim, k.at, f"{k.seconds:.1f}", k.goes_on]
        for i, k in enumerate(kills, 1)
    ]
    seconds = [k.seconds for k in kills]
    header = ["kill", "run", "killed (-9)", "during", "ended after, s", "went on at"]
    run_header = ["run", "steps repeated", "ε of what was released", "ε by the ledger", "outcome"]
    numbered = [[str(i), *row] for i, row in enumerate(chains, 1)]
    return f"""# Kills

Made by `{command}`.

{len(kills)} times, SIGKILL struck a run of two workers at a drawn instant. Each time all processes
of the job ended by themselves (median {np.median(seconds):.1f} s, at most {max(seconds):.1f} s,
on a machine that did other work), the last checkpoint was whole, and the run was resumed.
"starting" is before the first step since the last start; a host loses all its processes, sshd too.

{render_table(header, rows)}

All runs then trained to their end. ε of what was released is counted again without the ledger: from
a record that each worker kept of its steps, by a closed form (eDP-SGD) or by Google's dp-accounting
(DP-SGD). Without noise, the weights are compared with those of a run that nobody killed.

{render_table(["no.", *run_header], numbered)}
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--chains", type=int, default=2, help="of each mechanism (2)")
    parser.add_argument("--kills", type=int, default=8, help="of each chain (8)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    kills: List[Kill] = []
    rows: List[List[str]] = []
    command = f".venv/bin/python benchmarks/faults.py --out {arguments.out}"
    from support.hosts import Hosts, why_not

    with tempfile.TemporaryDirectory() as folder:
        reference = Chain(_new(folder, "reference"), "SGD")
        reference.start()
        assert reference.finish() == 0
        of = reference.run.path
        for mechanism in ("SGD", "DP-SGD") if not why_not() else ():
            hosts = Hosts(_new(folder, f"hosts-{mechanism}"), "a", "b")
            try:
                chain = Chain(hosts.folder, mechanism, hosts)
                rows.append(outcome(chain, 1, draw, kills, of))
                write_section(arguments.out, page(kills, rows, command))
            finally:
                hosts.close()
        for number in range(arguments.chains):
            for mechanism in CONFIGS:
                chain = Chain(_new(folder, f"{mechanism}-{number}"), mechanism)
                rows.append(outcome(chain, arguments.kills, draw, kills, of))
                write_section(arguments.out, page(kills, rows, command))
    if why_not():
        print(f"without hosts in namespaces: {why_not()}", file=sys.stderr)
    return int(any(row[-1].startswith("FAILED") for row in rows))


def _new(folder: str, name: str) -> Path:
    path = Path(folder, name)
    path.mkdir()
    return path


if __name__ == "__main__":
    sys.exit(main())
