"""The methods of Table 1: the configuration of each, and which records are its."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from edp_mx.data.synthetic.grammar import STANDINS
from edp_mx.runs.file_types import Record
from edp_mx.runs.records import value_of
from experiments.tables.paper import DECAY_RATES
from experiments.tables.paper_point import TOLERANCE, log10_epsilon_of

CORPORA = ("atis", "snips", "nlu_eval", "dstc8", *STANDINS)
FAMILIES = ("clc", "bert")
N = 8  # of Algorithm 1, the paper's GPUs: workers times micro-batches per worker
EPSILON = 8.0  # of DP-SGD
# α are the norms themselves, without which the paper's ε costs far more SER than it reports.
_AS_IN_THE_PAPER = {"privacy.layer_scales_unit": "norm"}
FREE = {"privacy.noise_multiplier": 1e-4, "privacy.layer_scales_unit": "largest"}
_CALIBRATED = {**FREE, "privacy.variant": "calibrated", "privacy.layer_scales": "ones"}


class Method(NamedTuple):
    """How a row of Table 1 is trained.

    Attributes:
        name: as the table writes it.
        layer: the file below `configs/`; DP-SGD's depends on the family.
        values: settings beside it, by dotted key.
        decay: of eDP-SGD, none for the others.
        is_at_papers_epsilon: z₀ and τ come from `paper_point`, for each row its own.
    """

    name: str
    layer: str
    values: Dict[str, Any]
    decay: Optional[str] = None
    is_at_papers_epsilon: bool = False

    @property
    def is_in_paper(self) -> bool:
        """Whether the paper has such a column."""
        return self.layer == "mechanism/sgd.yaml" or self.is_at_papers_epsilon


def _edp(decay: str, said: str, values: Dict[str, Any]) -> Method:
    kind = "no decay" if decay == "none" else f"{decay} decay"
    layer = f"mechanism/edp_{decay}.yaml"
    return Method(f"eDP-SGD, {kind}, {said}", layer, values, decay, values == _AS_IN_THE_PAPER)


_SAID: Dict[str, Tuple[str, Dict[str, Any]]] = {
    "": ("the paper's ε", _AS_IN_THE_PAPER),
    "_free": ("α ÷ largest", FREE),
    "_calibrated": ("calibrated", _CALIBRATED),
}


METHODS: Dict[str, Method] = {
    "sgd": Method("SGD", "mechanism/sgd.yaml", {}),
    **{
        f"edp_{decay}{end}": _edp(decay, *said)
        for end, said in _SAID.items()
        for decay in DECAY_RATES
    },
    "dp_sgd": Method(f"DP-SGD at ε = {EPSILON:g}", "", {"privacy.target_epsilon": EPSILON}),
}


def layers_of(
    configs: Path, corpus: str, family: str, method: Method, *, is_small: bool = False
) -> Tuple[List[Path], Dict[str, Any]]:
    """Return the files that are merged for a cell, and the settings beside them.

    Args:
        configs: the folder of the shipped configurations.
        is_small: with the small model of its family; a recipe's own sizes win.
    """
    files = [configs / f"{corpus}_{family}.yaml"]
    if corpus in STANDINS:
        files.append(configs / "data" / "small_standin.yaml")
    if is_small and (method.layer or family == "bert"):  # the recipe for CLC is of a small one
        small = [configs / "small" / f"{name}.yaml" for name in (family, corpus)]
        files += [file for file in small if file.is_file()]
    if method.layer:
        return [*files, configs / method.layer], dict(method.values)
    layer, values = _recipe(configs, corpus, family)
    return [*files, layer], {**values, **method.values}


def _recipe(configs: Path, corpus: str, family: str) -> Tuple[Path, Dict[str, Any]]:
    """The recipe's layer for a small ε: the corpus's own if it has one."""
    folder = configs / "recipe"
    own = folder / f"{'heads' if family == 'bert' else 'clc'}_{corpus}.yaml"
    if own.is_file():
        return own, {}
    if family == "bert":
        return folder / "own_bert.yaml", {"model.start_from": f"runs/warm_bert_for_{corpus}"}
    if corpus in STANDINS:
        return folder / "clc_few.yaml", {"model.start_from": f"runs/warm_for_{corpus}"}
    vectors = {"data.embeddings.path": f"vectors/for_{corpus}.vec.gz"}
    return folder / "frozen_vectors.yaml", vectors


def method_of(record: Record) -> Optional[str]:
    """Return the method that a record is of, None if Table 1 has none such.

    SGD counts where it trains the whole model, eDP-SGD with N = 8, and at the paper's ε where it
    has that by its own count, exact DP-SGD where it protects an utterance at ε = 8.
    """
    mechanism = record.mechanism
    if mechanism == "none":
        is_part = record.family == "bert" and value_of(record, "model.trained") != "all"
        return None if is_part else "sgd"
    if mechanism == "dp_sgd":
        is_unit = value_of(record, "privacy.unit") in (None, "utterance")
        is_at = value_of(record, "privacy.target_epsilon") == EPSILON
        return "dp_sgd" if is_unit and is_at else None
    micro_batches = record.workers * value_of(record, "privacy.micro_batches_per_worker")
    is_given = value_of(record, "privacy.noise_multiplier") is not None
    if micro_batches != N or not is_given:
        return None
    decay = record.settings.get("privacy.decay.kind", "none")
    if value_of(record, "privacy.layer_scales_unit") == "norm":
        wanted = log10_epsilon_of(record.family, record.corpus, decay)
        found = record.as_published.log10_epsilon
        is_there = wanted is not None and found is not None and abs(found - wanted) <= TOLERANCE
        return f"edp_{decay}" if is_there else None
    is_published = value_of(record, "privacy.variant") == "published"
    return f"edp_{decay}_free" if is_published else f"edp_{decay}_calibrated"
