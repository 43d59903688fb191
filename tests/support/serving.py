"""A server of a stand-in model that answers with the words it was asked about, and its clients."""

import http.client
import json
import socket
import threading
from contextlib import contextmanager
from unittest import mock

from edp_mx.data.tokenization import WORD_OR_PUNCTUATION
from edp_mx.serving import server
from edp_mx.serving.batcher import Batcher
from edp_mx.serving.server import build_server

JSON = {"Content-Type": "application/json"}
PATIENCE = 300


class Echo:
    """What is predicted for an utterance: its words."""

    def __init__(self, tokens, confidence):
        self.tokens, self.confidence = tokens, confidence

    def describe(self):
        return " ".join(self.tokens)

    def to_dict(self):
        found = {"tokens": list(self.tokens)}
        if self.confidence is not None:
            found["intent_confidence"] = self.confidence
            found["spans"] = [{"start": 0, "confidence": self.confidence}]
        return found


class Model:
    """Answers when it may; notes the size of each batch, and whether two threads ever met."""

    def __init__(self):
        self.gate, self.sizes, self.met = threading.Event(), [], False
        self.confidence, self.times = None, 1
        self._alone = threading.Lock()
        self.gate.set()

    def batcher_of(self, load):
        self.batcher = Batcher(load)
        return self.batcher

    def __call__(self, utterances, heard=None):
        self.met |= not self._alone.acquire(blocking=False)
        self.sizes.append(len(utterances))
        if heard is not None:  # what is written before it may go on
            heard(Echo(utterances[0][:1], None))
            heard(Echo(utterances[0][:2], None))
        assert self.gate.wait(PATIENCE)
        self._alone.release()
        if any("crash" in tokens for tokens in utterances):
            raise ValueError("a model that fails")
        return [Echo(tokens * self.times, self.confidence) for tokens in utterances]


@contextmanager
def serving(model, **options):
    """A server that runs; its port is `.port`."""
    with mock.patch.object(server, "Batcher", model.batcher_of):
        running = build_server("mine", lambda: model, port=0,
                               **{"host": "127.0.0.1", "seconds": PATIENCE,
                                  "cut": WORD_OR_PUNCTUATION.findall,
                                  **options})  # fmt: skip
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        model.gate.set()
        running.close()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def send(port, method="POST", path="/predict", body=None, headers=JSON, host="127.0.0.1"):
    """The answer to a request: status, headers, and the body, read as JSON where it is that."""
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    is_json = answer.headers["Content-Type"] == "application/json" and text
    return answer.status, answer.headers, json.loads(text) if is_json else text


def connect(port, address="127.0.0.1"):
    """A connection from one of this machine's addresses for itself."""
    return socket.create_connection(("127.0.0.1", port), PATIENCE, source_address=(address, 0))


def raw(port, sent):
    """The whole answer to some bytes, until the server closes the connection."""
    with connect(port) as client:
        client.sendall(sent)
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


def posted(body, **headers):
    """The bytes of a request for a prediction."""
    lines = {"Host": "localhost", **JSON, "Content-Length": len(body), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST /predict HTTP/1.1\r\n{head}\r\n".encode() + body
