"""The server, asked over HTTP: right answers, broken requests, slow clients, many at once.

The model is a stand-in that answers with the words it was asked about.
"""

import http.client
import json
import socket
import threading
import time

import pytest

from edp_mx.data.tokenization import TOKENIZERS
from edp_mx.serving import app, server
from edp_mx.serving.batcher import Batcher, Busy
from edp_mx.serving.server import build_server, port_of

JSON = {"Content-Type": "application/json"}
PATIENCE = 300


class Echo:
    """What is predicted for an utterance: its words."""

    def __init__(self, tokens):
        self.tokens = tokens

    def to_dict(self):
        return {"tokens": list(self.tokens)}


class Model:
    """Answers when it may; notes the size of each batch, and whether two threads ever met."""

    def __init__(self):
        self.gate, self.sizes, self.met = threading.Event(), [], False
        self._alone = threading.Lock()
        self.gate.set()

    def batcher_of(self, load):
        self.batcher = Batcher(load)
        return self.batcher

    def __call__(self, utterances):
        self.met |= not self._alone.acquire(blocking=False)
        self.sizes.append(len(utterances))
        assert self.gate.wait(PATIENCE)
        self._alone.release()
        if any("crash" in tokens for tokens in utterances):
            raise ValueError("a model that fails")
        return [Echo(tokens) for tokens in utterances]


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def port(model, monkeypatch, request):
    """Of a server that runs; the parameter is the time after which it cuts off who is silent."""
    monkeypatch.setattr(server, "IDLE_SECONDS", getattr(request, "param", PATIENCE))
    monkeypatch.setattr(server, "Batcher", model.batcher_of)
    running = build_server("mine", lambda: model, host="127.0.0.1", port=0, seconds=PATIENCE,
                           cut=TOKENIZERS["punctuation"])  # fmt: skip
    threading.Thread(target=running.run, daemon=True).start()
    yield port_of(running)
    running.close()
    running.task_dispatcher.shutdown()


