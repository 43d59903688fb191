"""The contract of a task."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Tuple,
)

from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.metrics.spans import check_pairs, spans_of

if TYPE_CHECKING:
    from edp_mx.data.vocabulary import Vocabulary
    from edp_mx.models.encoder import Encoder, ModelConfig
    from edp_mx.tasks.model import TaskModel


class Shortfall(NamedTuple):
    """How a model is no better than a constant answer, and the meaning of that, in words."""

    found: str
    means: str


@dataclass(frozen=True)
class Metric:
    """A score, as it is in files of results and records; a share is in percent for people.

    Attributes:
        key: in `results.json` and records; in `metrics.jsonl` of its value on validation.
        name: what people call it.
        short: the same for a narrow column.
        is_error: whether less of it is better.
        is_share: whether it is a share of 1, and so in percent in `metrics.jsonl` too.
    """

    key: str
    name: str
    short: str
    is_error: bool = False
    is_share: bool = True

    @property
    def factor(self) -> float:
        """By how much a value is multiplied where people read it."""
        return 100.0 if self.is_share else 1.0

    @property
    def unit(self) -> str:
        """The unit of a value where people read it, after a blank."""
        return " %" if self.is_share else ""

    def cost(self, value: float) -> float:
        """Return a value of this metric as a number of which less is better."""
        return value if self.is_error else 1 - value

    def number(self, value: float) -> str:
        """Return a value for people without its unit, such as "5.83"."""
        return f"{self.factor * value:.2f}"

    def said(self, value: float) -> str:
        """Return a value for people with its unit, such as "5.83 %"."""
        return f"{self.number(value)}{self.unit}"

    def of(self, scores: Mapping[str, Any]) -> str:
        """Return its own among scores as `number` does."""
        return self.number(scores[self.key])

    @property
    def narrow_heading(self) -> str:
        return f"{self.short}{self.unit}"

    @property
    def heading(self) -> str:
        return f"{self.name}{self.unit}"

    @property
    def title(self) -> str:
        return f"{self.name}, %" if self.is_share else self.name

    def no_better_than(
        self, answer: str, scores: Mapping[str, Any], baseline: Mapping[str, Any]
    ) -> Optional[Shortfall]:
        """Return how an accuracy is not above a constant answer's; None if it is, or cannot."""
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
        has_labels: whether an utterance has a label; else a corpus is read without.
        is_start: whether others start from the model, so that a run ends with it in Hugging Face's
            layout.
        label: what a label of an utterance is called, with its article.
        answer_keys: under which `constant_answer` has the answer itself.
    """

    name: str
    metrics: Tuple[Metric, ...]
    has_slots: bool
    has_labels = True
    is_start = False
    label: str
    answer_keys: Tuple[str, ...] = ()

    @property
    def metric(self) -> Metric:
        return self.metrics[0]

    @abstractmethod
    def build(self, encoder: Encoder, vocabulary: Vocabulary, config: ModelConfig) -> TaskModel:
        """Put the heads upon an encoder, all without values."""

    @abstractmethod
    def score(
        self, references: Sequence[Utterance], guesses: Iterable[Any], vocabulary: Vocabulary
    ) -> Scores:
        """Return the scores of the `TaskModel.guesses` for all batches of the references."""

    def score_written(
        self,
        references: Sequence[Utterance],  # noqa: ARG002
        ask: Callable[[Sequence[Sequence[str]]], Sequence[Any]],  # noqa: ARG002
        *,
        most: int,  # noqa: ARG002
        out: Path,  # noqa: ARG002
    ) -> Scores:
        """Return the scores of what the model writes for the prompts of the references.

        Args:
            ask: lists of tokens → the answers of the model.
            most: how many prompts are taken; 0 for all.
            out: gets what was written.

        Raises:
            UserError: the task writes no text, as most do.
        """
        raise UserError(f"task: {self.name} writes no text; leave out --generate")

    @abstractmethod
    def constant_answer(
        self, references: Sequence[Utterance], vocabulary: Vocabulary
    ) -> Dict[str, Any]:
        """Return the scores of the best constant answer, by metric, and the answer itself.

        The training part has no say in it: a run publishes them, and no ε would cover them.
        """

    @abstractmethod
    def describe_constant(self, baseline: Mapping[str, Any]) -> str:
        """Name the constant answer, such as `always "call"`."""

    @abstractmethod
    def shortfall(
        self, scores: Mapping[str, Any], baseline: Mapping[str, Any]
    ) -> Optional[Shortfall]:
        """Return how scores are no better than the constant answer's; None if they are."""

    def cost(self, scores: Mapping[str, Any]) -> float:
        """Return a number of which less is better; ∞ for empty scores."""
        return self.metric.cost(scores[self.metric.key]) if scores else math.inf

    def shares(self, scores: Mapping[str, Any]) -> Dict[str, float]:
        """Return the metrics alone, as a record keeps them."""
        return {each.key: round(scores[each.key], 6) for each in self.metrics}

    def lacking(self, scores: Mapping[str, Any], *texts: str) -> Optional[str]:
        """Return the key of a metric, or of one of some texts, that scores lack; None if none."""
        kinds: Dict[str, Any] = {each.key: (int, float) for each in self.metrics}
        kinds.update(dict.fromkeys(texts, str))
        return next(
            (key for key, kind in kinds.items() if not isinstance(scores.get(key), kind)), None
        )

    def for_people(self, scores: Mapping[str, Any]) -> Dict[str, float]:
        """Return the metrics with shares in percent, as `metrics.jsonl` has them."""
        return {each.key: each.factor * scores[each.key] for each in self.metrics}

    def sentence(self, scores: Mapping[str, Any]) -> str:
        """Return the metrics as text, such as "SER 5.83 %, intent accuracy 95.10 %"."""
        return ", ".join(f"{each.name} {each.said(scores[each.key])}" for each in self.metrics)


class LabellingTask(Task):
    """A task whose answer to an utterance is the utterance with labels."""

    @abstractmethod
    def fill(self, hypotheses: List[Utterance], guess: Any, vocabulary: Vocabulary) -> None:
        """Replace the utterances of a batch by what `TaskModel.guesses` found for them."""

    @abstractmethod
    def evaluate(self, references: Sequence[Utterance], hypotheses: Sequence[Utterance]) -> Scores:
        """Return the scores of hypotheses, in the order of the references."""

    @abstractmethod
    def constant_of(self, labels: Mapping[str, int], num_slots: int) -> Dict[str, Any]:
        """Return `constant_answer` of a corpus with so many of each label, and so many slots."""

    def constant_answer(self, references: Sequence[Utterance], *_: Any) -> Dict[str, Any]:
        """See `Task`: the most common label of the references, and no slots.

        Edge cases: of labels that are equally common, the first by name.
        """
        check_pairs(references, references)
        labels = Counter(each.intent for each in references)
        return self.constant_of(labels, sum(len(spans_of(each.slots)) for each in references))

    @abstractmethod
    def answer_of(self, found: Mapping[str, Any]) -> Any:
        """Return the `tasks.model.Answer` whose `to_dict` gave this."""

    def labelled(
        self, references: Sequence[Utterance], guesses: Iterable[Any], vocabulary: Vocabulary
    ) -> List[Utterance]:
        """Return the references as the model labels them, in order."""
        hypotheses = list(references)
        for guess in guesses:
            self.fill(hypotheses, guess, vocabulary)
        return hypotheses

    def score(
        self, references: Sequence[Utterance], guesses: Iterable[Any], vocabulary: Vocabulary
    ) -> Scores:
        return self.evaluate(references, self.labelled(references, guesses, vocabulary))
