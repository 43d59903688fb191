"""Archives of arrays: written in small pieces, and read within limits."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO, Dict, Mapping, Optional, Sequence

import numpy as np

from edp_mx.errors import UserError

Arrays = Dict[str, np.ndarray]
MOST_INFLATION, ALWAYS_READ = 50, 2**26  # times the size of a file; bytes
_NOT_ONE = (OSError, ValueError, EOFError, KeyError, MemoryError, RuntimeError,
            zipfile.BadZipFile, zlib.error)  # fmt: skip


def write_npz(file: BinaryIO, arrays: Mapping[str, np.ndarray], *, compress: bool = False) -> None:
    """Write a file for `np.load`, without a second copy of the arrays in memory.

    Raises:
        OSError: e.g. a full disk. `np.savez` would then try to end the archive, twice, and hide a
            lack of memory behind the error that this makes.
    """
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    archive = zipfile.ZipFile(file, "w", method)  # noqa: SIM115 (its own end is the trouble)
    try:
        for name, array in arrays.items():
            member = archive.open(f"{name}.npy", "w", force_zip64=True)
            np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
            member.close()
        archive.close()
    except BaseException:
        archive.fp = None  # nothing is written any more
        raise


def read_arrays(
    path: Path, kind: str, *, only: Optional[Sequence[str]] = None, advice: str = ""
) -> Arrays:
    """Read a `.npz`, or the arrays in `only` that are there; `kind` says what it should be.

    Nothing is unpacked of a file whose content would be many times as large as the file.
    """
    try:
        _refuse_inflated(path)
        with np.load(path, allow_pickle=False) as archive:
            wanted = archive.files if only is None else [n for n in only if n in archive.files]
            return {name: archive[name] for name in wanted}
    except FileNotFoundError as error:
        raise UserError(
            f"there is no {path}: {advice or 'the run did not get that far'}"
        ) from error
    except _NOT_ONE as error:
        raise UserError(
            f"{path} is torn or not {kind} ({error}){advice and f'; {advice}'}"
        ) from error


def _refuse_inflated(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > max(MOST_INFLATION * path.stat().st_size, ALWAYS_READ):
        raise ValueError(f"it would be unpacked to {size:,} bytes")
