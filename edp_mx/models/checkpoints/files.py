"""A checkpoint's tensors, checked: safetensors in one file or several, or PyTorch's .bin."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Callable, Collection, Dict, List, Mapping, Tuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from edp_mx.data.tokenizer import Tokenizer
from edp_mx.errors import UserError
from edp_mx.models.checkpoints.layouts import PIECE_BIAS, TIED_BIAS, TIED_WEIGHT, Layout
from edp_mx.models.checkpoints.names import BUFFERS, MASKED_LM, PIECES, POOLER, is_of_bert
from edp_mx.runtime.files import read_bytes, whole_file, write_json
from edp_mx.runtime.json_text import parse_json, read_json

logger = logging.getLogger(__name__)

CONFIG = "config.json"
WHOLE, INDEX, PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
OLDEST_TORCH = (2, 6)  # older ones can be made to run code despite weights_only (CVE-2025-32434)

Tensor = Callable[[], np.ndarray]  # reads the tensor when it is called

Shapes = Mapping[str, Tuple[int, ...]]

_OPTIONAL = {*MASKED_LM, *POOLER}
_FLOATS = ("F16", "F32", "F64")


def write_files(
    folder: Path,
    *,
    tensors: Mapping[str, np.ndarray],
    settings: Mapping[str, Any],
    tokenizer: Tokenizer,
    max_positions: int,
) -> None:
    """Write weights, tokenizer and config.json of a checkpoint, each file whole or not at all."""
    with whole_file(folder / WHOLE) as file:
        arrays = {k: np.ascontiguousarray(v, dtype=np.float32) for k, v in tensors.items()}
        file.write(save(arrays, metadata={"format": "pt"}))
    tokenizer.save(folder, max_positions=max_positions)
    write_json(folder / CONFIG, dict(settings))


def check_folder(folder: Path, needed: str) -> None:
    """Refuse what is no folder, and a run, which has its checkpoint in a folder of its own."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder with {CONFIG}, {needed}")
    if (folder / "model" / CONFIG).is_file() and not (folder / CONFIG).is_file():
        raise UserError(f"{folder} is a run; name its checkpoint, {folder / 'model'}")


def open_tensors(folder: Path) -> Dict[str, Tensor]:
    """Find all tensors of a folder by their names in its files, without reading them."""
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
    """Return the files that an index names, which must be beside it."""
    index = read_json(path)
    names = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(names, dict) or not names:
        raise UserError(f"{path} is not an index of tensors: it has no weight_map")
    parts = sorted({str(name) for name in names.values()})
    for part in parts:
        if Path(part).name != part or not (path.parent / part).is_file():
            raise UserError(f"{path} names {part!r}, which is not a file in {path.parent}")
    return parts


def _refuse_pointer(path: Path) -> None:
    """Recognise the pointer that a clone without Git LFS has in place of a large file."""
    if read_bytes(path, 30).startswith(b"version https://git-lfs"):
        raise UserError(f"{path} is a Git LFS pointer, not the weights; run `git lfs pull` there")


