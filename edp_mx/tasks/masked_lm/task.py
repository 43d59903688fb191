"""The task `masked_lm`: pre-training of a BERT on plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Mapping, Optional, Sequence

from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.tasks.masked_lm.scores import MaskedScores, score_frequencies, score_places
from edp_mx.tasks.task import Metric, Shortfall, Task

if TYPE_CHECKING:
    from edp_mx.data.vocabulary import Vocabulary
    from edp_mx.models.encoder import Encoder, ModelConfig
    from edp_mx.tasks.masked_lm.model import MaskedLM

NOTHING_LEARNED = 0.8  # of the perplexity by frequency; above it nothing was learned


class MaskedLanguageModelling(Task):
    """Guess masked pieces of plain text."""

    name = "masked_lm"
    metrics = (
        Metric("perplexity", "perplexity", "perplexity", is_error=True, is_share=False),
        Metric("masked_accuracy", "masked pieces guessed", "guessed"),
    )
    has_slots = has_labels = False
    is_start = True
    label = "a label"

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

    def describe_constant(self, baseline: Mapping[str, Any]) -> str:  # noqa: ARG002
        """See `Task`."""
        return "each piece by its frequency"

    def shortfall(
        self, scores: Mapping[str, Any], baseline: Mapping[str, Any]
    ) -> Optional[Shortfall]:
        """See `Task`."""
        found, by_frequency = scores["perplexity"], baseline["perplexity"]
        if found < NOTHING_LEARNED * by_frequency:
            return None
        place = "above" if found > by_frequency else "not far below"
        return Shortfall(
            f"Perplexity {found:.1f} is {place} {by_frequency:.1f}, that of guessing each "
            "piece by its frequency",
            "the model has learned little but how often each piece occurs",
        )


MASKED_LM = MaskedLanguageModelling()