def send(port, method="POST", path="/predict", body=None, headers=JSON):
    """The answer to a request: status, headers, and the body, read as JSON where it is that."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    is_json = answer.headers["Content-Type"] == "application/json" and text
    return answer.status, answer.headers, json.loads(text) if is_json else text


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"text": "call  my mum"}, {"tokens": ["call", "my", "mum"]}),
        ({"text": "call mum?"}, {"tokens": ["call", "mum", "?"]}),
        ({"tokens": ["play", "jazz?"]}, {"tokens": ["play", "jazz?"]}),
        ("spielé 音楽", {"tokens": ["spielé", "音楽"]}),
        ({"utterances": ["hi", {"text": "a b"}]},
         {"predictions": [{"tokens": ["hi"]}, {"tokens": ["a", "b"]}]}),
    ],
)  # fmt: skip
def test_utterances_are_answered(port, given, expected):
    status, headers, found = send(port, body=json.dumps(given))
    assert (status, found) == (200, expected)
    assert headers["X-Content-Type-Options"] == "nosniff"


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        ({"body": "{"}, 400, "not JSON"),
        ({"body": b"\xe9"}, 400, "not JSON"),
        ({"body": nested(100_000)}, 400, "not JSON"),
        ({"body": ""}, 400, "not JSON"),
        ({"body": "{}"}, 400, "an utterance is"),
        ({"body": '{"text": " "}'}, 400, "an utterance is"),
        ({"body": '{"tokens": [1]}'}, 400, "an utterance is"),
        ({"body": '{"text": "\\ud800"}'}, 400, "the body is not JSON"),
        ({"body": json.dumps({"text": "a " * 1001})}, 400, "of 1 to 1000 words"),
        ({"body": '{"utterances": []}'}, 400, "a list of 1 to 256"),
        ({"body": json.dumps({"utterances": ["a"] * 257})}, 400, "a list of 1 to 256"),
        ({"body": '{"text": "crash"}'}, 500, "the server failed"),
        # its length is enough; who sends the body too may be cut off before the answer is read
        ({"headers": {**JSON, "Content-Length": str(1 << 21)}}, 413, ""),
        ({"body": '{"text": "a"}', "headers": {}}, 415, "application/json"),
        ({"method": "GET"}, 405, "send POST"),
        ({"method": "DELETE", "path": "/health"}, 405, "send GET"),
        ({"method": "GET", "path": "/../etc/passwd"}, 404, "there are only"),
        ({"method": "GET", "path": "/health", "headers": {"X": "a" * (1 << 15)}}, 431, ""),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_broken_requests_are_refused_and_the_server_lives(port, request_, status, words):
    found, headers, body = send(port, **request_)
    assert found == status and words in str(body)
    assert headers["Allow"] == ({405: words[5:]}.get(status))
    assert send(port, body='{"text": "still here"}')[0] == 200


def test_health_metrics_and_the_page(port):
    assert send(port, "GET", "/health")[2] == {"status": "ok", "run": "mine"}
    assert send(port, "HEAD", "/health")[::2] == (200, "")
    send(port, body='{"utterances": ["a", "b"]}')
    send(port, body="{")
    send(port, "GET", "/no/such")
    _, headers, text = send(port, "GET", "/metrics")
    assert headers["Content-Type"].startswith("text/plain")
    for line in (
        'edp_mx_requests_total{path="/predict",status="200"} 1.0',
        'edp_mx_requests_total{path="/predict",status="400"} 1.0',
        'edp_mx_requests_total{path="other",status="404"} 1.0',
        "edp_mx_utterances_total 2.0",
        "edp_mx_predict_seconds_count 1.0",
        "edp_mx_waiting 0.0",
    ):
        assert f"\n{line}\n" in text
    _, headers, page = send(port, "GET", "/")
    assert "<h1>mine</h1>" in page and "default-src 'self'" in headers["Content-Security-Policy"]


def test_two_hundred_at_once_get_their_own_answers_from_one_thread(port, model):
    model.gate.clear()
    found = {}

    def ask(number):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("POST", "/predict", json.dumps({"text": f"word{number}"}), JSON)
        answer = connection.getresponse()
        found[number] = answer.status, json.loads(answer.read())
        connection.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(200)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE
    while sum(model.sizes) + model.batcher.waiting < server.THREADS:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    model.gate.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert found == {n: (200, {"tokens": [f"word{n}"]}) for n in range(200)}
    assert sum(model.sizes[:2]) == server.THREADS  # all that waited for the first went together
    assert sum(model.sizes) == 200 and not model.met


@pytest.mark.parametrize("port", [5], indirect=True)
def test_slow_clients_hold_up_nobody_and_are_cut_off(port):
    begun = (
        b"POST /predict HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
    )
    slow = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(100)]
    for client in slow:
        client.sendall(begun)
    assert send(port, body='{"text": "fast"}')[0] == 200
    for client in slow:
        assert client.recv(1) == b""  # closed
        client.close()


def test_what_waits_too_long_or_is_too_much_is_refused():
    model = Model()
    model.gate.clear()
    batcher = Batcher(lambda: model, most_waiting=2)
    for _ in range(2):  # the first is being answered, or waits as the others do
        with pytest.raises(Busy):
            batcher.ask([["a"]], seconds=0.01)
    deadline = time.monotonic() + PATIENCE
    with pytest.raises(Busy):
        while time.monotonic() < deadline:
            batcher.ask([["b"]], seconds=0.01)
    model.gate.set()
    while batcher.waiting and time.monotonic() < deadline:
        time.sleep(0.01)
    assert batcher.ask([["c"]], seconds=PATIENCE)[0].tokens == ["c"]


def test_one_bad_question_spoils_no_other():
    model = Model()
    model.gate.clear()
    batcher, found = Batcher(lambda: model), {}

    def ask(word):
        try:
            found[word] = batcher.ask([[word]], seconds=PATIENCE)[0].tokens
        except ValueError as error:
            found[word] = str(error)

    threads = [threading.Thread(target=ask, args=(w,)) for w in ("first", "a", "crash", "b")]
    for thread in threads:
        thread.start()
    model.gate.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert found == {"first": ["first"], "a": ["a"], "b": ["b"], "crash": "a model that fails"}


def test_a_model_that_cannot_be_loaded_is_said():
    def load():
        raise OSError("no weights")

    with pytest.raises(OSError, match="no weights"):
        Batcher(load).wait_until_loaded()


def test_the_limits_are_those_that_are_documented():
    assert (app.MOST_UTTERANCES, app.MOST_TOKENS, server.MOST_BYTES) == (256, 1000, 1 << 20)
