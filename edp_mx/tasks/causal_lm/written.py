"""The texts that a model writes for the prompts of a corpus, and how they are scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

from edp_mx.data.text import write_json_lines
from edp_mx.data.utterance import REPLY, Utterance
from edp_mx.errors import UserError
from edp_mx.metrics.generation import GenerationScores, group_references, score_generated

Ask = Callable[[Sequence[Sequence[str]]], Sequence[Any]]  # lists of tokens → an answer each


def write_replies(
    references: Sequence[Utterance], ask: Ask, *, most: int, out: Path
) -> GenerationScores:
    """Have a model reply to the distinct prompts of a corpus, write the replies, and score them.

    Args:
        ask: the model, such as `TrainedRun.predict`.
        most: how many prompts are taken, spread evenly over all of them; 0 for all.
        out: a JSON line each, with the prompt, the text and the references.

    Raises:
        UserError: an utterance has no `<|reply|>`, or a library is missing.
    """
    sides = [split_reply(one.tokens) for one in references]
    prompts, replies = ([" ".join(side) for side in both] for both in zip(*sides))
    grouped = _spread(group_references(prompts, replies), most)
    answers = ask([[*prompt.split(" "), REPLY] for prompt in grouped])
    texts = [" ".join(answer.text.split()) for answer in answers]
    write_json_lines(
        out,
        (
            {"prompt": prompt, "text": text, "references": wanted}
            for (prompt, wanted), text in zip(grouped.items(), texts)
        ),
    )
    return score_generated(grouped, texts)


def split_reply(tokens: Sequence[str]) -> Tuple[Sequence[str], Sequence[str]]:
    """Return the tokens before and after the first `<|reply|>`; refuse an utterance without."""
    if REPLY not in tokens:
        start = " ".join(tokens[:8])
        raise UserError(
            f'the utterance "{start}" has no token {REPLY} between a prompt and a reply; name the '
            "columns of both by data.columns.prompt and data.columns.reply"
        )
    at = list(tokens).index(REPLY)
    return tokens[:at], tokens[at + 1 :]


def _spread(references: Dict[str, List[str]], most: int) -> Dict[str, List[str]]:
    """Return so many prompts, evenly spaced."""
    items: List[Tuple[str, List[str]]] = list(references.items())
    if not 0 < most < len(items):
        return references
    return dict(items[i * len(items) // most] for i in range(most))
