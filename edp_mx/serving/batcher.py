"""Predictions for many clients by one thread, in batches: MXNet's models are not safe to share."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional, Sequence

Tokens = Sequence[str]
Predict = Callable[..., List[Any]]  # of lists of tokens, and, of a single one, `heard`


class Busy(Exception):
    """More is waiting than can be answered in time."""


class _GivenUp(Exception):
    """Nobody waits for the answer any more."""


@dataclass(eq=False)
class _Question:
    utterances: List[Tokens]
    told: Optional[Callable[[Any], None]] = None
    answer: Future = field(default_factory=Future)
    last: float = field(default_factory=time.monotonic)  # when it was asked, or its last part told
    is_given_up: bool = False

    @property
    def size(self) -> int:
        return sum(map(len, self.utterances))

    def heard(self, answer: Any) -> None:
        """Tell a part of the answer; end the model's work where nobody waits for it."""
        if self.is_given_up:
            raise _GivenUp
        if self.told is not None:
            self.told(answer)
            self.last = time.monotonic()


class Batcher:
    """A thread that owns a model, and predicts the utterances that arrived since its last batch.

    Args:
        load: called in that thread; returns the function that predicts lists of tokens, in order.
        most_at_once: tokens of a batch; a single question may have more.
        most_waiting: questions that may wait; further ones are refused.
    """

    def __init__(
        self, load: Callable[[], Predict], *, most_at_once: int = 20_000, most_waiting: int = 1024
    ) -> None:
        self._questions: queue.Queue = queue.Queue(most_waiting)
        self._most_at_once = most_at_once
        self._loaded: Future = Future()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, args=(load,), name="model", daemon=True)
        self._thread.start()

    def wait_until_loaded(self) -> None:
        """Return once the model is there; raise the error that prevented it."""
        self._loaded.result()

    def close(self) -> None:
        """End the thread after its batch: MXNet hangs if a process ends while it predicts."""
        self._is_closed = True
        with suppress(queue.Full):
            self._questions.put_nowait(_Question([]))  # wakes it
        self._thread.join()

    @property
    def waiting(self) -> int:
        """How many questions wait."""
        return self._questions.qsize()

    async def ask(
        self,
        utterances: List[Tokens],
        *,
        seconds: float,
        heard: Optional[Callable[[Any], None]] = None,
    ) -> List[Any]:
        """Return the predictions for some utterances.

        Args:
            seconds: how long to wait for the answer, or for the next part of one that is heard.
            heard: is given a single one while it is written, in the model's thread.

        Raises:
            Busy: too many questions wait, or no answer came in time.
        """
        question = _Question(utterances, heard)
        try:
            self._questions.put_nowait(question)
        except queue.Full as error:
            raise Busy from error
        answer = asyncio.wrap_future(question.answer)
        try:
            while (left := question.last + seconds - time.monotonic()) > 0 and not answer.done():
                await asyncio.wait([answer], timeout=left)
            if not answer.done():
                raise Busy
            return answer.result()
        finally:
            question.is_given_up = True
            answer.cancel()  # where it still waits in the queue

    def _work(self, load: Callable[[], Predict]) -> None:
        try:
            predict = load()
        except BaseException as error:
            self._loaded.set_exception(error)
            return
        self._loaded.set_result(None)
        while not self._is_closed:
            self._answer(self._next(), predict)

    def _next(self) -> List[_Question]:
        """Wait for a question; return it and all that fit into a batch with it."""
        batch = [self._questions.get()]
        count = batch[0].size
        while count < self._most_at_once and not self._questions.empty():
            batch.append(self._questions.get())
            count += batch[-1].size
        return [question for question in batch if question.answer.set_running_or_notify_cancel()]

    def _answer(self, batch: List[_Question], predict: Predict) -> None:
        """Answer some questions together; each alone where that fails, or where one is heard."""
        if len(batch) > 1 and any(question.told for question in batch):
            for question in batch:
                self._answer([question], predict)
            return
        asked = [each for question in batch for each in question.utterances]
        heard = {"heard": batch[0].heard} if len(asked) == 1 else {}
        try:
            found = list(predict(asked, **heard))
            if len(found) != len(asked):
                raise RuntimeError(f"the model answered {len(found)} of {len(asked)} utterances")
        except Exception as error:
            if len(batch) == 1:
                batch[0].answer.set_exception(error)
                return
            for question in batch:
                self._answer([question], predict)
            return
        answers = iter(found)
        for question in batch:
            question.answer.set_result([next(answers) for _ in question.utterances])
