"""The words of an intent, by which a masked language model names it."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence

from edp_mx.data.tokenizer import Tokenizer
from edp_mx.errors import UserError
from edp_mx.models.label_names import spelled_words
from edp_mx.runtime.yaml_tree import read_mapping


def label_words(intents: Sequence[str], path: Optional[str]) -> Dict[str, List[str]]:
    """Return the words of each intent: those of a file, and for others those of their names.

    Args:
        intents: the intents' names.
        path: a YAML file of intents and their words, each a text or a list of texts.

    Raises:
        UserError: the file cannot be read, names an intent that is not there, or has something
            else than words for one.

    Example:
        >>> label_words(["PlayMusic", "snips.GetWeather"], None)
        {'PlayMusic': ['play', 'music'], 'snips.GetWeather': ['snips', 'get', 'weather']}
    """
    found = {intent: spelled_words(intent) or [intent] for intent in intents}
    tree, origins = read_mapping(Path(path)) if path is not None else ({}, {})
    for intent, value in tree.items():
        place = f"model.label_words: {origins[(intent,)]}"
        if intent not in found:
            raise UserError(f"{place}: there is no intent {intent!r} in the data; leave it out")
        texts = value if isinstance(value, list) else [value]
        words = [word for text in texts for word in (text.split() if isinstance(text, str) else [])]
        if not words or not all(isinstance(text, str) for text in texts):
            raise UserError(f"{place}: the words of {intent} must be a text or a list of texts")
        found[intent] = words
    return found


def label_pieces(words: Mapping[str, Sequence[str]], tokenizer: Tokenizer) -> List[List[int]]:
    """Return the ids of the pieces of each intent's words; unspellable ones are left out.

    Raises:
        UserError: nothing is left of an intent.
    """
    unknown, found = tokenizer.special_ids.unk, []
    for intent, own in words.items():
        pieces = [i for word in own for i in tokenizer.ids(word) if i != unknown]
        if not pieces:
            raise UserError(
                f"model.intents: infilling: the word pieces cannot spell {' '.join(own)!r}, the "
                f"words of the intent {intent!r}; give it others in model.label_words"
            )
        found.append(pieces)
    return found
