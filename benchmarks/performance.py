"""All benchmarks, one after the other, and the page of what they found: results/performance.md.

Run: .venv/bin/python benchmarks/performance.py [--only SECTION …]

Every benchmark runs as a command of its own, with few rounds and a budget; all together take less
than ten minutes on two idle cores. The figures are kept in results/performance.json, from which the
page is made: `--only` measures some sections and leaves the others as they were. What fails, or
cannot be measured here, leaves its section as it was too.
"""

from __future__ import annotations

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
from typing import Any, Dict, List, Mapping, Optional

from page import BUDGET, bar_rows, render
from rounds import progress
from sections import ROOT, SECTIONS, Section

from edp_mx.errors import UserError
from edp_mx.runtime.files import read_json, write_json, write_text

PATIENCE = 5  # times the budget; a busy machine is slow, one that hangs is ended
ENDING = 30  # seconds to end in
PACKAGES = ("mxnet", "numpy", "horovod")


def main() -> int:
    """Measures, and writes after each section."""
    options = _options()
    chosen = [section for section in SECTIONS if section.name in options.only]
    progress(f"budget: {sum(section.seconds for section in chosen)} of {BUDGET:.0f} seconds")
    failed = []
    try:
        results = kept(options.out)
        for section in chosen:
            if not section.is_possible:
                progress(f"{section.name}: left out; {section.missing}")
                continue
            result = measured(section)
            if result is None:
                failed.append(section.name)
                continue
            for row in bar_rows(section, result):
                progress(f"  {' '.join(row)}")
            results[section.name] = result
            write(options.out, results)
        write(options.out, results)
    except UserError as error:
        progress(f"error: {error}")
        return 2
    progress(f"{options.out / 'performance.md'} is written")
    if failed:
        progress(f"failed, and left as they were: {', '.join(failed)}")
    return 1 if failed else 0


def names() -> List[str]:
    """Of all sections."""
    return [section.name for section in SECTIONS]


def kept(folder: Path) -> Dict[str, Any]:
    """What was measured before; sections that no longer are, are left out.

    Raises:
        UserError: the file is torn, or something else.
    """
    path = folder / "performance.json"
    results = read_json(path) if path.exists() else {}
    wanted = {"measured", "printed", "machine", "seconds"}
    if not isinstance(results, dict) or not all(
        isinstance(result, dict) and wanted <= set(result) for result in results.values()
    ):
        raise UserError(
            f"{path} does not hold sections with {', '.join(sorted(wanted))}: remove it"
        )
    return {name: results[name] for name in names() if name in results}


def write(folder: Path, results: Mapping[str, Any]) -> None:
    """The figures and the page that is made from them.

    Raises:
        UserError: a section's figures are not what its bars read; nothing is then written.
    """
    page = render(results, SECTIONS)
    write_json(folder / "performance.json", results)
    write_text(folder / "performance.md", page)


def measured(section: Section, *, threads: Optional[int] = None) -> Optional[Dict[str, Any]]:
    """Runs a benchmark; None if it failed, which it has then said itself.

    Args:
        section: which one.
        threads: of a process; all cores by default, fewer where others keep the cores busy.
    """
    progress(f"{section.name}: {section.command} (budget {section.seconds} s)")
    script, *arguments = section.arguments
    program = [sys.executable, str(Path(__file__).parent / script), *arguments]
    if section.workers > 1:
        launcher = str(Path(sys.executable).with_name("horovodrun"))
        program = [launcher, "--gloo", "-np", str(section.workers), *program]
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "measured.json")
        program += ["--json", str(path)]
        printed = run(program, seconds=PATIENCE * section.seconds, threads=threads)
        if printed is None or not path.exists():
            return None
        figures = read_json(path)
    seconds = time.perf_counter() - started
    progress(f"{section.name}: {seconds:.0f} of {section.seconds} s")
    return {"measured": figures, "printed": printed, "machine": machine(), "seconds": seconds}


def run(program: List[str], *, seconds: float, threads: Optional[int] = None) -> Optional[str]:
    """What a program prints; None if it fails or takes longer.

    Its threads are its own choice if not given: what is set for this process does not reach it.
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
        process.terminate()  # it ends its own processes first
        try:
            process.communicate(timeout=ENDING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        return None
    if process.returncode:
        return None
    return re.sub(r"^\[\d+\]<stdout>:", "", printed, flags=re.MULTILINE).strip()


def machine() -> Dict[str, Any]:
    """What the figures depend on; no date, no host, no path."""
    processor = "an unknown processor"
    if os.path.exists("/proc/cpuinfo"):
        models = re.findall(
            r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE
        )
        processor = models[0] if models else processor
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = {"Python": platform.python_version()}
    versions.update({name: version(name) for name in PACKAGES})
    return {"cores": cores, "processor": processor, "versions": versions}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[*names(), "nothing"],
        default=names(),
        metavar="SECTION",
        help=f"{', '.join(names())}; or nothing: the page is made from the figures that are there",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "results", help="a folder")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
