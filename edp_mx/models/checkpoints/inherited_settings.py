"""Settings that a configuration leaves to the checkpoint or the run that it starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, Tuple

from edp_mx.models.checkpoints.huggingface import CONFIG
from edp_mx.models.registry import FAMILIES
from edp_mx.runtime.yaml_tree import read_mapping

_STARTS = ("checkpoint", "start_from")  # keys of `model` that may name a folder
_WIDTH = ("data", "embeddings", "dimension")  # a size of models that read words


def adopt_sizes(
    tree: Dict[str, Any], is_default: Callable[[Tuple[str, ...], str], bool], *, family: str
) -> None:
    """Set the sizes in a tree of settings, in place, to those of the model that it starts from.

    The vocabulary below `data` is then that of a checkpoint, unless it is set.

    Args:
        tree: as read from YAML; without a folder that is there, it is left alone.
        is_default: `is_default(("model", "num_layers"), "checkpoint")` says whether the first key
            gives way, because it was not set by whoever set the second, which is one of `model`.
        family: of a model that names none.

    Raises:
        UserError: the folder has a config.json that is not of this family, or a torn config.yaml.
    """
    model = tree.get("model")
    if not isinstance(model, dict):
        return
    family = str(model.get("family", family))
    if family not in FAMILIES:
        return
    sizes, read_settings = FAMILIES[family].sizes, FAMILIES[family].read_settings
    for start in filter(model.get, _STARTS):
        folder = Path(str(model[start]))
        wanted = [key for key in sizes if is_default(("model", key), start)]
        theirs: Any = None
        if read_settings is not None and (folder / CONFIG).is_file():
            theirs = read_settings(folder / CONFIG)
            _take_pieces(tree)
        elif wanted and (folder / "config.yaml").is_file():  # not of a run whose sizes are settled
            run = read_mapping(folder / "config.yaml")[0]
            theirs = run.get("model")
            if not FAMILIES[family].has_pieces and is_default(_WIDTH, start):
                _take_width(tree, run)
        if isinstance(theirs, dict) and theirs.get("family") == family:
            model.update((key, theirs[key]) for key in wanted if key in theirs)


def _take_width(tree: Dict[str, Any], run: Dict[str, Any]) -> None:
    """Set the width of word vectors to that of a run, unless they come from a file."""
    section, key, name = _WIDTH
    theirs = run.get(section)
    width = (theirs.get(key) or {}).get(name) if isinstance(theirs, dict) else None
    ours = tree.setdefault(section, {})
    own = (ours.get(key) or {}) if isinstance(ours, dict) else None
    if width is not None and isinstance(own, dict) and not own.get("path"):
        ours[key] = {**own, name: width}


def _take_pieces(tree: Dict[str, Any]) -> None:
    """Set the source of the word pieces where nobody has said one."""
    data = tree.setdefault("data", {})
    if isinstance(data, dict):
        vocabulary = data.setdefault("vocabulary", {})
        if isinstance(vocabulary, dict) and not {"source", "path"} & set(vocabulary):
            vocabulary["source"] = "checkpoint"
