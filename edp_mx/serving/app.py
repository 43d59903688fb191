"""The HTTP interface (WSGI) of a trained model: /predict, /health, /metrics and a page."""

from __future__ import annotations

import json
import logging
import time
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Tuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from edp_mx.data.tokenization import Cut
from edp_mx.data.utterance import are_words
from edp_mx.runtime.json_text import NotJSON, parse_json
from edp_mx.serving.batcher import Batcher, Busy, Tokens

logger = logging.getLogger(__name__)
MOST_UTTERANCES, MOST_TOKENS = 256, 1000  # of a request; of an utterance
_SAFE = [
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'self' 'unsafe-inline'; img-src data:"),
]


class Refused(Exception):
    """A request that is not answered: HTTP status and a sentence for whoever sent it."""

    def __init__(self, status: str, sentence: str, *headers: Tuple[str, str]) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, list(headers)


class Answer(NamedTuple):
    """What a request is answered with."""

    body: bytes
    kind: str
    status: str = "200 OK"
    headers: List[Tuple[str, str]] = []


class App:
    """A WSGI application. It logs no utterance, since what people say is private.

    Args:
        name: of the run, for /health.
        page: HTML to try the model with.
        seconds: after which a prediction is given up.
        cut: makes tokens of a text.
    """

    def __init__(
        self, batcher: Batcher, *, name: str, page: str, seconds: float, cut: Cut = str.split
    ) -> None:
        self._batcher, self._page, self._seconds, self._cut = batcher, page, seconds, cut
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
        self._routes: Dict[str, Tuple[str, Callable[[Dict[str, Any]], Answer]]] = {
            "/predict": ("POST", self._predict),
            "/health": ("GET", lambda _: _json({"status": "ok", "run": name})),
            "/metrics": ("GET", self._metrics),
            "/": ("GET", lambda _: Answer(self._page.encode(), "text/html; charset=utf-8")),
        }

    def __call__(self, environ: Dict[str, Any], start_response: Callable) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        try:
            answer = self._answer(path, environ)
        except Refused as refused:
            answer = _json({"error": str(refused)}, refused.status, refused.headers)
        except Exception:
            logger.exception("a request to %s failed", path)
            answer = _json({"error": "the server failed"}, "500 Internal Server Error")
        self._requests.labels(path if path in self._routes else "other", answer.status[:3]).inc()
        size = ("Content-Length", str(len(answer.body)))
        start_response(
            answer.status, [("Content-Type", answer.kind), size, *_SAFE, *answer.headers]
        )
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else answer.body]

    def _answer(self, path: str, environ: Dict[str, Any]) -> Answer:
        if path not in self._routes:
            raise Refused("404 Not Found", f"there are only {', '.join(self._routes)}")
        allowed, handle = self._routes[path]
        method = environ["REQUEST_METHOD"]
        if method != allowed and (method, allowed) != ("HEAD", "GET"):
            raise Refused("405 Method Not Allowed", f"send {allowed}", ("Allow", allowed))
        return handle(environ)

    def _predict(self, environ: Dict[str, Any]) -> Answer:
        started = time.perf_counter()
        # A page of another site cannot send this without asking first.
        if not environ.get("CONTENT_TYPE", "").startswith("application/json"):
            raise Refused("415 Unsupported Media Type", "send Content-Type: application/json")
        try:
            given = parse_json(environ["wsgi.input"].read())
        except NotJSON as error:
            raise Refused("400 Bad Request", "the body is not JSON") from error
        asked, is_single = _utterances_of(given)
        try:
            found = self._batcher.ask(
                [_tokens_of(each, self._cut) for each in asked], seconds=self._seconds
            )
        except Busy as error:
            raise Refused(
                "503 Service Unavailable", "too much to do; try again", ("Retry-After", "1")
            ) from error
        self._utterances.inc(len(found))
        self._latency.observe(time.perf_counter() - started)
        answers = [each.to_dict() for each in found]
        return _json(answers[0] if is_single else {"predictions": answers})

    def _metrics(self, _: Dict[str, Any]) -> Answer:
        return Answer(generate_latest(self._registry), CONTENT_TYPE_LATEST)


def _utterances_of(given: Any) -> Tuple[List[Any], bool]:
    """The utterances of a request, and whether it is a single one."""
    if not isinstance(given, dict) or "utterances" not in given:
        return [given], True
    asked = given["utterances"]
    if not isinstance(asked, list) or not 1 <= len(asked) <= MOST_UTTERANCES:
        raise Refused("400 Bad Request", f"utterances: a list of 1 to {MOST_UTTERANCES}")
    return asked, False


def _tokens_of(utterance: Any, cut: Cut) -> Tokens:
    """The tokens of one utterance: {"tokens": […]}, {"text": "…"} or the text itself."""
    tokens = utterance
    if isinstance(utterance, dict):
        tokens = utterance.get("tokens")
        tokens = utterance.get("text") if tokens is None else tokens
    if isinstance(tokens, str):
        tokens = cut(tokens)
    if not are_words(tokens) or len(tokens) > MOST_TOKENS:
        raise Refused(
            "400 Bad Request",
            f'an utterance is {{"text": "…"}} or {{"tokens": ["…"]}}, of 1 to {MOST_TOKENS} words',
        )
    return tokens


def _json(value: Any, status: str = "200 OK", headers: Iterable[Tuple[str, str]] = ()) -> Answer:
    body = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    return Answer(body, "application/json", status, [*headers])
