"""The words (or word pieces) and labels that a model knows, and their source."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from edp_mx.data.columnar_corpus import token_counts
from edp_mx.data.embeddings import read_embedding_words
from edp_mx.data.labels import LabelsConfig, check_path, labels_of, source_of
from edp_mx.data.readers.assembly import read_lines
from edp_mx.data.tokenizer import Tokenizer, tokenizer_from_json
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.files import path_field
from edp_mx.runtime.limits import MOST_COUNTED
from edp_mx.runtime.settings import Settings, setting

PAD, UNK = 0, 1
_RESERVED = ("<pad>", "<unk>")
_LISTS = ("words", "characters", "slots", "intents")


@dataclass(frozen=True)
class VocabularyConfig(Settings):
    """Where words and characters come from, or a BERT's word pieces.

    Args:
        source: "train" (the training part; no ε covers that), "sample" (other utterances, which are
            public), "file" (a public list, one word per line; for a BERT its vocab.txt, or a folder
            with a tokenizer in Hugging Face's layout), "embeddings" (the words of the embeddings'
            file) or "checkpoint" (those of `model.start_from` or `model.checkpoint`). With "train"
            and "sample" a BERT's pieces are learned.
        path: the list, with "file"; the utterances, with "sample", which `data.columns` reads as it
            reads the corpus (a stand-in needs none, since it draws a sample of its own).
        min_count: with "train" and "sample", rarer words become unknown words.
        lowercase: whether words are looked up in lower case. Characters always keep their case.
        max_words: with "file" and "embeddings", how many words are taken from the beginning of the
            list; for a BERT, how many pieces are learned (default 30,522).
    """

    source: str = setting("train", one_of=("train", "sample", "file", "embeddings", "checkpoint"))
    path: Optional[str] = path_field()
    min_count: int = setting(1, at_least=1, at_most=MOST_COUNTED)
    lowercase: bool = True
    max_words: Optional[int] = setting(None, at_least=1, at_most=MOST_COUNTED)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_path(self.source, self.path)


@dataclass(frozen=True)
class Vocabulary:
    """Ordered words and characters, or word pieces, and labels; a place in a tuple is an id.

    In `words` and `characters`, 0 stands for padding and 1 for all that is unknown; `slots` (BIO
    tags, "O" first) and `intents` have no such places. With word pieces, both are empty, and
    `template` is what is written around an utterance: see `data.template`.
    """

    words: Tuple[str, ...]
    characters: Tuple[str, ...]
    slots: Tuple[str, ...]
    intents: Tuple[str, ...]
    word_source: str
    label_source: str
    lowercase: bool = True
    tokenizer: Optional[Tokenizer] = None
    template: Optional[str] = None

    @cached_property
    def _ids(self) -> Dict[str, Dict[str, int]]:
        return {name: {entry: i for i, entry in enumerate(getattr(self, name))} for name in _LISTS}

    @property
    def is_public(self) -> bool:
        """Whether nothing in it was read from the training part; if not, every ε is ∞."""
        return self.word_source != "train" and self.has_public_labels

    @property
    def has_public_labels(self) -> bool:
        """Whether the labels were not read from the training part, nor from the whole corpus."""
        return self.label_source not in ("train", "private_file")

    def word_id(self, token: str) -> int:
        return self._ids["words"].get(token.lower() if self.lowercase else token, UNK)

    def character_ids(self, token: str) -> List[int]:
        ids = self._ids["characters"]
        return [ids.get(character, UNK) for character in token]

    def slot_id(self, tag: str) -> int:
        """Return the id of a BIO tag, −1 if unknown."""
        return self._ids["slots"].get(tag, -1)

    def intent_id(self, intent: str) -> int:
        """Return the id of an intent, −1 if unknown."""
        return self._ids["intents"].get(intent, -1)

    def to_json(self) -> Dict[str, Any]:
        return {
            **{name: list(getattr(self, name)) for name in _LISTS},
            "word_source": self.word_source,
            "label_source": self.label_source,
            "lowercase": self.lowercase,
            **(self.tokenizer.to_json() if self.tokenizer else {"pieces": []}),
            **({"template": self.template} if self.template else {}),
        }

    @classmethod
    def from_json(cls, value: Dict[str, Any]) -> Vocabulary:
        """Build the vocabulary from the values of `to_json`."""
        try:
            return cls(
                **{name: tuple(value[name]) for name in _LISTS},
                word_source=value["word_source"],
                label_source=value["label_source"],
                lowercase=bool(value["lowercase"]),
                tokenizer=tokenizer_from_json(value) if value.get("pieces") else None,
                template=value.get("template"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"the vocabulary file is incomplete or not ours ({error})") from error

    @classmethod
    def of_pieces(
        cls,
        tokenizer: Tokenizer,
        train: Sequence[Utterance],
        *,
        word_source: str,
        labels: LabelsConfig = LabelsConfig(),  # noqa: B008 (frozen)
        label_sample: Sequence[Utterance] = (),
        template: Optional[str] = None,
    ) -> Vocabulary:
        """Build a BERT's vocabulary: its pieces, with labels as in `build`."""
        slots, intents = labels_of(train, labels, label_sample)
        rest = (word_source, source_of(labels), tokenizer.lowercase, tokenizer, template)
        return cls((), (), slots, intents, *rest)

    @classmethod
    def build(
        cls,
        train: Sequence[Utterance],
        vocabulary: VocabularyConfig = VocabularyConfig(),  # noqa: B008 (frozen)
        labels: LabelsConfig = LabelsConfig(),  # noqa: B008 (frozen)
        *,
        embeddings_path: Optional[str] = None,
        word_sample: Sequence[Utterance] = (),
        label_sample: Sequence[Utterance] = (),
        start: Optional[Vocabulary] = None,
    ) -> Vocabulary:
        """Build the vocabulary from the training part, or from public lists alone.

        Args:
            train: the training part; with public lists only its labels are checked.
            embeddings_path: `data.embeddings.path`, needed by the source "embeddings".
            word_sample: public utterances, needed by the source "sample".
            label_sample: public utterances, needed by the source "sample".
            start: of the run that the model starts from, needed by the source "checkpoint".

        Raises:
            UserError: a list is missing or broken, or a public label list lacks a label of the
                training part (the sentence names the label and the utterance).

        Guarantee: with public sources the result depends on no utterance. Ids follow the alphabet
            or the public list, never the frequency in the training part.
        """
        slots, intents = labels_of(train, labels, label_sample)
        labelled = source_of(labels)
        if vocabulary.source == "checkpoint":
            if start is None or not start.words:
                raise UserError(
                    "data.vocabulary.source: checkpoint needs model.start_from, a run of this "
                    "model.family"
                )
            return replace(
                start, slots=slots, intents=intents, word_source="checkpoint", label_source=labelled
            )
        if vocabulary.source in ("train", "sample"):
            seen = train if vocabulary.source == "train" else word_sample
            words = _words_of(seen, vocabulary)
            characters = sorted({c for token in token_counts(seen) for c in token})
        else:
            words, characters = _listed_words(vocabulary, embeddings_path)
        rest = (slots, intents, vocabulary.source, labelled, vocabulary.lowercase)
        return cls((*_RESERVED, *words), (*_RESERVED, *characters), *rest)


def _listed_words(
    config: VocabularyConfig, embeddings_path: Optional[str]
) -> Tuple[List[str], List[str]]:
    path = str(config.path or embeddings_path)  # the config holds that the right one is there
    entries = (
        (line.strip() for _, line in read_lines(Path(path)))
        if config.source == "file"
        else read_embedding_words(path)
    )
    words: Dict[str, None] = {}
    for entry in entries:
        if config.max_words is not None and len(words) >= config.max_words:
            break
        if entry and entry not in _RESERVED:
            words.setdefault(entry.lower() if config.lowercase else entry)
    if not words:
        raise UserError(f"{path} holds no word")
    characters = {c for word in words for case in (word.lower(), word.upper(), word) for c in case}
    return list(words), sorted(characters)


def _words_of(utterances: Sequence[Utterance], config: VocabularyConfig) -> List[str]:
    """Return the words that occur often enough, by the alphabet."""
    counts: Dict[str, int] = {}
    for token, count in token_counts(utterances).items():
        word = token.lower() if config.lowercase else token
        counts[word] = counts.get(word, 0) + count
    return sorted(w for w, n in counts.items() if n >= config.min_count and w not in _RESERVED)
