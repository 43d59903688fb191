"""Byte-level byte-pair encoding: the pieces of GPT-2 and RoBERTa."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Dict, Iterable, List, Mapping, Sequence, Tuple

from edp_mx.data.readers.assembly import read_lines
from edp_mx.data.tokenization import split_tokens
from edp_mx.data.tokenizer import (
    BYTE_LEVEL,
    SETTINGS,
    TOKENIZER,
    SpecialIds,
    Tokenizer,
    pieces_by_id,
    read_object,
)
from edp_mx.data.wordpiece_learning import as_utf8
from edp_mx.errors import UserError
from edp_mx.runtime.files import write_json, write_text

_SPECIAL = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")  # of RoBERTa
END = "<|endoftext|>"  # of GPT-2: it stands for all of them
_BLANK = "Ġ"  # a blank within a piece


@dataclass(frozen=True)
class ByteLevelBPE(Tokenizer):
    """RoBERTa's tokenizer with `add_prefix_space`, or GPT-2's, whose texts begin without a blank.

    `merges` are the joined pairs, in this order.
    """

    kind: ClassVar[str] = "BPE"
    before_token: ClassVar[str] = " "
    pieces: Tuple[str, ...]
    merges: Tuple[Tuple[str, str], ...]
    lowercase: bool = False

    @cached_property
    def special_ids(self) -> SpecialIds:
        found = [piece if piece in self.pieces else END for piece in _SPECIAL]
        if END in found and END not in self.pieces:
            raise UserError(f"the vocabulary lacks one of {' '.join(_SPECIAL)}, and {END}")
        return SpecialIds(*map(self.pieces.index, found))

    @cached_property
    def _library(self) -> Any:
        from tokenizers import Tokenizer as Library
        from tokenizers import models, pre_tokenizers

        places = {piece: i for i, piece in enumerate(self.pieces)}
        library = Library(models.BPE(places, list(self.merges)))
        library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        return library

    @property
    def has_openings(self) -> bool:
        """See `Tokenizer`: in GPT-2's a blank belongs to the word behind it."""
        return self.pieces[self.special_ids.cls] == END

    def ids(self, token: str) -> List[int]:
        """Return the pieces of one token, at least one; every byte can be spelled."""
        return self._spelled(f"{self.before_token}{as_utf8(token)}")

    def opening_ids(self, token: str) -> List[int]:
        return self._spelled(as_utf8(token)) if self.has_openings else self.ids(token)

    def text_of(self, ids: Sequence[int]) -> str:
        """See `Tokenizer`; bytes that are no whole character become U+FFFD."""
        from tokenizers.decoders import ByteLevel

        return ByteLevel().decode([self.pieces[i] for i in ids])

    def _spelled(self, text: str) -> List[int]:
        ids = self._library.encode(text).ids
        if sum(len(self.pieces[i]) for i in ids) < len(text.encode()):  # the library leaves it out
            raise UserError(
                f'the word "{text.strip()}" cannot be spelled, since the vocabulary lacks some of '
                "its bytes: take a checkpoint with all 256, as GPT-2 and RoBERTa have them"
            )
        return ids

    def whole_words(self) -> List[str]:
        """Return the ASCII words that are a single piece behind a blank."""
        opening = (piece[1:] for piece in self.pieces if piece.startswith(_BLANK))
        return [word for word in opening if word.isascii() and word.isalnum()]

    def to_json(self) -> Dict[str, Any]:
        merges = [list(pair) for pair in self.merges]  # as JSON gives them back
        return {"tokenizer": self.kind, "pieces": list(self.pieces), "merges": merges}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ByteLevelBPE:
        return cls(tuple(value["pieces"]), tuple((a, b) for a, b in value["merges"]))

    def save(self, folder: Path, *, max_positions: int) -> None:
        """Write `tokenizer.json` and the settings of `transformers`.

        With them a text that holds special pieces, such as `<|endoftext|>`, is read as these.
        """
        from tokenizers import Tokenizer as Library
        from tokenizers import decoders, pre_tokenizers, processors

        library, ids = Library.from_str(self.library_json()), self.special_ids
        library.add_special_tokens(list(dict.fromkeys(self.pieces[i] for i in ids)))
        library.decoder = decoders.ByteLevel()
        special = {f"{name}_token": self.pieces[i] for name, i in ids._asdict().items()}
        if self.has_openings:
            special = {f"{name}_token": END for name in ("bos", "eos", "unk", "pad")}
        else:
            library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
            sep, cls = ((self.pieces[i], i) for i in (ids.sep, ids.cls))
            library.post_processor = processors.RobertaProcessing(sep, cls)
        write_text(folder / TOKENIZER, library.to_str(pretty=True))
        write_json(
            folder / SETTINGS,
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "model_max_length": max_positions,
                **special,
            },
        )

    @classmethod
    def learn(cls, lines: Iterable[str], *, size: int, min_count: int) -> ByteLevelBPE:
        """Learn GPT-2's kind: the end of text, all bytes, and what stands together most often.

        Args:
            size: of the vocabulary; with little text it comes out smaller.
            min_count: pieces that are rarer are not made.

        Raises:
            UserError: `size` has no room for the bytes.

        Guarantee: the same text gives the same pieces in the same order, in every process.
        Source: Sennrich et al. 2016; Radford et al. 2019, section 2.2.
        """
        from tokenizers import Tokenizer as Library
        from tokenizers import models, pre_tokenizers, trainers

        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        if size <= len(alphabet):
            raise UserError(
                f"data.vocabulary.max_words: {size} pieces have no room for the {len(alphabet)} "
                f"bytes and {END}; raise it"
            )
        library = Library(models.BPE())
        library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=min_count,
            special_tokens=[END],
            initial_alphabet=alphabet,
            show_progress=False,
        )
        library.train_from_iterator((" ".join(split_tokens(as_utf8(x))) for x in lines), trainer)
        model = json.loads(library.to_str())["model"]
        return cls(pieces_by_id(model["vocab"]), _pairs(model["merges"]))

    @classmethod
    def load(cls, folder: Path) -> ByteLevelBPE:
        """Read `tokenizer.json`, or `vocab.json` and `merges.txt`; refuse pieces of other kinds."""
        if (folder / TOKENIZER).exists():
            whole = read_object(folder / TOKENIZER)
            _refuse_other_kinds(whole)
            added = {piece["content"]: piece["id"] for piece in whole.get("added_tokens", ())}
            ids, merges = {**whole["model"]["vocab"], **added}, whole["model"]["merges"]
        else:
            vocabulary, joined = (folder / name for name in BYTE_LEVEL)
            merges = [line for _, line in read_lines(joined) if line[:9] != "#version:"]
            ids = read_object(vocabulary)
        return cls(pieces_by_id(ids), _pairs(merges))


def _refuse_other_kinds(whole: Mapping[str, Any]) -> None:
    """Refuse pieces that are not made of bytes behind blanks, which would be spelled wrongly."""
    parts = whole.get("pre_tokenizer") or {}
    kinds = {part.get("type") for part in parts.get("pretokenizers", [parts])}
    if kinds != {"ByteLevel"} or whole.get("normalizer") is not None:
        raise UserError(
            "its pieces are not byte-level like those of GPT-2 and RoBERTa (pre_tokenizer "
            f"{parts.get('type')}, normalizer {(whole.get('normalizer') or {}).get('type')}): take "
            "another checkpoint"
        )


def _pairs(merges: Iterable[Any]) -> Tuple[Tuple[str, str], ...]:
    """Return merges as pairs, in their order; each is "a b" or ["a", "b"]."""
    parts = (merge.split(" ") if isinstance(merge, str) else merge for merge in merges)
    return tuple((a, b) for a, b in parts)
