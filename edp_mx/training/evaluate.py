"""Scores of a model on a corpus, by all workers together."""

from __future__ import annotations

from typing import Iterable, Iterator, Sequence

from edp_mx.data.batching import Batch
from edp_mx.data.encoding import EncodedCorpus, evaluation_batches
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.progress import Heartbeat, Progress, no_heartbeat, no_progress
from edp_mx.tasks.model import TaskModel
from edp_mx.tasks.task import Scores, Task


def score_corpus(
    task: Task,
    model: TaskModel,
    corpus: EncodedCorpus,
    utterances: Sequence[Utterance],
    vocabulary: Vocabulary,
    *,
    batch_size: int,
    workers: Workers,
    what: str = "scoring",
    progress: Progress = no_progress,
    heartbeat: Heartbeat = no_heartbeat,
) -> Scores:
    """Return the scores of a task, the same on every worker.

    Each worker guesses its share of the batches; the guesses are then gathered.

    Args:
        corpus: `utterances`, encoded.
        what: names the work to `progress`, put around the batches, and to `heartbeat`.
    """
    mine = evaluation_batches(corpus, batch_size, rank=workers.rank, num_workers=workers.size)
    batches = progress(mine, what, -(-len(corpus) // (batch_size * workers.size)))
    share = list(model.guesses(_with_heartbeat(batches, what, heartbeat)))
    guesses = (guess for part in workers.gather(share) for guess in part)
    return task.score(utterances, guesses, vocabulary)


def _with_heartbeat(batches: Iterable[Batch], what: str, heartbeat: Heartbeat) -> Iterator[Batch]:
    for batch in batches:
        heartbeat(what)
        yield batch
