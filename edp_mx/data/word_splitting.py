"""How BERT cuts text into words before it looks for pieces, and the pieces that are no words."""

from __future__ import annotations

import unicodedata
from typing import Callable, List

SPECIAL_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LONGEST_WORD = 200  # characters; a longer word is unknown as a whole
Splitter = Callable[[str], List[str]]


def word_splitter(lowercase: bool) -> Splitter:
    """Text → its words: every punctuation mark and every Chinese character is one of its own.

    Args:
        lowercase: lower case without accents, as the uncased models of BERT read text.

    Departs:
        GluonNLP's own splitter strips accents even from cased text ("Café" becomes "Cafe"), which
        no cased model of BERT has seen; the cased one is therefore ours.
    """
    if not lowercase:
        return _split_cased
    from gluonnlp.data import BERTBasicTokenizer

    return BERTBasicTokenizer(lower=True)


def _split_cased(text: str) -> List[str]:
    """Words in their own case, with their accents; what cannot be seen is dropped."""
    from gluonnlp.data import fast_bert_tokenizer as kinds

    spaced = []
    for character in text:
        category = unicodedata.category(character)
        if character in "\0\ufffd" or kinds.is_control(character, category):
            continue
        if kinds.is_whitespace(character, category):
            spaced.append(" ")
        elif kinds.is_chinese_char(character) or kinds.is_punctuation(character, category):
            spaced.append(f" {character} ")
        else:
            spaced.append(character)
    return "".join(spaced).split()
