"""A finished run, loaded to be used."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import mxnet as mx

from edp_mx.config import ExperimentConfig, load_config
from edp_mx.data.corpus import load_corpus
from edp_mx.data.encoding import EncodedCorpus, evaluation_batches
from edp_mx.data.fingerprint import fingerprint, is_same
from edp_mx.data.splits import Split
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.weights import load_weights
from edp_mx.errors import UserError
from edp_mx.metrics.evaluation import Scores, evaluate
from edp_mx.metrics.spans import balanced, bracketed, spans_of
from edp_mx.models.intent_slot import IntentSlotModel, Predictions
from edp_mx.runs.build import encode_part, model_for
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.distributed import Workers, device
from edp_mx.runtime.progress import Progress, no_progress
from edp_mx.training.evaluate import fit_length, predict_utterances

logger = logging.getLogger(__name__)
ALONE = Workers(rank=0, size=1, local_rank=0, local_size=1)


@dataclass(frozen=True)
class Understanding:
    """An utterance as the model understands it; a slot is as sure as the least sure of its tags."""

    utterance: Utterance
    intent_confidence: float
    slot_confidences: Tuple[float, ...]

    def spans(self) -> List[Dict[str, Any]]:
        """Return the slots with their text; `end` is the first token after the slot."""
        tokens = self.utterance.tokens
        return [
            {
                "slot": span.type,
                "text": " ".join(tokens[span.start : span.end]),
                "start": span.start,
                "end": span.end,
                "confidence": confidence,
            }
            for span, confidence in zip(spans_of(self.utterance.slots), self.slot_confidences)
        ]

    def to_dict(self) -> Dict[str, Any]:
        """Return it as `predict` prints it for programs."""
        return {
            "tokens": list(self.utterance.tokens),
            "slots": list(self.utterance.slots),
            "intent": self.utterance.intent,
            "intent_confidence": self.intent_confidence,
            "spans": self.spans(),
        }

    def describe(self) -> str:
        """Return it as `predict` prints it for people, a line for each slot."""
        lines = [
            " ".join(self.utterance.tokens),
            f"  intent  {self.utterance.intent}  ({self.intent_confidence:.1%})",
        ]
        lines += [
            f"  slot    {span['slot']} = {span['text']!r}  ({span['confidence']:.1%})"
            for span in self.spans()
        ]
        return "\n".join(lines)

    def line(self) -> str:
        """Return it on one line: the intent, and the tokens with the slots in brackets."""
        utterance = self.utterance
        return f"{utterance.intent}: {bracketed(utterance.tokens, utterance.slots)}"


@dataclass(frozen=True)
class TrainedRun:
    """A model with the vocabulary and the settings that it was trained with."""

    run: RunDirectory
    config: ExperimentConfig
    vocabulary: Vocabulary
    model: IntentSlotModel

    def part(self, name: str) -> List[Utterance]:
        """Read a part of the run again, e.g. "test"; refuse a corpus that has changed."""
        corpus = load_corpus(self.config.data)
        split = Split.from_json(self.run.read("split"), corpus.utterances)
        part = [corpus.utterances[i] for i in getattr(split, name)]
        same = is_same(self.run.read("environment")["fingerprints"][name], fingerprint(part))
        if same is None:
            logger.warning(
                "the fingerprint of the %s part was keyed on another machine, so that this one "
                "cannot tell whether the corpus is still the same",
                name,
            )
        if same is False:
            raise UserError(
                f"the {name} part of {self.config.data.corpus} has changed since the run "
                f"{self.run.path}: its scores would be those of other utterances"
            )
        return part

    def score(self, utterances: Sequence[Utterance], progress: Progress = no_progress) -> Scores:
        """Return SER, intent accuracy and slot F1 on annotated utterances."""
        hypotheses = predict_utterances(
            self.model,
            self._encode(utterances),
            utterances,
            self.vocabulary,
            batch_size=self.config.training.evaluation_batch_size,
            workers=ALONE,
            what="scoring",
            progress=progress,
        )
        return evaluate(utterances, hypotheses)

    def tokens_of(self, text: str) -> List[str]:
        """Cut a text into tokens as the corpus was, by `data.tokenizer`."""
        return self.config.data.tokens_of(text)

    def predict(
        self, token_lists: Sequence[Sequence[str]], *, most_at_once: Optional[int] = None
    ) -> List[Understanding]:
        """Predict the intent and slots of each list of tokens.

        Args:
            most_at_once: utterances, by default `training.evaluation_batch_size`. MXNet keeps the
                memory of the largest batch.
        """
        blank = [Utterance(tuple(tokens), ("O",) * len(tokens), "") for tokens in token_lists]
        size = most_at_once or self.config.training.evaluation_batch_size
        batches = evaluation_batches(self._encode(blank), size)
        found: Dict[int, Understanding] = {}
        for batch, predictions in self.model.predict_each(batches):
            for row, index in enumerate(batch.indices.tolist()):
                found[index] = self._understanding(blank[index], predictions, row)
        return [found[index] for index in range(len(blank))]

    def _understanding(
        self, utterance: Utterance, predictions: Predictions, row: int
    ) -> Understanding:
        intent = int(predictions.intents[row])
        tags = balanced([self.vocabulary.slots[tag] for tag in predictions.slots[row]])
        slots = fit_length(tags, len(utterance.tokens))
        confidences = predictions.slot_confidences[row]
        return Understanding(
            Utterance(utterance.tokens, slots, self.vocabulary.intents[intent]),
            float(predictions.intent_probabilities[row, intent]),
            tuple(float(confidences[span.start : span.end].min()) for span in spans_of(slots)),
        )

    def _encode(self, utterances: Sequence[Utterance]) -> EncodedCorpus:
        return encode_part(self.config, utterances, self.vocabulary, "given")


def load_run(path: Path, context: Any = None) -> TrainedRun:
    """Load a run that has trained to its end."""
    run = RunDirectory.trained(path)
    config = load_config(run.config)
    vocabulary = Vocabulary.from_json(run.read("vocabulary"))
    model = model_for(config, vocabulary, context or device(ALONE))
    load_weights(model, run.weights)
    mx.nd.waitall()
    return TrainedRun(run, config, vocabulary, model)
