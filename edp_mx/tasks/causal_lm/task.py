"""The task `causal_lm`: a language model that continues a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Tuple

from edp_mx.data.utterance import REPLY, SEPARATOR
from edp_mx.errors import UserError
from edp_mx.tasks.causal_lm.scores import score_frequencies, score_pieces
from edp_mx.tasks.causal_lm.written import write_replies
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
    score_written = staticmethod(write_replies)

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
            raise UserError(
                f"model.trained: {config.trained} leaves nothing to train, since a language model "
                f"has no heads; set it to {', '.join(parts[:-1])} or {parts[-1]}"
            )
        return CausalLM(scorer, vocabulary.tokenizer)


CAUSAL_LM = CausalLanguageModelling()
