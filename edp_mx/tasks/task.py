"""What a task offers, so that `task` can name it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Tuple,
)

from edp_mx.data.utterance import Utterance

if TYPE_CHECKING:
    from edp_mx.data.vocabulary import Vocabulary
    from edp_mx.models.encoder import Encoder, ModelConfig
    from edp_mx.tasks.model import TaskModel


class Shortfall(NamedTuple):
    """How a model is no better than a constant answer, and what that means, in words."""

    found: str
    means: str


@dataclass(frozen=True)
class Metric:
    """A score, as a share of 1 in files of results and records, in percent where people read it.

    Attributes:
        key: in `results.json` and records; in `metrics.jsonl` of its value on validation.
        name: what people call it.
        short: the same for a narrow column.
        is_error: whether less of it is better.
    """

    key: str
    name: str
    short: str
    is_error: bool = False

    def cost(self, value: float) -> float:
        """Return a value of this metric as a number of which less is better."""
        return value if self.is_error else 1 - value

    def in_percent(self, scores: Mapping[str, Any]) -> str:
        """Return its value among scores, such as "5.83"."""
        return f"{100 * scores[self.key]:.2f}"

    def no_better_than(
        self, answer: str, scores: Mapping[str, Any], baseline: Mapping[str, Any]
    ) -> Optional[Shortfall]:
        """Return how an accuracy is not above that of a constant answer; None if it is, or cannot.

        Args:
            answer: the constant one.
        """
        right, constant = (100 * each[self.key] for each in (scores, baseline))
        if not right <= constant < 100:
            return None
        than = "below" if right < constant else "the same as"
        name = self.name[0].upper() + self.name[1:]
        found = f'{name} {right:.2f} % is {than} always answering "{answer}" ({constant:.2f} %)'
        return Shortfall(found, "nothing was learned")


class Scores(Protocol):
    """The scores of a corpus: an attribute for each metric of the task, and perhaps more."""

    def to_dict(self) -> Dict[str, Any]:
        """Return all of them, for JSON."""

    def describe(self) -> str:
        """Return lines for the console."""


class Task(ABC):
    """A task: an entry of `registry.TASKS`. It has no state, and loads no MXNet until it builds.

    Attributes:
        name: the value of `task`.
        metrics: of the corpus; the first chooses among epochs, runs and settings.
        has_slots: whether each token has a tag; else a corpus is read without.
        label: what a label of an utterance is called, with its article.
    """

    name: str
    metrics: Tuple[Metric, ...]
    has_slots: bool
    label: str

    @property
    def metric(self) -> Metric:
        """The metric that chooses."""
        return self.metrics[0]

    @abstractmethod
    def build(self, encoder: Encoder, vocabulary: Vocabulary, config: ModelConfig) -> TaskModel:
        """Put the heads upon an encoder, all without values."""

    @abstractmethod
    def fill(self, hypotheses: List[Utterance], guess: Any, vocabulary: Vocabulary) -> None:
        """Put what `TaskModel.guesses` found for a batch in the place of its utterances."""

    @abstractmethod
    def evaluate(self, references: Sequence[Utterance], hypotheses: Sequence[Utterance]) -> Scores:
        """Return the scores of hypotheses, in the order of the references."""

    @abstractmethod
    def constant_answer(self, references: Sequence[Utterance]) -> Dict[str, Any]:
        """Return the scores of the best constant answer, by metric, and the answer itself."""

    @abstractmethod
    def constant_of(self, labels: Mapping[str, int], num_slots: int) -> Dict[str, Any]:
        """Return the same of a corpus with these labels, so many of each, and so many slots."""

    @abstractmethod
    def describe_constant(self, baseline: Mapping[str, Any]) -> str:
        """Name the constant answer, such as `always "call"`."""

    @abstractmethod
    def shortfall(
        self, scores: Mapping[str, Any], baseline: Mapping[str, Any]
    ) -> Optional[Shortfall]:
        """Return how scores are no better than those of the constant answer; None if they are."""

    def cost(self, scores: Mapping[str, Any]) -> float:
        """Return a number of which less is better; ∞ for empty scores."""
        return self.metric.cost(scores[self.metric.key]) if scores else math.inf

    def shares(self, scores: Mapping[str, Any]) -> Dict[str, float]:
        """Return the metrics alone, as a record keeps them."""
        return {each.key: round(scores[each.key], 6) for each in self.metrics}

    def percentages(self, scores: Mapping[str, Any]) -> Dict[str, float]:
        """Return the metrics in percent, as `metrics.jsonl` has them."""
        return {each.key: 100 * scores[each.key] for each in self.metrics}

    def sentence(self, scores: Mapping[str, Any]) -> str:
        """Return the metrics as text, such as "SER 5.83 %, intent accuracy 95.10 %"."""
        return ", ".join(f"{each.name} {each.in_percent(scores)} %" for each in self.metrics)
