"""Prompts that name what a text says, made from public utterances: a start for table-to-text."""

from __future__ import annotations

import random
from itertools import groupby
from operator import itemgetter
from typing import Iterable, Iterator, List, Sequence, Tuple

from edp_mx.data.lists import Text
from edp_mx.data.utterance import REPLY
from edp_mx.metrics.quoted_values import quoted
from edp_mx.metrics.spans import spans_of

MOST_SPANS, MOST_WORDS = 3, 3  # drawn from a text without slots, and words in each


def prompts_for(texts: Iterable[Text], *, seed: int) -> Iterator[Tuple[str, str]]:
    """Yield a prompt and the text that it asks for, as a table-to-text model is trained on them.

    The values of the prompt are the slots of an utterance, in an order that is drawn. Where it has
    none, they are one to three parts of it that are drawn, of one to three words each. Texts that
    hold `<|reply|>` or fewer than two tokens are left out.

    Example:
        >>> rain = (["rain", "in", "New", "York"], ["O", "O", "B-city", "I-city"], "weather")
        >>> list(prompts_for([rain], seed=1))
        [('weather: city = "New York"', 'rain in New York')]
    """
    draws = random.Random(seed)
    for tokens, tags, intent in texts:
        if len(tokens) < 2 or REPLY in tokens:
            continue
        values = [(one.type, " ".join(tokens[one.start : one.end])) for one in spans_of(tags)]
        values = values or [("words", part) for part in _drawn_parts(tokens, draws)]
        draws.shuffle(values)
        yield f"{intent or 'text'}: {_listed(values)}", " ".join(tokens)


def _listed(values: List[Tuple[str, str]]) -> str:
    """Return `name = "value", "value"; name = "value"`, which `quoted_values` reads."""
    return "; ".join(
        f"{name} = {', '.join(quoted(value) for _, value in of_name)}"
        for name, of_name in groupby(values, itemgetter(0))
    )


def _drawn_parts(tokens: Sequence[str], draws: random.Random) -> List[str]:
    """Return parts of a text that do not overlap."""
    parts, start = [], 0
    for _ in range(draws.randint(1, MOST_SPANS)):
        start += draws.randrange(max(1, len(tokens) // MOST_SPANS))
        end = start + draws.randint(1, MOST_WORDS)
        if start < len(tokens):
            parts.append(" ".join(tokens[start:end]))
        start = end
    return parts or [tokens[-1]]
