"""The task `masked_lm`: pre-training of a BERT on plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Sequence

from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.tasks.masked_lm.scores import MaskedScores, score_frequencies, score_places
from edp_mx.tasks.piece_guessing import PERPLEXITY, PieceGuessing
from edp_mx.tasks.task import Metric

if TYPE_CHECKING:
    from edp_mx.data.vocabulary import Vocabulary
    from edp_mx.models.encoder import Encoder, ModelConfig
    from edp_mx.tasks.masked_lm.model import MaskedLM


class MaskedLanguageModelling(PieceGuessing):
    """Guess masked pieces of plain text."""

    name = "masked_lm"
    metrics = (
        PERPLEXITY,
        Metric("masked_accuracy", "masked pieces guessed", "guessed"),
    )

    def build(self, encoder: Encoder, vocabulary: Vocabulary, config: ModelConfig) -> MaskedLM:
        """See `Task`."""
        from edp_mx.tasks.masked_lm.model import MaskedLM

        head = encoder.masked_piece_head() if config.intents == "pooled" else None
        if head is None or vocabulary.tokenizer is None:
            raise UserError(
                "task: masked_lm needs a model that reads word pieces from [CLS] to [SEP], with "
                "model.family: bert and model.intents: pooled"
            )
        return MaskedLM(encoder, head, vocabulary.tokenizer)

    def score(
        self,
        references: Sequence[Utterance],  # noqa: ARG002
        guesses: Iterable[Any],
        vocabulary: Vocabulary,  # noqa: ARG002
    ) -> MaskedScores:
        """See `Task`."""
        return score_places(guesses)

    def constant_answer(
        self,
        references: Sequence[Utterance],
        train: Callable[[], Sequence[Utterance]],
        vocabulary: Vocabulary,
    ) -> Dict[str, Any]:
        """See `Task`: each piece by how often it occurs in the training part."""
        assert vocabulary.tokenizer is not None
        return self.shares(score_frequencies(references, train(), vocabulary.tokenizer).to_dict())


MASKED_LM = MaskedLanguageModelling()
