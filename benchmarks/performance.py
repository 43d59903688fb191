"""All benchmarks, one after the other, and the page of what they found: results/performance.md.

Run: .venv/bin/python benchmarks/performance.py [--kernels Haswell] [--only SECTION …]

A column of the page is what was measured with one kind of kernels, as if on a processor of that
kind; a processor with AVX-512 can be both. The figures are kept in results/performance.json, from
which the page is made: a column or a section that is left out, or that fails, stays as it was.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, Optional, Sequence

from measuring import ROOT, in_a_process, progress
from sections import SECTIONS, Bar, Section

from edp_mx.errors import UserError
from edp_mx.reports.table import render_table, show_quartiles
from edp_mx.runtime.blas import NAME, cpuinfo
from edp_mx.runtime.files import write_json, write_text
from edp_mx.runtime.json_text import read_json
from edp_mx.runtime.processes import launcher

BUDGET = 600  # seconds for all sections of a column
# What OpenBLAS, oneDNN, PyTorch and its MKL read when they are loaded, by OpenBLAS' name.
_WITHOUT_AVX512 = {
    **dict.fromkeys(("DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS"), "AVX2"),
    "ATEN_CPU_CAPABILITY": "avx2",
}
KERNELS: Dict[str, Dict[str, str]] = {"SkylakeX": {}, "Haswell": _WITHOUT_AVX512}
PATIENCE = 5  # times the budget; a busy machine is slow, one that hangs is ended
HEAD = """# Performance

Made by `.venv/bin/python benchmarks/performance.py --kernels COLUMN`; not to be edited. Only the
ratios mean much on a shared machine: what is compared takes its turns in one run, and a ratio is
taken round by round. Shown are medians, with quartiles in brackets; a bar holds if the median keeps
to it. Each column has the kernels of one kind of processors, named to all libraries by
OPENBLAS_CORETYPE and its like: Haswell has AVX2, SkylakeX AVX-512. The tables below the first are
those of the first column. What promises equal bytes promises them on one processor with one kind of
kernels."""


def main() -> int:
    """Measure, write the record after each section, and the page at the end."""
    names = [section.name for section in SECTIONS]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", choices=names, default=names, metavar="SECTION",
        help=f"{', '.join(names)}; none: make the page from the record alone (default: all)"
    )  # fmt: skip
    parser.add_argument("--kernels", choices=KERNELS, default="SkylakeX", help="(SkylakeX)")
    parser.add_argument("--out", type=Path, default=ROOT / "results", help="default: results/")
    options = parser.parse_args()
    failed = []
    try:
        path = options.out / "performance.json"
        record = read_json(path) if path.exists() else {"columns": {}}
        columns = record["columns"]
        results = columns.setdefault(options.kernels, {})
        for section in SECTIONS:
            if section.name not in options.only:
                continue
            result = measure(section, kernels=options.kernels)
            if result is None:
                failed.append(section.name)
                continue
            results[section.name] = result
            for row in bar_rows(section, {options.kernels: results}):
                progress(f"  {' '.join(row)}")
            write_json(path, record)
        write_text(options.out / "performance.md", render(columns, SECTIONS))
    except UserError as error:
        progress(f"error: {error}")
        return 2
    if failed:
        progress(f"failed, and left as they were: {', '.join(failed)}")
    return 1 if failed else 0


def render(columns: Mapping[str, Any], sections: Sequence[Section]) -> str:
    """Render the page: a table of all bars, then each section's tables, by the first column."""
    columns = {name: results for name, results in columns.items() if results}
    rows = [row for section in sections for row in bar_rows(section, columns) if "".join(row[3:])]
    parts = [HEAD]
    for name, results in columns.items():
        seconds = sum(result["seconds"] for result in results.values())
        held = [
            bar.holds(values, limit=bar.limit)
            for section in sections
            for bar in section.bars
            if (values := _values(results, section, bar))
        ]
        facts = next(iter(results.values()))["machine"]
        parts.append(
            f"{name} ({facts}): {sum(held)} bars hold, {held.count(False)} are missed (in bold). "
            f"{len(results)} of {len(sections)} sections were measured, in {seconds:.0f} seconds "
            f"({'within' if seconds <= BUDGET else 'beyond'} {BUDGET})."
        )
    parts.append(render_table(("section", "figure", "bar", *columns), rows))
    for section in sections:
        found = [results[section.name] for results in columns.values() if section.name in results]
        facts = f"({found[0]['seconds']:.0f} s)" if found else "(not measured)"
        parts += [f"## {section.title}", f"`{section.command}` {facts}"]
        parts += [found[0]["printed"]] if found else []
        parts += [section.note] if section.note else []
    return "\n\n".join(parts) + "\n"


def bar_rows(section: Section, columns: Mapping[str, Any]) -> List[List[str]]:
    """Return a row per bar: what each column has, in bold where it is missed; "" for nothing."""
    rows = []
    for bar in section.bars:
        row = [section.name, bar.figure, f"{'≥' if bar.is_least else '≤'} {bar.limit:g}"]
        for results in columns.values():
            values = _values(results, section, bar)
            shown = show_quartiles(values, bar.digits) if values else ""
            is_missed = values and not bar.holds(values, limit=bar.limit)
            row.append(f"**{shown}**" if is_missed else shown)
        rows.append(row)
    return rows


def _values(results: Mapping[str, Any], section: Section, bar: Bar) -> Sequence[float]:
    """The values of a bar's figure, by round; none where it was not measured."""
    return results.get(section.name, {"figures": {}})["figures"].get(bar.figure, ())


def measure(
    section: Section, *, threads: Optional[int] = None, kernels: Optional[str] = None
) -> Optional[Dict[str, Any]]:
    """Run a benchmark; return None if it failed, which it has then said itself.

    Args:
        kernels: of `KERNELS`; the processor's own by default.
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
        seconds = PATIENCE * section.seconds
        printed = run(program, seconds=seconds, threads=threads, environment=naming(kernels))
        if printed is None or not path.exists():
            return None
        figures = read_json(path)
    taken = round(time.perf_counter() - started, 1)
    facts = machine(kernels)
    return {"figures": figures, "printed": printed, "machine": facts, "seconds": taken}


def naming(kernels: Optional[str]) -> Dict[str, str]:
    """Return the environment that names kernels to all libraries."""
    return {NAME: kernels, **KERNELS[kernels]} if kernels else {}


def run(
    program: List[str],
    *,
    seconds: float,
    threads: Optional[int] = None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Optional[str]:
    """Return what a program prints; None if it fails or takes longer.

    It chooses its threads itself if none are given.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment = {**inherited, **environment}
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
    if process.returncode:
        return None
    return re.sub(r"^\[\d+\]<stdout>:", "", printed, flags=re.MULTILINE).strip()


@lru_cache(maxsize=None)
def machine(kernels: Optional[str]) -> str:
    """Say what the figures depend on, without date, host or path: "2 cores, Some CPU, …"."""
    processor = cpuinfo().get("model name", "unknown processor")
    code = (
        "import edp_mx, json; from edp_mx.runtime.blas_in_use import kernels_in_use; "
        "print(json.dumps(kernels_in_use()))"
    )
    blas = in_a_process("-c", code, **naming(kernels))
    products = [
        f"{package} {version(package)} with {each['library']} {each['version']} {each['kernels']}"
        for package, each in blas.items()
    ]
    cores = len(os.sched_getaffinity(0))
    packages = f"Python {platform.python_version()}, horovod {version('horovod')}"
    return ", ".join([f"{cores} cores", processor, packages, *products])


if __name__ == "__main__":
    sys.exit(main())
