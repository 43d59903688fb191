"""The methods of Table 1: the configuration of each, and which records are its."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from edp_mx.data.synthetic.grammar import STANDINS
from edp_mx.runs.record import Record
from edp_mx.runs.records import value_of

CORPORA = ("atis", "snips", "nlu_eval", "dstc8", *STANDINS)
FAMILIES = ("clc", "bert")
N = 8  # of Algorithm 1, the paper's GPUs: workers times micro-batches per worker
EPSILON = 8.0  # of DP-SGD
_CALIBRATED = {"privacy.variant": "calibrated", "privacy.layer_scales": "ones"}


class Method(NamedTuple):
    """How a row of Table 1 is trained.

    Attributes:
        name: as the table writes it.
        layer: the file below `configs/`; that of DP-SGD depends on the family.
        values: what is set beside it, by dotted key.
        decay: of eDP-SGD, none for the others.
    """

    name: str
    layer: str
    values: Dict[str, Any]
    decay: Optional[str] = None

    @property
    def is_published(self) -> bool:
        """Whether the paper has such a column."""
        return self.layer == "mechanism/sgd.yaml" or bool(self.decay and not self.values)


def _edp(decay: str, **values: Any) -> Method:
    variant = "calibrated" if values else "published"
    said = "no decay" if decay == "none" else f"{decay} decay"
    return Method(f"eDP-SGD, {said}, {variant}", f"mechanism/edp_{decay}.yaml", values, decay)


METHODS: Dict[str, Method] = {
    "sgd": Method("SGD", "mechanism/sgd.yaml", {}),
    "edp_none": _edp("none"),
    "edp_linear": _edp("linear"),
    "edp_exponential": _edp("exponential"),
    "edp_none_calibrated": _edp("none", **_CALIBRATED),
    "edp_linear_calibrated": _edp("linear", **_CALIBRATED),
    "edp_exponential_calibrated": _edp("exponential", **_CALIBRATED),
    "dp_sgd": Method(f"DP-SGD at ε = {EPSILON:g}", "", {"privacy.target_epsilon": EPSILON}),
}


def layers_of(
    configs: Path, corpus: str, family: str, method: str, *, is_small: bool = False
) -> Tuple[List[Path], Dict[str, Any]]:
    """Return the files that are merged for a cell, and what is set beside them.

    Args:
        configs: the folder of the shipped configurations.
        is_small: with the small model of its family; what a recipe says of sizes holds.
    """
    files = [configs / f"{corpus}_{family}.yaml"]
    if corpus in STANDINS:
        files.append(configs / "data" / "small_standin.yaml")
    if is_small and not (method == "dp_sgd" and family == "clc"):  # whose recipe is of a small one
        small = [configs / "small" / f"{name}.yaml" for name in (family, corpus)]
        files += [file for file in small if file.is_file()]
    chosen = METHODS[method]
    if chosen.layer:
        return [*files, configs / chosen.layer], dict(chosen.values)
    layer, values = _recipe(configs, corpus, family)
    return [*files, layer], {**values, **chosen.values}


def _recipe(configs: Path, corpus: str, family: str) -> Tuple[Path, Dict[str, Any]]:
    """The recipe's layer for a small ε: that of the corpus where there is one."""
    folder = configs / "recipe"
    own = folder / f"{'heads' if family == 'bert' else 'clc'}_{corpus}.yaml"
    if own.is_file():
        return own, {}
    if family == "bert":
        return folder / "heads.yaml", {"model.start_from": f"runs/warm_bert_for_{corpus}"}
    if corpus in STANDINS:
        return folder / "clc_few.yaml", {"model.start_from": f"runs/warm_for_{corpus}"}
    vectors = {"data.embeddings.path": f"vectors/for_{corpus}.vec.gz"}
    return folder / "frozen_vectors.yaml", vectors


def method_of(record: Record) -> Optional[str]:
    """Return the method that a record is of, None if Table 1 has none such.

    SGD counts where it trains the whole model, eDP-SGD with N = 8, exact DP-SGD where it protects
    an utterance at ε = 8.
    """
    mechanism = record["mechanism"]
    if mechanism == "none":
        is_part = record["family"] == "bert" and value_of(record, "model.trained") != "all"
        return None if is_part else "sgd"
    if mechanism == "dp_sgd":
        is_unit = value_of(record, "privacy.unit") in (None, "utterance")
        is_at = value_of(record, "privacy.target_epsilon") == EPSILON
        return "dp_sgd" if is_unit and is_at else None
    micro_batches = record["workers"] * value_of(record, "privacy.micro_batches_per_worker")
    is_given = value_of(record, "privacy.noise_multiplier") is not None
    if micro_batches != N or not is_given:
        return None
    is_published = value_of(record, "privacy.variant") == "published"
    decay = record["settings"].get("privacy.decay.kind", "none")
    return f"edp_{decay}" if is_published else f"edp_{decay}_calibrated"
