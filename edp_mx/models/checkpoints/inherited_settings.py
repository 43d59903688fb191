"""Settings that a configuration leaves to the checkpoint that it starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

from edp_mx.models.bert import BERTConfig
from edp_mx.models.checkpoints.config import ADOPTED, read_config
from edp_mx.models.checkpoints.huggingface import CONFIG

_STARTS = ("checkpoint", "start_from")  # keys of `model` that may name a checkpoint's folder


def adopt_sizes(tree: Dict[str, Any], is_default: Callable[[str, str], bool]) -> None:
    """Set the sizes in a tree of settings, in place, to those of the checkpoint that it names.

    The vocabulary below `data` is then that of the checkpoint, unless it is set.

    Args:
        tree: as read from YAML; of another family, or without a folder that is there, it is left
            alone.
        is_default: `is_default("num_layers", "checkpoint")` says whether the first key of `model`
            gives way, because it was not set by whoever set the second.

    Raises:
        UserError: the folder has a config.json that is not a BERT's.
    """
    model = tree.get("model")
    if not isinstance(model, dict) or model.get("family") != BERTConfig.family:
        return
    for start in _STARTS:
        folder = model.get(start)
        path = Path(folder) / CONFIG if isinstance(folder, str) else None
        if path is None or not path.is_file():
            continue
        theirs, _ = read_config(path)
        for key in ADOPTED:
            if is_default(key, start):
                model[key] = getattr(theirs, key)
        _take_pieces(tree)


def _take_pieces(tree: Dict[str, Any]) -> None:
    """Set the source of the word pieces where nobody has said one."""
    data = tree.setdefault("data", {})
    if isinstance(data, dict):
        vocabulary = data.setdefault("vocabulary", {})
        if isinstance(vocabulary, dict) and not {"source", "path"} & set(vocabulary):
            vocabulary["source"] = "checkpoint"
