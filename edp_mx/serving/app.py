"""A trained model over HTTP: /predict, /health, /metrics and a page."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from typing import Any, AsyncIterator, Callable, Dict, Iterable, List, Optional, Tuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from edp_mx.data.tokenization import Cut, with_second
from edp_mx.data.utterance import are_words
from edp_mx.errors import UserError
from edp_mx.runtime.json_text import NotJSON, parse_json
from edp_mx.serving.batcher import Batcher, Busy, Tokens
from edp_mx.serving.messages import Answer, Refused, Request, as_json, busy, json_bytes

logger = logging.getLogger(__name__)
MOST_UTTERANCES, MOST_TOKENS = 256, 1000  # of a request; of an utterance
MOST_TOGETHER = 20_000  # tokens of a request
LINES = "application/x-ndjson"  # the content type of JSON lines
ITSELF = ("localhost", "127.0.0.1", "::1")  # names of this machine for itself
_HOST = re.compile(r"(?:\[([^]\s]+)\]|([^:/@\s[\]]+))(?::\d{0,5})?")
# A page of another site cannot send this without asking first.
_KIND = re.compile(r'application/json\s*(;\s*charset="?utf-8"?\s*)?', re.I)


class App:
    """Answers requests. It logs no utterance, since what people say is private.

    Args:
        name: of the run, for /health.
        page: HTML to try the model with.
        seconds: after which a prediction is given up, or the next part of one that is streamed.
        hosts: the names that a request may ask for, beside this machine's own for itself.
        is_everywhere: whether the address that a client has reached is such a name too.
        digits: of confidences; None for all of them.
        cut: makes tokens of a text.
        reads_second: see `with_second`.
    """

    def __init__(
        self,
        batcher: Batcher,
        *,
        name: str,
        page: str,
        seconds: float,
        hosts: Iterable[str] = (),
        is_everywhere: bool = False,
        digits: Optional[int] = 2,
        cut: Cut = str.split,
        reads_second: Optional[bool] = None,
    ) -> None:
        self._batcher, self._page, self._seconds, self._cut = batcher, page, seconds, cut
        self._hosts = {host.strip("[]").lower() for host in (*ITSELF, *hosts)}
        self._is_everywhere, self._digits = is_everywhere, digits
        self._reads_second = reads_second
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "edp_mx_requests", "Requests.", ["path", "status"], registry=self._registry
        )
        self._utterances = Counter(
            "edp_mx_utterances", "Utterances that were understood.", registry=self._registry
        )
        self._latency = Histogram(
            "edp_mx_predict_seconds", "Time of POST /predict.", registry=self._registry
        )
        waiting = Gauge("edp_mx_waiting", "Requests that wait.", registry=self._registry)
        waiting.set_function(lambda: batcher.waiting)
        self._gets: Dict[str, Callable[[], Answer]] = {
            "/health": lambda: as_json({"status": "ok", "run": name}),
            "/metrics": lambda: Answer(generate_latest(self._registry), CONTENT_TYPE_LATEST),
            "/": lambda: Answer(self._page.encode(), "text/html; charset=utf-8"),
        }
        self._paths = ("/predict", *self._gets)

    async def answer(self, request: Request) -> Answer:
        """Return the answer to a request, also where it is refused or the model fails."""
        try:
            answer = await self._answer(request)
        except Refused as refused:
            answer = refused.answer()
        except Exception:
            logger.exception("a request failed")
            answer = as_json({"error": "the server failed"}, "500 Internal Server Error")
        path = request.path if request.path in self._paths else "other"
        self._requests.labels(path, answer.status[:3]).inc()
        return answer

    async def _answer(self, request: Request) -> Answer:
        self._refuse_other_hosts(request)
        if request.path not in self._paths:
            raise Refused("404 Not Found", f"there are only {', '.join(self._paths)}")
        allowed = "GET" if request.path in self._gets else "POST"
        if request.method != allowed and (request.method, allowed) != ("HEAD", "GET"):
            raise Refused("405 Method Not Allowed", f"send {allowed}", ("Allow", allowed))
        return self._gets[request.path]() if allowed == "GET" else await self._predict(request)

    def _refuse_other_hosts(self, request: Request) -> None:
        """Refuse a page of another site whose name was made to lead here (DNS rebinding)."""
        found = _HOST.fullmatch(request.host)
        if found is None:
            raise Refused("400 Bad Request", "there is no Host, or none that can be read")
        name = (found[1] or found[2]).lower()
        if name not in self._hosts and not (self._is_everywhere and name == request.here):
            raise Refused(
                "421 Misdirected Request",
                "this server does not go by that name; allow it with --allow-host NAME",
            )

    async def _predict(self, request: Request) -> Answer:
        started = time.perf_counter()
        if not _KIND.fullmatch(request.kind):
            raise Refused("415 Unsupported Media Type", "send Content-Type: application/json")
        in_thread = asyncio.get_running_loop().run_in_executor
        asked, is_single, is_streamed = await in_thread(None, self._read, request.body)
        if is_streamed:
            return Answer(b"", LINES, parts=self._streamed(asked, started))
        try:
            found = await self._batcher.ask(asked, seconds=self._seconds)
        except Busy as error:
            raise busy() from error
        self._utterances.inc(len(found))
        self._latency.observe(time.perf_counter() - started)
        return await in_thread(None, self._written, found, is_single)

    async def _streamed(self, asked: List[Tokens], started: float) -> AsyncIterator[bytes]:
        """A line for each part of an answer that is written, and at last the whole one."""
        loop, shown = asyncio.get_running_loop(), 0
        parts: asyncio.Queue[Optional[str]] = asyncio.Queue()

        def heard(answer: Any) -> None:
            text = answer.describe().rstrip("\ufffd")  # the first bytes of a character
            loop.call_soon_threadsafe(parts.put_nowait, text)

        answer = asyncio.ensure_future(self._batcher.ask(asked, seconds=self._seconds, heard=heard))
        answer.add_done_callback(lambda _: parts.put_nowait(None))
        try:
            while (text := await parts.get()) is not None:
                if len(text) > shown:
                    yield json_bytes({"written": text[shown:]}) + b"\n"
                    shown = len(text)
        finally:
            answer.cancel()  # where the client is gone
        try:
            (found,) = answer.result()
        except Exception as error:
            said = str(busy()) if isinstance(error, Busy) else "the server failed"
            yield json_bytes({"error": said}) + b"\n"
            return
        self._utterances.inc()
        self._latency.observe(time.perf_counter() - started)
        yield json_bytes(_rounded(found.to_dict(), self._digits)) + b"\n"

    def _read(self, body: bytes) -> Tuple[List[Tokens], bool, bool]:
        """The tokens of the utterances, whether there is a single one, and to be streamed."""
        try:
            given = parse_json(body)
        except NotJSON as error:
            raise Refused("400 Bad Request", "the body is not JSON") from error
        asked, is_single, is_streamed = _utterances_of(given)
        tokens = [_tokens_of(each, self._cut, self._reads_second) for each in asked]
        if sum(map(len, tokens)) > MOST_TOGETHER:
            raise Refused("400 Bad Request", f"a request has at most {MOST_TOGETHER} words")
        return tokens, is_single, is_streamed

    def _written(self, found: List[Any], is_single: bool) -> Answer:
        answers = [_rounded(each.to_dict(), self._digits) for each in found]
        return as_json(answers[0] if is_single else {"predictions": answers})


def _utterances_of(given: Any) -> Tuple[List[Any], bool, bool]:
    """The utterances of a request, whether it is a single one, and to be streamed."""
    if not isinstance(given, dict):
        return [given], True, False
    if "utterances" not in given:
        one = dict(given)
        is_streamed = one.pop("stream", False)
        if not isinstance(is_streamed, bool):
            raise Refused("400 Bad Request", '"stream" must be true or false')
        return [one], True, is_streamed
    asked = given["utterances"]
    if not isinstance(asked, list) or not 1 <= len(asked) <= MOST_UTTERANCES:
        raise Refused("400 Bad Request", f"utterances: a list of 1 to {MOST_UTTERANCES}")
    _refuse_unknown(given, "utterances")
    return asked, False, False


def _refuse_unknown(given: Dict[str, Any], *known: str) -> None:
    for key in given.keys() - set(known):
        there_are = ", ".join(f'"{each}"' for each in known)
        raise Refused(
            "400 Bad Request",
            f'"{key[:40]}" is no key that can stand here, beside {there_are}: a stream is of one '
            "text, and how the model answers is set by `edp-mx serve --set`",
        )


def _tokens_of(utterance: Any, cut: Cut, reads_second: Optional[bool]) -> Tokens:
    """The tokens of one utterance: {"tokens": […]}, {"text": "…"} or the text itself."""
    tokens = utterance
    if isinstance(utterance, dict):
        _refuse_unknown(utterance, "text", "tokens", "second")
        tokens = utterance.get("tokens")
        tokens = utterance.get("text") if tokens is None else tokens
    if isinstance(tokens, str):
        tokens = cut(tokens)
    if isinstance(utterance, dict):
        try:
            tokens = with_second(tokens, utterance, cut, reads_second=reads_second)
        except UserError as error:
            raise Refused("400 Bad Request", str(error)) from error
    if not are_words(tokens) or len(tokens) > MOST_TOKENS:
        raise Refused(
            "400 Bad Request",
            f'an utterance is {{"text": "…"}} or {{"tokens": ["…"]}}, of 1 to {MOST_TOKENS} words',
        )
    return tokens


def _rounded(value: Any, digits: Optional[int]) -> Any:
    """A value with all its floats rounded: to the last bit, they tell who was trained on."""
    if isinstance(value, float) and digits is not None:
        return round(value, digits)
    if isinstance(value, dict):
        return {key: _rounded(each, digits) for key, each in value.items()}
    return [_rounded(each, digits) for each in value] if isinstance(value, list) else value
