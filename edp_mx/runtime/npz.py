"""Archives of arrays, written in small pieces and given up in peace."""

from __future__ import annotations

import zipfile
from typing import BinaryIO, Mapping

import numpy as np


def write_npz(file: BinaryIO, arrays: Mapping[str, np.ndarray], *, compress: bool = False) -> None:
    """Write what `np.load` reads, without a second copy of the arrays in memory.

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
