"""Prompts that name what a text says, made from public utterances: a start for table-to-text."""

from __future__ import annotations

import random
import re
from itertools import groupby
from operator import itemgetter
from typing import Iterable, Iterator, List, Sequence, Tuple

from edp_mx.data.utterance import REPLY, Utterance
from edp_mx.metrics.quoted_values import quoted
from edp_mx.metrics.spans import Span, spans_of

MOST_SPANS, MOST_WORDS = 3, 3  # drawn from a text without slots, and words in each
CHANGED = 0.5  # share of the values that nobody can guess
WITH_DIGITS = 0.25  # share of their words, as times, prices and telephone numbers have some
_PUNCTUATION = ",.;:?!"


def prompts_for(texts: Iterable[Utterance], *, seed: int) -> Iterator[Tuple[str, str]]:
    """Yield a prompt and the text that it asks for, as a table-to-text model is trained on them.

    The values of the prompt are the slots of an utterance, in an order that is drawn. Where it has
    none, they are one to three parts of it that are drawn, of one to three words each. Half of the
    values are replaced, in the prompt and in the text, by words that are drawn from all texts, with
    other digits: who cannot guess a value has to copy it. Punctuation behind a value belongs to the
    text alone. Texts that hold `<|reply|>` or fewer than two tokens are left out.

    Example:
        >>> city = ("O", "O", "B-city", "I-city")
        >>> rain = Utterance(("rain", "in", "New", "York"), city, "weather")
        >>> list(prompts_for([rain], seed=2))
        [('weather: city = "New York"', 'rain in New York')]
    """
    draws = random.Random(seed)
    kept = [one for one in texts if is_asked_for(one)]
    words = sorted({word.strip(_PUNCTUATION) for one in kept for word in one.tokens} - {""})
    numbers = [word for word in words if re.search(r"\d", word)] or words
    for text in kept:
        tokens = text.tokens
        parts = spans_of(text.slots) or _drawn_parts(len(tokens), draws)
        values, reply, end = [], [], 0
        for name, start, stop in parts:
            said = " ".join(tokens[start:stop])
            value = said.rstrip(_PUNCTUATION) or said
            behind = said[len(value) :]
            if words and draws.random() < CHANGED:
                value = _drawn_words(words, numbers, draws)
            values.append((name, value))
            reply += [*tokens[end:start], value + behind]
            end = stop
        draws.shuffle(values)
        yield f"{text.intent or 'text'}: {_listed(values)}", " ".join([*reply, *tokens[end:]])


def is_asked_for(text: Utterance) -> bool:
    """Return whether a prompt can be made for a text."""
    return len(text.tokens) > 1 and REPLY not in text.tokens


def _listed(values: List[Tuple[str, str]]) -> str:
    """Return `name = "value", "value"; name = "value"`, which `quoted_values` reads."""
    return "; ".join(
        f"{name} = {', '.join(quoted(value) for _, value in of_name)}"
        for name, of_name in groupby(values, itemgetter(0))
    )


def _drawn_parts(num_tokens: int, draws: random.Random) -> List[Span]:
    """Return parts of a text that do not overlap."""
    parts: List[Span] = []
    start = 0
    for _ in range(draws.randint(1, MOST_SPANS)):
        start += draws.randrange(max(1, num_tokens // MOST_SPANS))
        end = min(start + draws.randint(1, MOST_WORDS), num_tokens)
        if start < num_tokens:
            parts.append(Span("words", start, end))
        start = end
    return parts or [Span("words", num_tokens - 1, num_tokens)]


def _drawn_words(words: Sequence[str], numbers: Sequence[str], draws: random.Random) -> str:
    """Return one to three words, the rare as likely as the common; half of such values are names.

    Each digit is drawn anew, and a name has capitals.
    """
    drawn = [
        draws.choice(numbers if draws.random() < WITH_DIGITS else words)
        for _ in range(draws.randint(1, MOST_WORDS))
    ]
    drawn = [re.sub(r"\d", lambda _: str(draws.randrange(10)), word) for word in drawn]
    return " ".join(map(str.capitalize, drawn) if draws.random() < 0.5 else drawn)
