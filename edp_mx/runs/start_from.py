"""The weights of another run to start from; parameters that do not fit are listed."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import mxnet as mx
import numpy as np

from edp_mx.config import load_config
from edp_mx.data.tokenizer import Tokenizer
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError
from edp_mx.models.encoder import ModelConfig
from edp_mx.models.label_names import alike_tags, most_alike, named_rows, transitions_by_kind
from edp_mx.models.registry import FAMILIES
from edp_mx.models.trained_part import TrainedPart
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.npz import Arrays, read_arrays
from edp_mx.tasks.model import TaskModel

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class RunStart:
    """The weights and the vocabulary of a finished run.

    Attributes:
        weights: by name; adapters are merged, and a model with adapters gets new ones.
        intents: its `model.intents`.
        part: its `model.trained`.
    """

    folder: Path
    vocabulary: Vocabulary
    weights: Arrays
    intents: str
    part: TrainedPart

    @classmethod
    def read(cls, folder: Path, ours: ModelConfig, *, width: Optional[int] = None) -> RunStart:
        """Read a run.

        Args:
            ours: the settings of the model that starts from it.
            width: of our word vectors, where the model reads words.

        Raises:
            UserError: it is not the folder of a finished run, a file of it is damaged, or its
                model has other sizes than ours.
        """
        run = RunDirectory.existing(folder)
        vocabulary = Vocabulary.from_json(run.read("vocabulary"))
        weights = read_arrays(run.weights, "a file of weights")
        config = load_config(run.config)
        model = config.model
        if model.family == ours.family:
            sizes = {f"model.{key}": (getattr(model, key), getattr(ours, key))
                     for key in FAMILIES[ours.family].sizes}  # fmt: skip
            if width is not None:
                sizes["data.embeddings.dimension"] = (config.data.embeddings.dimension, width)
            for key, (theirs, wanted) in sizes.items():
                if theirs != wanted:
                    raise UserError(
                        f"model.start_from: {folder} has {key}: {theirs}, not {wanted}; leave "
                        f"{key} out, and it is taken from there"
                    )
        part = model.trained_part
        return cls(folder, vocabulary, part.plain(weights, model), model.intents, part)

    @property
    def tokenizer(self) -> Tokenizer:
        """The word pieces; a run whose model reads words is refused."""
        if self.vocabulary.tokenizer is None:
            raise UserError(f"model.start_from: the model of {self.folder} reads words, not pieces")
        return self.vocabulary.tokenizer

    def load_into(
        self, model: TaskModel, vocabulary: Vocabulary, intents: str, *, by_names: bool
    ) -> List[int]:
        """Set the parameters of the same name and meaning; log the others, which stay as drawn.

        Rows that stand for words, characters or pieces go by what they stand for. A head is taken
        if its labels are the same, or row by row if `by_names`: see `models.label_names`.

        Args:
            intents: our `model.intents`; with another than the run's, its intent head is left out.
            by_names: whether labels that differ go by what is alike in their names.

        Returns:
            The places of the intents that no row of the run's was taken for.

        Raises:
            UserError: not a single parameter of the encoder fits, parameters that the run added
                and cannot merge do not fit, or it has no masked-LM head, which our intents need.
        """
        if intents != self.intents:
            other = self._without_labels(model, intents)
            return other.load_into(model, vocabulary, intents, by_names=by_names)
        left = self._take(model, vocabulary, by_names=by_names)
        fitting = set(model.collect_params()) - set(left)
        added = {name for name in self.weights if self.part.trains(name)}
        if not self.part.is_merged and added - fitting:
            keys = [f"model.{field.name}" for field in fields(self.part.settings)]
            raise UserError(
                f"model.start_from: {self.folder} has model.trained: {self.part.name}, so that "
                f"this model must have the same {', '.join(keys)} and model.frozen_layers"
            )
        if not set(model.encoder.collect_params()) - set(left):
            raise UserError(
                f"model.start_from: no parameter of {self.folder} fits the encoder; the settings "
                "below model: must be those of that run"
            )
        logger.info(
            "starting from %s: %d parameters are its own; left out: %s",
            self.folder,
            len(fitting),
            ", ".join(left) or "none",
        )
        if model.label_head is None:
            return []
        if model.label_head.weight.name in left:
            return [*range(len(vocabulary.intents))]
        if vocabulary.intents == self.vocabulary.intents:
            return []
        alike = most_alike(vocabulary.intents, self.vocabulary.intents)
        return [i for i, rows in enumerate(alike) if not rows]

    def _take(self, model: TaskModel, vocabulary: Vocabulary, *, by_names: bool) -> List[str]:
        """Set the parameters that fit; return the names of the others."""
        theirs, ours = _tables(model, self.vocabulary), _tables(model, vocabulary)
        heads = self._named_heads(model, vocabulary) if by_names else {}
        left = []
        for name, parameter in model.collect_params().items():
            values = heads.get(name)
            if values is None and self._same_labels(name, model, vocabulary):
                drawn = parameter.data().asnumpy()
                values = self._values(name, drawn, theirs.get(name), ours.get(name))
            if values is None:
                left.append(name)
            else:
                parameter.set_data(mx.nd.array(values, dtype="float32"))
        return left

    def _without_labels(self, model: TaskModel, intents: str) -> RunStart:
        """The same for a model that reads its labels in another way."""
        if model.encoder.needs_masked_lm:
            raise UserError(
                f"model.intents: {intents} needs a masked-LM head, and the run {self.folder} has "
                f"none; train it with model.intents: {intents} too, or start from a checkpoint"
            )
        head = {} if model.label_head is None else model.label_head.collect_params()
        rest = {name: values for name, values in self.weights.items() if name not in head}
        return replace(self, weights=rest, intents=intents)

    def _named_heads(self, model: TaskModel, vocabulary: Vocabulary) -> Arrays:
        """The parameters of the heads, by the names of labels that differ from the run's.

        Where our intent head reads more features than the run's, their weights are 0.
        """
        theirs, weights, heads = self.vocabulary, self.weights, {}
        if "intents" in model.heads and vocabulary.intents != theirs.intents:
            alike = most_alike(vocabulary.intents, theirs.intents)
            for name, ours in model.heads["intents"].collect_params().items():
                if name in weights:
                    heads[name] = _fitted(named_rows(weights[name], alike), ours.shape)
            logger.info("intents: %d of %d have a label alike", sum(map(bool, alike)), len(alike))
        if "slots" in model.heads and vocabulary.slots != theirs.slots:
            tags = alike_tags(vocabulary.slots, theirs.slots)
            for name in model.heads["slots"].collect_params():
                if name.endswith("transitions") and name in weights:
                    heads[name] = transitions_by_kind(vocabulary.slots, theirs.slots, weights[name])
                elif name in weights:
                    heads[name] = named_rows(weights[name], tags)
        return heads

    def _same_labels(self, name: str, model: TaskModel, vocabulary: Vocabulary) -> bool:
        """Whether a parameter is not a head's, or one whose labels are the same."""
        for labels, head in model.heads.items():
            if name in head.collect_params():
                theirs, ours = (getattr(v, labels, ()) for v in (self.vocabulary, vocabulary))
                return theirs == ours
        return True

    def _values(
        self,
        name: str,
        drawn: np.ndarray,
        theirs: Optional[Dict[str, int]],
        ours: Optional[Dict[str, int]],
    ) -> Optional[np.ndarray]:
        """The new values of a parameter; None if the run has none that fit."""
        found = self.weights.get(name)
        if found is None or found.shape[1:] != drawn.shape[1:]:
            return None
        if theirs is None or ours is None:
            return found if found.shape == drawn.shape else None
        shared = [entry for entry in ours if entry in theirs]
        drawn[[ours[entry] for entry in shared]] = found[[theirs[entry] for entry in shared]]
        return drawn


def _fitted(rows: np.ndarray, shape: Tuple[int, ...]) -> np.ndarray:
    """Fill rows of fewer features up with zeros, and cut more off. Shapes: (I, H) → (I, H')."""
    fitted = np.zeros(shape, rows.dtype)
    shared = tuple(slice(min(sizes)) for sizes in zip(rows.shape, shape))
    fitted[shared] = rows[shared]
    return fitted


def _tables(model: TaskModel, vocabulary: Vocabulary) -> Dict[str, Dict[str, int]]:
    """The row of each word, character or piece, by parameter."""
    tables = model.encoder.tables(vocabulary)
    return {name: {entry: i for i, entry in enumerate(rows)} for name, rows in tables.items()}
