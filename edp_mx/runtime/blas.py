"""Which kernels OpenBLAS computes with: they are named to it where it does not know the processor.

An OpenBLAS chooses by the processor's number. For one that is newer than itself it takes kernels of
2004 without AVX and says nothing; they are several times slower than what the processor can do.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Collection, Dict, FrozenSet, List, NamedTuple

from edp_mx.runtime.disk_cache import remembered

NAME = "OPENBLAS_CORETYPE"  # OpenBLAS reads it when it is loaded
WITHOUT_AVX = frozenset(
    ("Katmai", "Coppermine", "Northwood", "Prescott", "Banias", "Atom", "Core2", "Penryn")
    + ("Dunnington", "Nehalem", "Athlon", "Opteron", "Opteron_SSE3", "Barcelona", "Nano", "Bobcat")
)
_AVX512 = frozenset(("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"))
_RULES = 2  # by which kernels are chosen; increase it where they change
_SECONDS = 120  # after which a question to another process is given up
# Only the libraries are loaded, without their packages: a twentieth of a second. One may need
# another of them first.
_ASK = """
import ctypes, sys
waiting = sys.argv[1:]
for path in waiting * len(waiting):
    try:
        library = ctypes.CDLL(path) if path in waiting else None
    except OSError:
        continue
    if library:
        waiting.remove(path)
    for name in ("openblas_get_corename", "openblas_get_corename64_"):
        if hasattr(library, name):
            getattr(library, name).restype = ctypes.c_char_p
            print(getattr(library, name)().decode())
sys.exit(any("openblas" in path for path in waiting))
"""


def cpuinfo(path: Path = Path("/proc/cpuinfo")) -> Dict[str, str]:
    """Return Linux' description of the machine's first processor; {} on another system."""
    text = ""
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        text = file.read(16_384).split("\n\n")[0]
    return dict(re.findall(r"^([\w ]+?)\s*: (.+)$", text, re.M))


class Processor(NamedTuple):
    """Linux' description of a processor: its vendor, its numbers, its features."""

    vendor: str
    numbers: str
    flags: FrozenSet[str]

    @classmethod
    def read(cls, path: Path = Path("/proc/cpuinfo")) -> Processor:
        """Read the first of a machine's processors; on another system nothing is known of it."""
        said = cpuinfo(path)
        numbers = " ".join(said.get(key, "?") for key in ("cpu family", "model", "stepping"))
        return cls(said.get("vendor_id", ""), numbers, frozenset(said.get("flags", "").split()))


def candidates(processor: Processor, reported: Collection[str]) -> List[str]:
    """Return the kernels to name, the best first; none where OpenBLAS knows the processor.

    Args:
        reported: what each OpenBLAS takes by itself. It does not know the processor if one takes
            kernels without AVX for a processor with it; what another takes is then tried first.
    """
    old = WITHOUT_AVX.intersection(reported)
    if not old or "avx" not in processor.flags:
        return []
    found = [name for name in reported if name not in old]
    if processor.flags >= _AVX512:
        found.append("SkylakeX")
    if processor.flags >= {"avx2", "fma"}:
        found += ["Zen", "Haswell"] if processor.vendor == "AuthenticAMD" else ["Haswell"]
    return list(dict.fromkeys([*found, "Sandybridge"]))


def name_kernels() -> None:
    """Set OPENBLAS_CORETYPE for this process and its children where OpenBLAS needs it.

    What the libraries say, and which kernels multiply right, is found out once and kept in the
    user's cache. A setting of the user's own stays. NumPy and MXNet must not be loaded yet.
    """
    if NAME in os.environ:
        return
    processor, paths = Processor.read(), _libraries()
    if "avx" not in processor.flags or not paths:
        return
    stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    decisive = [_RULES, *processor[:2], sorted(processor.flags), stats]
    find = lambda: _choose(candidates(processor, _ask(paths)))  # noqa: E731
    try:
        chosen = remembered("kernels", decisive, str, find)
    except (OSError, subprocess.SubprocessError):
        return
    if chosen:
        os.environ[NAME] = chosen


def _libraries() -> List[Path]:
    """Return the files of NumPy's and MXNet's own OpenBLAS and of what it needs."""
    found: List[Path] = []
    for package in ("numpy", "mxnet"):
        spec = find_spec(package)
        if spec and spec.origin:
            home = Path(spec.origin).parent
            found += [*home.glob("libopenblas*"), *home.parent.glob(f"{package}.libs/*.so*")]
    return sorted(found)


def _ask(paths: List[Path]) -> List[str]:
    command = [sys.executable, "-S", "-c", _ASK, *map(str, paths)]
    output = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=True).stdout
    return output.decode().split()


def _choose(names: List[str]) -> str:
    """Return the first kernels that pass the self-test in a process of their own, or nothing."""
    code = "import sys; from edp_mx.runtime.blas_in_use import self_test; self_test(sys.argv[1])"
    path = os.pathsep.join(each for each in (str(Path(__file__).parents[2]), *sys.path) if each)
    for name in names:
        environment = {**os.environ, NAME: name, "PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, "-c", code, name],
            env=environment,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode == 0:
            return name
    return ""
