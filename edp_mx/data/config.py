"""The settings of the data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import List, Optional, Tuple, Union

from edp_mx.data.embeddings import EmbeddingsConfig
from edp_mx.data.encoding import MAX_CHARACTERS, MAX_PIECES, MAX_TOKENS
from edp_mx.data.labels import LabelsConfig
from edp_mx.data.readers import FORMATS
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.splits import PAPER_FRACTIONS
from edp_mx.data.tokenization import PATTERNS
from edp_mx.data.vocabulary import VocabularyConfig
from edp_mx.runtime.files import PathLike, path_field
from edp_mx.runtime.limits import MOST_AT_ONCE, MOST_COUNTED, MOST_SEED
from edp_mx.runtime.settings import SettingError, Settings, setting

HELD_OUT = 0.05  # of a training part that comes without a validation part


@dataclass(frozen=True)
class SplitConfig(Settings):
    """The split of a corpus by shares, or with a file that is the whole test part.

    Args:
        train: share of the training part, such as 0.8; left out where `test` is a file.
        validation: share of the validation part; where `test` is a file, of the utterances that
            are not in it, unless these bring a validation part of their own.
        test: share of the test part; or a file or folder in any layout that holds it.
    """

    train: Optional[float] = setting(None, above=0, below=1)
    validation: float = setting(HELD_OUT, above=0, below=1)
    test: Union[float, str] = path_field(0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.test, str):
            if self.train is not None:
                raise SettingError("train", "must be left out, because test names a file")
            return
        shares = (self.train or 0.0, self.validation, self.test)
        if min(shares) <= 0 or abs(sum(shares) - 1.0) > 1e-9:
            raise SettingError(
                "test",
                "must name a file, or be a share above 0 that adds up to 1 with those of train "
                f"and validation, not {self.test}",
            )

    @property
    def shares(self) -> Optional[Tuple[float, float, float]]:
        """The shares of training, validation and test part; None with a file."""
        if self.train is None or isinstance(self.test, str):
            return None
        return self.train, self.validation, self.test


PUBLIC_CORPORA = ("atis", "snips", "nlu_eval", "dstc8")


@dataclass(frozen=True)
class DataConfig(Settings):
    """Which utterances are used, how they are split, and how they are encoded.

    Args:
        corpus: atis, snips, nlu_eval, dstc8; communication, health, video (stand-ins for the
            paper's internal corpora); or a name of your own, with `path`.
        path: a file or folder. Without one, a public corpus is looked for in the folder that
            EDP_MX_DATA names, and in data/.
        layout: how its files are laid out; auto recognises it.
        split: "paper" (45:5:50 over the whole corpus; if users are named, each on one side), "own"
            (as the corpus was published; without a test part, its validation part is that), or
            the shares of training, validation and test in place of the paper's, as "80/10/10" in
            per cent or as {train: 0.8, validation: 0.1, test: 0.1}; or {test: FILE}, with a file
            that is the test part, while `path` has the rest.
        split_seed: seed of the split, of a subset, and of a stand-in.
        size: number of utterances of a stand-in (default 20,000), or of a random subset of another
            corpus (default all).
        tokenizer: how a text is cut when the trained model is asked about it, which should be as
            the corpus was: at blanks, or with punctuation apart from words too; auto takes
            punctuation for the users' turns of dstc8, blanks for all else. It changes nothing in
            training.
        max_tokens: how many tokens of an utterance are read; the rest is cut off.
        max_characters: how many characters of a token are read.
        max_pieces: how many word pieces of an utterance a BERT reads, with [CLS] and [SEP].
    """

    corpus: str = "atis"
    path: Optional[str] = path_field()
    layout: str = setting("auto", one_of=("auto", *FORMATS))
    split: Union[str, SplitConfig] = "paper"
    split_seed: int = setting(0, at_least=0, at_most=MOST_SEED)
    size: Optional[int] = setting(None, at_least=1, at_most=MOST_COUNTED)
    tokenizer: str = setting("auto", one_of=("auto", *PATTERNS))
    max_tokens: int = setting(MAX_TOKENS, at_least=1, at_most=MOST_AT_ONCE)
    max_characters: int = setting(MAX_CHARACTERS, at_least=1, at_most=MOST_AT_ONCE)
    max_pieces: int = setting(MAX_PIECES, at_least=3, at_most=MOST_AT_ONCE)
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    labels: LabelsConfig = field(default_factory=LabelsConfig)
    embeddings: EmbeddingsConfig = field(default_factory=EmbeddingsConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fractions  # noqa: B018 (refuses what is no split)
        if self.vocabulary.source == "embeddings" and self.embeddings.path is None:
            raise SettingError(
                "embeddings.path", "must be set, because vocabulary.source is embeddings"
            )
        if self.path and self.test_file and _is_in(self.test_file, self.path):
            raise SettingError(
                "split.test",
                f"must not be {self.test_file}, because that is a file of the corpus, {self.path}, "
                "and would be trained on; name utterances from elsewhere",
            )
        for place in (self.path, self.test_file):
            found = place and self.list_within(place)
            if found:
                raise SettingError(*found)

    @property
    def cut(self) -> str:
        """The name of the tokenizer by which a text is cut: `tokenizer`, or what auto means."""
        if self.tokenizer != "auto":
            return self.tokenizer
        is_cut = self.corpus == "dstc8" and self.columns.prompt is None
        return "punctuation" if is_cut else "blanks"

    def tokens_of(self, text: str) -> List[str]:
        """Cut a text into tokens by `tokenizer`."""
        return re.findall(self.token_pattern, text)

    @property
    def token_pattern(self) -> str:
        """The expression that finds the tokens of a text, or of two with [SEP] between them."""
        return r"\[SEP\](?!\S)|" * self.reads_second + PATTERNS[self.cut]

    @property
    def fractions(self) -> Optional[Tuple[float, float, float]]:
        """The shares of the three parts; None if the parts are those of the corpus' files."""
        if isinstance(self.split, SplitConfig):
            return self.split.shares
        if self.split == "own":
            return None
        if self.split == "paper":
            return PAPER_FRACTIONS
        percentages = self.split.split("/")
        if len(percentages) == 3 and all(part.isdecimal() for part in percentages):
            train, validation, test = (int(part) for part in percentages)
            if train + validation + test == 100:
                return train / 100, validation / 100, test / 100
        raise SettingError(
            "split",
            'must be paper, own, or three percentages that add up to 100, such as "80/10/10", or '
            f"{{test: FILE}}, not {self.split!r}",
        )

    @property
    def test_file(self) -> Optional[str]:
        """The file or folder of the test part, if it is beside the corpus."""
        named = self.split.test if isinstance(self.split, SplitConfig) else None
        return named if isinstance(named, str) else None

    def list_within(self, corpus: PathLike) -> Optional[Tuple[str, str]]:
        """Return the key of a list that is read from a corpus itself, and why it must not be.

        Words and labels from elsewhere count as public, so that ε would seem to cover them.
        """
        for key in ("vocabulary", "labels", "embeddings"):
            path = getattr(self, key).path
            if path is not None and overlap(path, corpus):
                return f"{key}.path", (
                    f"must not be {path}, because that shares files with the corpus, {corpus}, "
                    "which is private; name public text from elsewhere, or use source: train, "
                    "which the report states"
                )
        return None

    @property
    def reads_second(self) -> bool:
        """Whether an utterance is made of two texts."""
        return self.columns.second is not None

    @property
    def held_out(self) -> float:
        """The share of a training part that is held out where there is no validation part."""
        return self.split.validation if isinstance(self.split, SplitConfig) else HELD_OUT


def _is_in(file: PathLike, corpus: PathLike) -> bool:
    """Return whether a file is a corpus, or lies in its folder."""
    place, whole = Path(file).resolve(), Path(corpus).resolve()
    return whole in (place, place.parent)


def overlap(one: PathLike, other: PathLike) -> bool:
    """Return whether two files or folders are the same, or one of them is below the other."""
    first, second = Path(one).resolve(), Path(other).resolve()
    return first == second or first in second.parents or second in first.parents
