"""Where a run stands: numbers and named arrays in one file, nothing that executes when read."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Dict, Mapping, Tuple

import numpy as np

from edp_mx.accounting.ledger import LedgerMark
from edp_mx.errors import UserError
from edp_mx.runtime.files import whole_file

Arrays = Dict[str, np.ndarray]
_FACTS = "facts"


@dataclass(frozen=True, eq=False)
class TrainingState:
    """A run after some whole epochs.

    Attributes:
        epochs: done.
        seconds: spent on them.
        best_ser, best_epoch, best: `Selection.standing`.
        weights: the parameters, by name.
        optimizer: what `optimizer_arrays` returned.
        ledger_size, ledger_digest: how far the ledger had come, see `ledger.LedgerMark`; 0 and ""
            without a mechanism.
    """

    epochs: int
    seconds: float
    best_ser: float
    best_epoch: int
    weights: Arrays
    optimizer: Arrays
    best: Arrays
    ledger_size: int = 0
    ledger_digest: str = ""

    def write(self, path: Path) -> None:
        """Replaces the file, whole or not at all."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        groups = {name: value for name, value in values.items() if isinstance(value, dict)}
        write_state(path, {n: v for n, v in values.items() if n not in groups}, groups)

    @classmethod
    def read(cls, path: Path) -> TrainingState:
        """Reads what `write` wrote.

        Raises:
            UserError: the file is missing, torn, or of another kind.
        """
        facts, groups = read_state(path)
        try:
            values: Dict[str, Any] = {**facts, "best": {}, "optimizer": {}, **groups}
            return cls(**values)
        except TypeError as error:
            raise UserError(f"{path} is no checkpoint of a training run ({error})") from error


def read_ledger_mark(path: Path) -> LedgerMark:
    """How far the ledger had come when a checkpoint was written, without reading its weights.

    Raises:
        UserError: the file is torn, or was written by edp_mx 0.1, which confirmed no ledger.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            size, digest = archive[f"{_FACTS}/ledger_size"], archive[f"{_FACTS}/ledger_digest"]
    except KeyError as error:
        raise UserError(
            f"{path} was written by edp_mx 0.1 and does not say how far its ledger had come; it "
            "cannot be resumed by this version, so train anew from its config.yaml"
        ) from error
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is torn or no checkpoint ({error})") from error
    return LedgerMark(int(size), str(digest))


def write_state(path: Path, facts: Mapping[str, Any], groups: Mapping[str, Arrays]) -> None:
    """Replaces the file, whole or not at all.

    Args:
        facts: numbers and texts by name.
        groups: arrays by name, by group ("weights", "optimizer").
    """
    arrays = {f"{_FACTS}/{name}": np.array(value) for name, value in facts.items()}
    for group, members in groups.items():
        arrays.update({f"{group}/{name}": array for name, array in members.items()})
    archive = io.BytesIO()  # a zip file that a full disk cuts off cannot be closed in peace
    np.savez(archive, **arrays)
    with whole_file(path) as file:
        file.write(archive.getbuffer())


def read_state(path: Path) -> Tuple[Dict[str, Any], Dict[str, Arrays]]:
    """Reads what `write_state` wrote; a group without arrays is left out.

    Raises:
        UserError: the file is missing or torn.
    """
    groups: Dict[str, Arrays] = {_FACTS: {}}
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                group, _, rest = name.partition("/")
                groups.setdefault(group, {})[rest] = archive[name]
        facts = {name: value.item() for name, value in groups.pop(_FACTS).items()}
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: the run did not get as far as that") from error
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is torn or no checkpoint ({error})") from error
    return facts, groups
