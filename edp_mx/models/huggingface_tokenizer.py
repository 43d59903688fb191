"""Hugging Face's `vocab.txt`, `tokenizer_config.json` and `tokenizer.json` of a BERT."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Dict, Tuple

from edp_mx.data.wordpiece import WordPiece
from edp_mx.errors import UserError
from edp_mx.runtime.files import read_json

logger = logging.getLogger(__name__)

VOCABULARY, SETTINGS, TOKENIZER = "vocab.txt", "tokenizer_config.json", "tokenizer.json"


def read_wordpiece(folder: Path) -> WordPiece:
    """The pieces of a checkpoint, and whether words are cut in lower case.

    Edge cases: `transformers` 5 writes no vocab.txt; the pieces are then those of tokenizer.json.
        Where nothing says otherwise, words are cut in lower case, as in `transformers`.

    Raises:
        UserError: neither file is there, or one is torn or of another kind of tokenizer.
    """
    settings = _object(folder / SETTINGS) if (folder / SETTINGS).exists() else {}
    if (folder / VOCABULARY).exists():
        lowercase = _lowercase(folder / SETTINGS, settings, default=True)
        return WordPiece.from_file(folder / VOCABULARY, lowercase=lowercase)
    path = folder / TOKENIZER
    if not path.exists():
        raise UserError(f"{folder} has no {VOCABULARY}: copy it there beside the weights")
    tokenizer = _object(path)
    normalizer = tokenizer.get("normalizer")
    default = normalizer.get("lowercase", True) if isinstance(normalizer, dict) else True
    lowercase = _lowercase(folder / SETTINGS, settings, default=default)
    try:
        return WordPiece(_pieces(tokenizer.get("model")), lowercase)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _object(path: Path) -> Dict[str, Any]:
    """A JSON file that holds an object."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise UserError(f"{path} is not an object of settings")
    return value


def _lowercase(path: Path, settings: Dict[str, Any], *, default: bool) -> bool:
    """do_lower_case; warns where accents are to be treated in another way than case."""
    lowercase = settings.get("do_lower_case", default)
    if not isinstance(lowercase, bool):
        raise UserError(f"{path}: do_lower_case is {lowercase!r}; it must be true or false")
    strips = settings.get("strip_accents")
    if strips is not None and strips != lowercase:
        logger.warning(
            "%s: strip_accents %s is not followed: accents go exactly where words are put in "
            "lower case, so that words with accents fall into other pieces than in transformers",
            path,
            strips,
        )
    return lowercase


def _pieces(model: Any) -> Tuple[str, ...]:
    """The pieces of a tokenizer.json in the order of their ids."""
    ids = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(ids, dict) or model.get("type", "WordPiece") != "WordPiece":
        raise UserError("this is no WordPiece tokenizer; only a BERT with one can be read")
    pieces = sorted(ids, key=lambda piece: ids[piece])
    if [ids[piece] for piece in pieces] != list(range(len(pieces))):
        raise UserError(f"the ids of its {len(pieces)} pieces are not 0, 1, 2, …")
    return tuple(pieces)


def tokenizer_json(wordpiece: WordPiece, *, max_positions: int) -> Dict[str, Any]:
    """The settings that make `transformers` cut words into the same pieces."""
    return {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": wordpiece.lowercase,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": max_positions,
        **{f"{kind}_token": f"[{kind.upper()}]" for kind in ("pad", "unk", "cls", "sep", "mask")},
    }