def _open_safetensors(path: Path) -> Dict[str, Tensor]:
    _refuse_pointer(path)
    try:
        file = safe_open(path, framework="np")
        return {name: _reader(file, path, name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UserError(
            f"{path} is damaged or not a safetensors file ({error}); download it again"
        ) from error


def _reader(file: Any, path: Path, name: str) -> Tensor:
    def read() -> np.ndarray:
        kind = file.get_slice(name).get_dtype()
        if kind == "BF16":
            return _read_bfloat16(path, name)
        if kind not in _FLOATS:
            raise UserError(f"{path}: {name} holds {kind}, not 16-, 32- or 64-bit floats")
        return np.asarray(file.get_tensor(name)).astype(np.float32)

    return read


def _read_bfloat16(path: Path, name: str) -> np.ndarray:
    """Read a bfloat16 tensor, a type that NumPy lacks: the upper halves of float32 numbers.

    Source: the safetensors format: 8 bytes with the header's length, the JSON header, the data.
    """
    with path.open("rb") as file:  # `safe_open` has checked the header
        length = int.from_bytes(file.read(8), "little")
        entry = parse_json(file.read(length))[name]
        begin, end = entry["data_offsets"]
        file.seek(8 + length + begin)
        halves = np.frombuffer(file.read(end - begin), dtype="<u2")
    return (halves.astype(np.uint32) << 16).view(np.float32).reshape(entry["shape"])


def _open_pickled(path: Path) -> Dict[str, Tensor]:
    """Find the tensors of a PyTorch file, without running any code that it may hold."""
    _refuse_pointer(path)
    torch = _torch(path)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of pickle, zipfile or torch: they have no common base
        reason = str(error).split("\n")[0]
        raise UserError(
            f"{path} is damaged or holds more than tensors, which is not loaded ({reason})"
        ) from error
    if not isinstance(state, dict) or not all(torch.is_tensor(value) for value in state.values()):
        raise UserError(f"{path} does not hold a model's state: a mapping of names to tensors")

    def reader(name: str) -> Tensor:
        def read() -> np.ndarray:
            if not state[name].is_floating_point():
                raise UserError(f"{path}: {name} holds {state[name].dtype}, not floats")
            return state[name].to(torch.float32).numpy()

        return read

    return {str(name): reader(name) for name in state}


def _torch(path: Path) -> Any:
    """Import PyTorch, in a version that is safe to read with."""
    try:
        import torch
    except ImportError as error:
        raise UserError(
            f"reading {path} needs PyTorch: run `pip install torch`, then `edp-mx checkpoint "
            f"import {path.parent} --out DIR`, which writes it as {WHOLE}"
        ) from error
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < OLDEST_TORCH:
        raise UserError(
            f"{path} cannot be read safely with PyTorch {torch.__version__}, in which a file of "
            "weights can run code: install PyTorch 2.6 or newer"
        )
    return torch


def read_tensors(folder: Path, ours: Shapes, layout: Layout) -> Dict[str, np.ndarray]:
    """Read and check the tensors for a BERT of the shapes `ours`, as BERT's; log the others."""
    shapes = layout.shapes(ours)
    found = _by_name_in_bert(folder, open_tensors(folder), layout)
    bias = found.pop(TIED_BIAS, None)
    if bias is not None:
        found.setdefault(PIECE_BIAS, bias)
    decoder = found.pop(TIED_WEIGHT, None)
    strange = sorted(set(found) - set(shapes))
    tensors = {name: found[name]() for name in shapes if name in found}
    is_tied = decoder is None or np.array_equal(decoder(), tensors.get(PIECES, np.empty(0)))
    _leave_aside(folder, tensors, "pooler", POOLER)
    _leave_aside(folder, tensors, "masked-LM head", MASKED_LM, is_sound=is_tied)
    check_tensors(str(folder), tensors, shapes)
    for name in strange:
        if is_of_bert(name):
            raise UserError(f"{folder}: config.json describes a BERT that has no tensor {name}")
    if strange:
        logger.info("%s: ignored tensors: %s", folder, ", ".join(strange))
    return layout.as_bert(tensors)


def _by_name_in_bert(folder: Path, tensors: Dict[str, Tensor], layout: Layout) -> Dict[str, Tensor]:
    """Return the tensors that hold weights; no two may have the same name in a BERT."""
    named: Dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        of_bert = layout.name(name)
        if of_bert in named:
            raise UserError(f"{folder} holds {of_bert} twice, under an old and a new name")
        if of_bert not in BUFFERS:
            named[of_bert] = tensor
    return named


def _leave_aside(
    folder: Path,
    tensors: Dict[str, np.ndarray],
    part: str,
    names: Collection[str],
    is_sound: bool = True,
) -> None:
    there = [name for name in names if name in tensors]
    if there and not (is_sound and len(there) == len(names)):
        fault = "incomplete" if is_sound else f"not tied to the pieces' vectors ({TIED_WEIGHT})"
        logger.warning("%s: its %s is %s and is skipped", folder, part, fault)
        for name in there:
            del tensors[name]


def check_tensors(source: str, tensors: Mapping[str, np.ndarray], shapes: Shapes) -> None:
    """Check the tensors' shapes and values; only pooler and masked-LM head may be missing."""
    for name, shape in shapes.items():
        if name not in tensors:
            if name in _OPTIONAL:
                continue
            raise UserError(f"{source} lacks the tensor {name}")
        if tensors[name].shape != shape:
            raise UserError(
                f"{source}: {name} has shape {tensors[name].shape}, but the sizes in its "
                f"settings make it {shape}"
            )
        if not np.isfinite(tensors[name]).all():
            raise UserError(f"{source}: {name} holds a value that is not finite")
