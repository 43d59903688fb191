"""All benchmarks, one after the other, and the page of what they found: results/performance.md.

Run: .venv/bin/python benchmarks/performance.py [--only SECTION …]

The figures are kept in results/performance.json, from which the page is made: a section that
`--only` leaves out, or that fails or has nothing to measure, stays as it was.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from measuring import ABSENT, ROOT, progress
from sections import SECTIONS, Section

from edp_mx.errors import UserError
from edp_mx.reports.table import render_table, show_quartiles
from edp_mx.runtime.files import write_json, write_text
from edp_mx.runtime.json_text import read_json
from edp_mx.runtime.processes import launcher

BUDGET = 600  # seconds for all sections
PATIENCE = 5  # times the budget; a busy machine is slow, one that hangs is ended
HEAD = """# Performance

Made by `.venv/bin/python benchmarks/performance.py`; not to be edited. Only the ratios mean much on
a shared machine: what is compared takes its turns in one run, and a ratio is taken round by round.
Shown are medians, with quartiles in brackets; a bar holds if the median keeps to it."""


class NothingThere(Exception):
    """A benchmark has nothing to measure, and has said so."""


def main() -> int:
    """Measure, write the record after each section, and the page at the end."""
    names = [section.name for section in SECTIONS]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", choices=names, default=names, metavar="SECTION",
        help=f"{', '.join(names)}; none: make the page from the record alone (default: all)"
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=ROOT / "results", help="default: results/")
    options = parser.parse_args()
    failed, absent = [], []
    try:
        path = options.out / "performance.json"
        results = read_json(path) if path.exists() else {}
        for section in SECTIONS:
            if section.name not in options.only:
                continue
            try:
                result = measure(section)
            except NothingThere:
                absent.append(section.name)
                continue
            if result is None:
                failed.append(section.name)
                continue
            results[section.name] = result
            for row in bar_rows(section, result):
                progress(f"  {' '.join(row)}")
            write_json(path, results)
        write_text(options.out / "performance.md", render(results, SECTIONS))
    except UserError as error:
        progress(f"error: {error}")
        return 2
    if absent:
        progress(f"skipped, and left as they were: {', '.join(absent)}")
    if failed:
        progress(f"failed, and left as they were: {', '.join(failed)}")
    return 1 if failed else 0


def render(results: Mapping[str, Any], sections: Sequence[Section]) -> str:
    """Render the page: a table of all bars, then each section's own tables."""
    done = [section for section in sections if section.name in results]
    rows = [row for section in done for row in bar_rows(section, results[section.name])]
    seconds = sum(results[section.name]["seconds"] for section in done)
    kept = sum(row[-1] == "holds" for row in rows)
    parts = [
        HEAD,
        f"{kept} of {len(rows)} bars hold. {len(done)} of {len(sections)} sections were measured, "
        f"in {seconds:.0f} seconds ({'within' if seconds <= BUDGET else 'beyond'} {BUDGET}).",
        render_table(("section", "figure", "bar", "median (quartiles)", "the bar"), rows),
    ]
    for section in sections:
        result = results.get(section.name)
        facts = f"({result['seconds']:.0f} s; {result['machine']})" if result else "(not measured)"
        parts += [f"## {section.title}", f"`{section.command}` {facts}"]
        parts += [result["printed"]] if result else []
        parts += [section.note] if section.note else []
    return "\n\n".join(parts) + "\n"


def bar_rows(section: Section, result: Mapping[str, Any]) -> List[List[str]]:
    """Return a row per bar: whether it holds, is missed, or was not measured."""
    rows = []
    for bar in section.bars:
        values, found, verdict = result["figures"].get(bar.figure), "", "not measured"
        if values:
            found = show_quartiles(values, bar.digits)
            verdict = "holds" if bar.holds(values, limit=bar.limit) else "missed"
        limit = f"{'≥' if bar.is_least else '≤'} {bar.limit:g}"
        rows.append([section.name, bar.figure, limit, found, verdict])
    return rows


def measure(section: Section, *, threads: Optional[int] = None) -> Optional[Dict[str, Any]]:
    """Run a benchmark; return None if it failed, which it has then said itself.

    Raises:
        NothingThere: it was skipped.
    """
    progress(f"{section.name}: {section.command} (budget {section.seconds} s)")
    script, *arguments = section.script.split()
    program = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
    if section.workers > 1:
        program = [*launcher(section.workers), *program]
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "figures.json")
        program += ["--json", str(path)]
        printed = run(program, seconds=PATIENCE * section.seconds, threads=threads)
        if printed is None or not path.exists():
            return None
        figures = read_json(path)
    seconds = round(time.perf_counter() - started, 1)
    return {"figures": figures, "printed": printed, "machine": machine(), "seconds": seconds}


def run(program: List[str], *, seconds: float, threads: Optional[int] = None) -> Optional[str]:
    """Return what a program prints; None if it fails or takes longer; raise `NothingThere`.

    It chooses its threads itself if none are given.
    """
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment.setdefault("HOROVOD_GLOO_TIMEOUT_SECONDS", "600")  # a busy machine is no failure
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    process = subprocess.Popen(
        program, cwd=ROOT, env=environment, stdout=subprocess.PIPE, encoding="utf-8"
    )
    try:
        printed, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        progress(f"not done after {seconds:.0f} s: ended")
        process.terminate()  # not killed: it ends its own processes first
        printed, _ = process.communicate()
    if process.returncode == ABSENT:
        raise NothingThere
    if process.returncode:
        return None
    return re.sub(r"^\[\d+\]<stdout>:", "", printed, flags=re.MULTILINE).strip()


def machine() -> str:
    """Say what the figures depend on, without date, host or path: "2 cores, Some CPU, …"."""
    text = Path("/proc/cpuinfo").read_text() if os.path.exists("/proc/cpuinfo") else ""
    processors = [*re.findall(r"^model name\s*: (.*)$", text, re.MULTILINE), "unknown processor"]
    packages = [f"{name} {version(name)}" for name in ("mxnet", "numpy", "horovod")]
    cores = len(os.sched_getaffinity(0))
    python = f"Python {platform.python_version()}"
    return ", ".join([f"{cores} cores", processors[0], python, *packages])


if __name__ == "__main__":
    sys.exit(main())
