"""The files that hold tensors: safetensors, whole or in parts, and PyTorch's .bin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy as np
from safetensors import SafetensorError, safe_open

from edp_mx.errors import UserError
from edp_mx.runtime.files import read_json

WHOLE, INDEX, PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
OLDEST_TORCH = (2, 6)  # before, weights_only=True could be made to run code (CVE-2025-32434)

# A tensor that is read when it is called for.
Tensor = Callable[[], np.ndarray]

_FLOATS = ("F16", "F32", "F64")


def open_tensors(folder: Path) -> Dict[str, Tensor]:
    """All tensors of a folder by their names in the file, none read yet.

    Raises:
        UserError: there is no such file, or it is torn; calling for a tensor raises it too, where
            the tensor does not hold floating-point numbers.
    """
    if (folder / WHOLE).exists():
        return _open_safetensors(folder / WHOLE)
    if (folder / INDEX).exists():
        tensors: Dict[str, Tensor] = {}
        for part in _parts(folder / INDEX):
            tensors.update(_open_safetensors(folder / part))
        return tensors
    if (folder / PICKLED).exists():
        return _open_pickled(folder / PICKLED)
    raise UserError(f"{folder} holds none of {WHOLE}, {INDEX} and {PICKLED}: no weights to read")


def _parts(path: Path) -> List[str]:
    """The files that an index names; they must lie beside it."""
    index = read_json(path)
    names = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(names, dict) or not names:
        raise UserError(f"{path} has no weight_map: it is no index of tensors")
    parts = sorted({str(name) for name in names.values()})
    for part in parts:
        if Path(part).name != part or not (path.parent / part).is_file():
            raise UserError(f"{path} names {part!r}, which is no file of {path.parent}")
    return parts


def _refuse_pointer(path: Path) -> None:
    """What a clone without Git LFS leaves in place of a large file is told apart."""
    try:
        with path.open("rb") as file:
            start = file.read(30)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    if start.startswith(b"version https://git-lfs"):
        raise UserError(f"{path} is a Git LFS pointer, not the weights; run `git lfs pull` there")


def _open_safetensors(path: Path) -> Dict[str, Tensor]:
    """The tensors of one file."""
    _refuse_pointer(path)
    try:
        file = safe_open(path, framework="np")
        return {name: _reader(file, path, name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UserError(
            f"{path} is torn or no safetensors file ({error}); fetch it again"
        ) from error


def _reader(file: Any, path: Path, name: str) -> Tensor:
    """Reads one tensor as float32."""

    def read() -> np.ndarray:
        kind = file.get_slice(name).get_dtype()
        if kind == "BF16":
            return _read_bfloat16(path, name)
        if kind not in _FLOATS:
            raise UserError(f"{path}: {name} holds {kind}, not 16-, 32- or 64-bit floats")
        return np.asarray(file.get_tensor(name)).astype(np.float32)

    return read


def _read_bfloat16(path: Path, name: str) -> np.ndarray:
    """A tensor of the upper halves of float32 numbers, which NumPy does not know.

    Source: the safetensors format: 8 bytes with the header's length, the JSON header, the data.
    """
    with path.open("rb") as file:  # `safe_open` has found the header in order
        length = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(length))[name]
        begin, end = entry["data_offsets"]
        file.seek(8 + length + begin)
        halves = np.frombuffer(file.read(end - begin), dtype="<u2")
    return (halves.astype(np.uint32) << 16).view(np.float32).reshape(entry["shape"])


def _open_pickled(path: Path) -> Dict[str, Tensor]:
    """The tensors of a PyTorch file; a pickle of anything else is not run."""
    _refuse_pointer(path)
    torch = _torch(path)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # pickle's, zipfile's, torch's own: there is no common kind
        reason = str(error).split("\n")[0]
        raise UserError(
            f"{path} is torn or holds more than tensors, which is not run ({reason})"
        ) from error
    if not isinstance(state, dict) or not all(torch.is_tensor(value) for value in state.values()):
        raise UserError(f"{path} is no mapping of names to tensors, so no model's state")

    def reader(name: str) -> Tensor:
        def read() -> np.ndarray:
            if not state[name].is_floating_point():
                raise UserError(f"{path}: {name} holds {state[name].dtype}, not floats")
            return state[name].to(torch.float32).numpy()

        return read

    return {str(name): reader(name) for name in state}


def _torch(path: Path) -> Any:
    """PyTorch, where it is installed and safe to read with."""
    try:
        import torch
    except ImportError as error:
        raise UserError(
            f"{path} needs PyTorch to be read: `pip install torch`, then `edp-mx checkpoint "
            f"import {path.parent} --out DIR` writes it as {WHOLE}, which needs it no more"
        ) from error
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < OLDEST_TORCH:
        raise UserError(
            f"{path} is not read with PyTorch {torch.__version__}, in which a file of weights "
            "could run code; install 2.6 or newer"
        )
    return torch
