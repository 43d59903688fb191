"""How a text becomes the tokens that a model has learned."""

from __future__ import annotations

import re
from typing import Callable, Dict, List

Cut = Callable[[str], List[str]]  # makes tokens of a text

# "what's", "18:30" and "$24" are words; a "?" behind one is a token of its own.
WORD_OR_PUNCTUATION = re.compile(r"[$#]?\w+(?:['.,:/&-]\w+)*|[^\w\s]")
TOKENIZERS: Dict[str, Cut] = {"blanks": str.split, "punctuation": WORD_OR_PUNCTUATION.findall}
# Expressions that find the same tokens, for programs outside this package.
PATTERNS = {"blanks": r"\S+", "punctuation": WORD_OR_PUNCTUATION.pattern}
