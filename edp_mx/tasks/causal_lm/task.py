"""The task `causal_lm`: a language model that continues a text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Sequence, Tuple

from edp_mx.data.text import write_json_lines
from edp_mx.data.utterance import REPLY, SEPARATOR, Utterance
from edp_mx.errors import UserError
from edp_mx.metrics.generation import GenerationScores, group_references, score_generated
from edp_mx.tasks.causal_lm.scores import score_frequencies, score_pieces
from edp_mx.tasks.piece_guessing import PERPLEXITY, PieceGuessing
from edp_mx.tasks.task import Metric

if TYPE_CHECKING:
    from edp_mx.data.vocabulary import Vocabulary
    from edp_mx.models.encoder import Encoder, ModelConfig
    from edp_mx.tasks.causal_lm.model import CausalLM


@dataclass(frozen=True)
class Continued:
    """A text and what the model writes behind it, which begins with a blank or within a word."""

    tokens: Tuple[str, ...]
    text: str

    def to_dict(self) -> Dict[str, Any]:
        return {"tokens": list(self.tokens), "continuation": self.text.strip()}

    def describe(self) -> str:
        """Return it as `predict` prints it for people: the reply alone where there is a prompt."""
        if self.tokens[-1] in (REPLY, SEPARATOR):
            return self.text.strip()
        return f"{' '.join(self.tokens)}{self.text}"

    def line(self) -> str:
        return self.describe()


class CausalLanguageModelling(PieceGuessing):
    """Guess each piece of a text from those before it."""

    name = "causal_lm"
    metrics = (PERPLEXITY, Metric("piece_accuracy", "pieces guessed", "guessed"))
    add_up = staticmethod(score_pieces)
    by_frequency = staticmethod(score_frequencies)

    def build(self, encoder: Encoder, vocabulary: Vocabulary, config: ModelConfig) -> CausalLM:
        from edp_mx.models.trained_parts import PARTS
        from edp_mx.tasks.causal_lm.model import CausalLM

        scorer = encoder.next_piece_scorer()
        if scorer is None or vocabulary.tokenizer is None:
            raise UserError(
                f"task: causal_lm needs a model that reads pieces from left to right; "
                f"model.family is {config.family}: set it to gpt2"
            )
        if all(each.grad_req == "null" for each in scorer.collect_params().values()):
            parts = [name for name in PARTS if name != "heads"]
            cause = (
                f"a language model has no heads; set it to {', '.join(parts[:-1])} or {parts[-1]}"
                if config.trained == "heads"
                else "model.frozen_layers freezes all its layers; lower that"
            )
            raise UserError(
                f"model.trained: {config.trained} leaves nothing to train, since {cause}"
            )
        return CausalLM(scorer, vocabulary.tokenizer)

    def score_written(
        self,
        references: Sequence[Utterance],
        ask: Callable[[Sequence[Sequence[str]]], Sequence[Any]],
        *,
        most: int,
        out: Path,
    ) -> GenerationScores:
        """See `Task`: the replies to distinct prompts, spread evenly over all of them.

        Each is a JSON line of `out`, with the prompt, the text and the references.

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


CAUSAL_LM = CausalLanguageModelling()
