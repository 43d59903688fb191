"""A finished run, loaded to be used."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np

from edp_mx.config import ExperimentConfig, load_config
from edp_mx.data.corpus import load_corpus
from edp_mx.data.encoding import EncodedCorpus, evaluation_batches
from edp_mx.data.fingerprint import fingerprint, is_same
from edp_mx.data.splits import Split
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.weights import load_weights
from edp_mx.errors import UserError
from edp_mx.models.registry import FAMILIES
from edp_mx.runs.build import encode_part, model_for
from edp_mx.runs.file_types import Environment
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.config_files import read_settings
from edp_mx.runtime.distributed import Workers, device
from edp_mx.runtime.progress import Progress, no_progress
from edp_mx.tasks.model import Answer, Outputs, TaskModel
from edp_mx.tasks.registry import TASKS
from edp_mx.tasks.task import LabellingTask, Scores, Task
from edp_mx.training.evaluate import score_corpus

logger = logging.getLogger(__name__)
GENERATED, OF_OTHERS = "generated.jsonl", "generated_of_others.jsonl"
ALONE = Workers(rank=0, size=1, local_rank=0)


@dataclass(frozen=True)
class TrainedRun:
    """A model with the vocabulary and the settings that it was trained with."""

    run: RunDirectory
    config: ExperimentConfig
    vocabulary: Vocabulary
    model: TaskModel

    @property
    def task(self) -> Task:
        return TASKS[self.config.task]

    def part(self, name: str) -> List[Utterance]:
        return read_part(self.run, self.config, name)

    def score(self, utterances: Sequence[Utterance], progress: Progress = no_progress) -> Scores:
        """Return the scores of the task on annotated utterances."""
        return score_corpus(
            self.task,
            self.model,
            self._encode(utterances),
            utterances,
            self.vocabulary,
            batch_size=self.config.training.evaluation_batch_size,
            workers=ALONE,
            progress=progress,
        )

    def labelled(
        self, utterances: Sequence[Utterance], progress: Progress, *, option: str
    ) -> Tuple[Scores, List[Utterance], np.ndarray]:
        """Return `score`, the utterances as labelled, and the scores of all labels, (N, I).

        A task without labels is refused: it has no such `option`.
        """
        task, size = self.task, self.config.training.evaluation_batch_size
        if not isinstance(task, LabellingTask):
            raise UserError(f"task: {task.name} has no labels; leave out {option}")
        encoded, count = self._encode(utterances), -(-len(utterances) // size)
        batches = progress(evaluation_batches(encoded, size), "scoring", count)
        label_scores = np.empty((len(utterances), len(self.vocabulary.intents)), np.float32)

        def outputs() -> Iterator[Outputs]:
            for each in self.model.outputs(batches):
                label_scores[each.batch.indices] = each.label_scores
                yield each

        found = task.labelled(utterances, self.model.guesses_of(outputs()), self.vocabulary)
        return task.evaluate(utterances, found), found, label_scores

    def set_answering(self, overrides: Sequence[str]) -> None:
        """Have the model answer by settings of its own, such as `beams=4`."""
        if self.model.answering is None:
            raise UserError(
                f"--set: the answers of task: {self.config.task} have no settings; leave it out"
            )
        self.model.answering = read_settings([], overrides, kind=type(self.model.answering))

    def score_written(
        self, utterances: Sequence[Utterance], *, most: int, is_test: bool = False
    ) -> Scores:
        """Have the model write, keep that in the run, and score it; see `Task`.

        Args:
            is_test: these are the run's own test part, so that its record has the scores, and
                `generated.jsonl` the texts.
        """
        out = self.run.path / (GENERATED if is_test else OF_OTHERS)
        scores = self.task.score_written(utterances, self.predict, most=most, out=out)
        if is_test:
            self.keep_answered(scores.to_dict())
        return scores

    def keep_answered(self, scores: Mapping[str, Any]) -> None:
        """Keep the scores of its answers to its test part, with their settings that are numbers."""
        own = self.model.answering
        assert own is not None  # a task without settings has refused to answer
        usual = vars(type(own)())
        changed = {k: v for k, v in vars(own).items() if v != usual[k]}
        numbers = {k: v for k, v in changed.items() if not isinstance(v, str)}
        self.run.write("generated", {**scores, **numbers})

    @property
    def reads_second(self) -> bool:
        """Whether it was trained on two texts together."""
        return self.config.data.reads_second

    def tokens_of(self, text: str) -> List[str]:
        """Cut a text into tokens as the corpus was, by `data.tokenizer`."""
        return self.config.data.tokens_of(text)

    def predict(
        self,
        token_lists: Sequence[Sequence[str]],
        *,
        most_at_once: Optional[int] = None,
        heard: Optional[Callable[[Answer], None]] = None,
    ) -> List[Answer]:
        """Return the model's answer to each list of tokens.

        Args:
            most_at_once: utterances, by default `training.evaluation_batch_size`. MXNet keeps the
                memory of the largest batch.
            heard: see `TaskModel`.
        """
        blank = [Utterance(tuple(tokens), ("O",) * len(tokens), "") for tokens in token_lists]
        size = most_at_once or self.config.training.evaluation_batch_size
        encoded = self._encode(blank, most_continued=self.model.most_continued)
        batches = evaluation_batches(encoded, size)
        self.model.heard = heard
        found = dict(self.model.answers(batches, blank, self.vocabulary))
        return [found[index] for index in range(len(blank))]

    def _encode(
        self, utterances: Sequence[Utterance], *, most_continued: Optional[int] = None
    ) -> EncodedCorpus:
        given = self.config, utterances, self.vocabulary, "given"
        return encode_part(*given, most_continued=most_continued)


def read_part(run: RunDirectory, config: ExperimentConfig, name: str) -> List[Utterance]:
    """Read a part of a run again, e.g. "test"; refuse a corpus that has changed."""
    corpus = load_corpus(config.data)
    split = Split.from_json(run.read("split"), corpus.utterances)
    part = [corpus.utterances[i] for i in getattr(split, name)]
    recorded = run.load(Environment).fingerprints.get(name)
    if recorded is None:
        raise UserError(f"{run.path}/environment.json has no fingerprint of the {name} part")
    same = is_same(recorded, fingerprint(part))
    if same is None:
        logger.warning(
            "the fingerprint of the %s part was keyed on another machine, so that this one "
            "cannot tell whether the corpus is still the same",
            name,
        )
    if same is False:
        raise UserError(
            f"the {name} part of {config.data.corpus} has changed since the run {run.path}: its "
            "scores would be those of other utterances"
        )
    return part


def load_run(path: Path) -> TrainedRun:
    """Load a run that has trained to its end."""
    run = RunDirectory.trained(path)
    config = load_config(run.config)
    vocabulary = Vocabulary.from_json(run.read("vocabulary"))
    if (vocabulary.tokenizer is not None) != FAMILIES[config.model.family].has_pieces:
        raise UserError(f"{run.path}/vocabulary.json is that of another run; restore its own")
    model = model_for(config, vocabulary, device(ALONE))
    load_weights(model, run.weights)
    mx.nd.waitall()
    return TrainedRun(run, config, vocabulary, model)
