"""What a configuration says of the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from edp_mx.data.embeddings import EmbeddingsConfig
from edp_mx.data.encoding import MAX_CHARACTERS, MAX_PIECES, MAX_TOKENS
from edp_mx.data.readers import FORMATS
from edp_mx.data.vocabulary import LabelsConfig, VocabularyConfig
from edp_mx.errors import UserError
from edp_mx.runtime.files import path_field

PUBLIC_CORPORA = ("atis", "snips", "nlu_eval")


@dataclass(frozen=True)
class DataConfig:
    """Which utterances, how split, and how they become numbers.

    Args:
        corpus: atis, snips, nlu_eval; communication, health, video (stand-ins for the paper's
            internal corpora); or a name of one's own, with `path`.
        path: a file or folder; the public corpora are also found by themselves.
        layout: "auto", or the name of a reader.
        split: "paper" (45:5:50 over the whole corpus; each user, where users are named, on one
            side) or "own" (as the corpus was published).
        split_seed: of the split, of a subset, and of a stand-in.
        size: utterances of a stand-in (default 20,000), or of a random subset of another corpus
            (default all).
        max_tokens, max_characters: what is longer is cut off.
        max_pieces: the same for a BERT's word pieces, with [CLS] and [SEP].
    """

    corpus: str = "atis"
    path: Optional[str] = path_field()
    layout: str = "auto"
    split: str = "paper"
    split_seed: int = 0
    size: Optional[int] = None
    max_tokens: int = MAX_TOKENS
    max_characters: int = MAX_CHARACTERS
    max_pieces: int = MAX_PIECES
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    labels: LabelsConfig = field(default_factory=LabelsConfig)
    embeddings: EmbeddingsConfig = field(default_factory=EmbeddingsConfig)

    def __post_init__(self) -> None:
        known = {"layout": ("auto", *FORMATS), "split": ("paper", "own")}
        for key, values in known.items():
            if getattr(self, key) not in values:
                raise UserError(
                    f"data.{key}: {getattr(self, key)!r} is none of {', '.join(values)}"
                )
        least = {"split_seed": 0, "size": 1, "max_tokens": 1, "max_characters": 1}
        least["max_pieces"] = 3
        for key, minimum in least.items():
            value = getattr(self, key)
            if value is not None and value < minimum:
                raise UserError(f"data.{key} must be ≥ {minimum}, not {value}")
        if self.vocabulary.source == "embeddings" and self.embeddings.path is None:
            raise UserError("data.embeddings.path must be set with vocabulary source: embeddings")
        for key in ("vocabulary", "labels", "embeddings"):
            path = getattr(self, key).path
            if path is not None and self.path is not None and _lies_in(path, self.path):
                raise UserError(
                    f"data.{key}.path: {path} is the corpus itself, which is private; name public "
                    "text from elsewhere, or use source: train, which the report then tells"
                )


def _lies_in(path: str, folder: str) -> bool:
    """Whether a file is `folder` or lies below it."""
    inner, outer = Path(path).resolve(), Path(folder).resolve()
    return inner == outer or outer in inner.parents
