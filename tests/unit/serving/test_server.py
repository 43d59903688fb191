"""The server, asked over HTTP: right answers, broken requests, other hosts, many at once."""

import asyncio
import http.client
import json
import threading
import time
from contextlib import contextmanager

import pytest
from support.serving import JSON, PATIENCE, Echo, Model, connect, posted, raw, send, serving

from edp_mx.errors import UserError
from edp_mx.serving import app, connections, wire
from edp_mx.serving.batcher import Batcher, Busy
from edp_mx.serving.server import build_server


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def port(model):
    with serving(model) as running:
        yield running.port


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


@pytest.mark.parametrize(("reads_second", "expected"), [
    (True, (200, {"tokens": ["It", "rains", ".", "[SEP]", "Is", "it", "?"]})),
    (False, (400, {"error": '"second" needs a word, and a model of two texts '
                            "(data.columns.second)"})),
])  # fmt: skip
def test_a_second_text_is_read_where_the_model_reads_two(model, reads_second, expected):
    body = json.dumps({"text": "It rains.", "second": "Is it?"})
    with serving(model, reads_second=reads_second) as running:
        status, _, found = send(running.port, body=body)
    assert (status, found) == expected


@contextmanager
def asked_to_stream(port, text, **more):
    """The answer to it, whose lines can be read as they come."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("POST", "/predict", json.dumps({"text": text, "stream": True, **more}), JSON)
    yield connection.getresponse()
    connection.close()


def test_what_is_written_comes_before_the_answer_is_whole(model, port):
    model.gate.clear()
    with asked_to_stream(port, "call my mum") as answer:
        assert answer.headers["Content-Type"] == "application/x-ndjson"
        assert [json.loads(answer.readline()) for _ in range(2)] == [
            {"written": "call"},
            {"written": " my"},
        ]
        model.gate.set()
        assert [json.loads(line) for line in answer] == [{"tokens": ["call", "my", "mum"]}]
    assert send(port, body='{"text": "hi"}')[2] == {"tokens": ["hi"]}


def test_a_stream_that_fails_or_takes_too_long_says_so(model):
    model.gate.clear()
    with serving(model, seconds=0.3) as running, asked_to_stream(running.port, "hi") as answer:
        assert json.loads([*answer][-1]) == {"error": "too busy; try again"}
    model.gate.set()
    with serving(model) as running, asked_to_stream(running.port, "crash") as answer:
        assert json.loads([*answer][-1]) == {"error": "the server failed"}


def writing(model, ended, most=10_000, pause=0.05):
    """A model that writes a long answer to "long", word by word, unless it is stopped."""

    def predict(utterances, heard=None):
        found = model(utterances)
        try:
            for count in range(most if utterances == [["long"]] else 0):
                time.sleep(pause)
                if heard is not None:
                    heard(Echo(["w"] * (count + 1), None))
        except BaseException:
            ended.append(count)
            raise
        return found

    predict.batcher_of = model.batcher_of
    predict.gate = model.gate
    return predict


def test_a_stream_may_be_long_as_long_as_it_goes_on(model):
    """Its time counts from its last part."""
    seconds = 4
    with serving(writing(model, [], 10, pause=0.5), seconds=seconds) as running:
        began = time.monotonic()
        with asked_to_stream(running.port, "long") as answer:
            lines = [json.loads(line) for line in answer]
    assert time.monotonic() - began > seconds
    assert len(lines) == 11 and lines[-1] == {"tokens": ["long"]}


def test_a_stream_that_nobody_reads_any_more_is_not_written_to_its_end(model):
    """Its client is gone, or has been told that it took too long: the next one is answered.

    So is a whole answer that nobody waits for.
    """
    ended = []
    with serving(writing(model, ended)) as running:
        with asked_to_stream(running.port, "long") as answer:
            answer.readline()
        assert send(running.port, body='{"text": "hi"}')[::2] == (200, {"tokens": ["hi"]})
    assert len(ended) == 1
    with serving(writing(model, ended, pause=1), seconds=0.5) as running:
        with asked_to_stream(running.port, "long") as answer:
            assert json.loads([*answer][-1]) == {"error": "too busy; try again"}
        assert send(running.port, body='{"text": "long"}')[0] == 503
        deadline = time.monotonic() + PATIENCE
        while send(running.port, body='{"text": "hi"}')[0] != 200:
            assert time.monotonic() < deadline
    assert 2 <= len(ended) <= 3  # the second may not have been begun


def test_streams_of_several_clients_are_their_own(model, port):
    model.gate.clear()
    with asked_to_stream(port, "a b") as one, asked_to_stream(port, "c d") as other:
        model.gate.set()
        said = [[json.loads(line) for line in answer] for answer in (one, other)]
    assert [lines[-1]["tokens"] for lines in said] == [["a", "b"], ["c", "d"]]
    assert [lines[0]["written"] for lines in said] == ["a", "c"] and not model.met


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
        ({"body": '{"text": "a", "stream": "yes"}'}, 400, "must be true or false"),
        ({"body": '{"text": "a", "beams": 3}'}, 400, "beams"),
        ({"body": '{"utterances": ["a"], "stream": true}'}, 400, "a stream is of one text"),
        ({"body": '{"utterances": [{"text": "a", "stream": true}]}'}, 400, "no key that can"),
        ({"body": '{"utterances": []}'}, 400, "a list of 1 to 256"),
        ({"body": json.dumps({"utterances": ["a"] * 257})}, 400, "a list of 1 to 256"),
        ({"body": '{"text": "crash"}'}, 500, "the server failed"),
        # its length is enough; who sends the body too may be cut off before the answer is read
        ({"headers": {**JSON, "Content-Length": str(1 << 21)}}, 413, ""),
        ({"body": '{"text": "a"}', "headers": {}}, 415, "application/json"),
        *(({"body": '{"text": "a"}', "headers": {"Content-Type": kind}}, 415, "application/json")
          for kind in ("application/jsonx", "application/json; charset=utf-16",
                       "application/json, text/plain", "text/json")),
        ({"body": json.dumps({"utterances": ["a " * 1000] * 20 + ["a"]})}, 400,
         "at most 20000 words"),
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


HOST = b"Host: localhost\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET http://[::1 HTTP/1.1\r\nConnection: close\r\n" + HOST, 400),
        (b"GET /health HTTP/1.1\r\n", 400),  # without a Host
        (b"GET /health HTTP/1.1\r\n" + HOST + HOST, 400),
        (b"GET /health HTTP/1.1\r\nHost: \xff\r\nConnection: close\r\n", 421),
        (b"GET \xff HTTP/1.1\r\n" + HOST, 400),
        (b"GET * HTTP/1.1\r\n" + HOST, 400),
        (b"CONNECT localhost:80 HTTP/1.1\r\n" + HOST, 400),
        (b"\x16\x03\x01\x02", 400),  # https to a port without it
        (b"GET /health HTTP/1.1\r\n" + HOST + b"Content-Length: " + b"1" * 5000 + b"\r\n", 400),
        (b"GET /health HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n", 400),
        (b"GET /health HTTP/1.1\r\n" + HOST + b"Content-Length: +1\r\n", 400),
        (b"GET /health HTTP/1.1\r\n" + HOST + b"Content-Length: 1, 2\r\n", 400),
        (b"POST /predict HTTP/1.1\r\n" + HOST
         + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", 400),
        (b"POST /predict HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n", 501),
        (b"HEAD /health HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999\r\n", 413),
        (b"GET /health HTTP/1.1\r\n" + HOST + b"Connection: close\r\n", 200),
        (b"GET http://localhost/health HTTP/1.1\r\nHost: evil.example\r\n"
         b"Connection: close\r\n", 200),
        (b"GET http://evil.example/health HTTP/1.1\r\n" + HOST + b"Connection: close\r\n", 421),
        (b"GET /health HTTP/1.0\r\n" + HOST, 200),
    ],
)  # fmt: skip
def test_what_is_no_sound_request_is_answered_without_a_word_in_the_log(
    port, sent, status, caplog, capfd
):
    assert raw(port, sent + b"\r\n").startswith(b"HTTP/1.1 %d " % status)
    assert not caplog.records and capfd.readouterr() == ("", "")


def test_chunks_pipelined_requests_and_one_that_waits_to_go_on(port):
    chunks = b'9\r\n{"text": \r\n6\r\n"a b"}\r\n0\r\n\r\n'
    head = posted(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    last = posted(b'{"text": "c"}', Expect="100-continue", Connection="close")
    answer = raw(port, head + chunks + posted(b'{"text": "d"}') + last)
    found = [answer.index(part) for part in (b'["a", "b"]', b'["d"]', b'["c"]')]
    assert found == sorted(found) and answer.count(b"HTTP/1.1 200") == 3
    with connect(port) as client:
        head, body = posted(b'{"text": "c"}', Expect="100-continue").split(b"\r\n\r\n")
        client.sendall(head + b"\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 100 ")
        client.sendall(body)
        assert client.recv(1000).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("options", "answered", "refused"),
    [
        ({}, ["localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]:80", "[::1]"],
         ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "127.0.0.2"]),
        ({"hosts": ["my.example"]}, ["my.example", "My.example:443", "localhost"],
         ["my.example.org"]),
        ({"host": "0.0.0.0"}, ["0.0.0.0:80", "127.0.0.1"], ["evil.example", "10.9.8.7"]),
        ({"host": "127.0.0.3"}, ["127.0.0.3"], ["127.0.0.4"]),
    ],
)  # fmt: skip
def test_only_the_hosts_that_it_was_told_are_answered(model, options, answered, refused):
    with serving(model, **options) as running:
        for path in ("/", "/health", "/metrics", "/predict"):
            for host in refused:
                headers = {**JSON, "Host": host}
                status, _, found = send(running.port, "POST", path, '{"text": "a"}', headers,
                                        options.get("host", "127.0.0.1"))  # fmt: skip
                assert status == 421 and "--allow-host" in found["error"]
        for host in answered:
            assert send(running.port, "GET", "/health", None, {"Host": host},
                        options.get("host", "127.0.0.1"))[0] == 200  # fmt: skip
        for host in ("", "a b", "[::1", "user@localhost", "localhost:port"):
            assert send(running.port, "GET", "/health", None, {"Host": host},
                        options.get("host", "127.0.0.1"))[0] == 400  # fmt: skip


def test_confidences_have_two_digits_unless_asked_for(model):
    model.confidence = 0.07212990715293245
    for options, expected in (({}, 0.07), ({"digits": None}, model.confidence)):
        with serving(model, **options) as running:
            _, _, found = send(running.port, body='{"utterances": ["a"]}')
            assert found["predictions"][0]["intent_confidence"] == expected
            assert found["predictions"][0]["spans"] == [{"start": 0, "confidence": expected}]


def test_a_server_that_is_closed_before_it_runs_ends_at_once(model):
    running = build_server("mine", lambda: model, host="127.0.0.1", port=0, seconds=1)
    running.close()
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def test_a_port_that_is_taken_is_said(port, model):
    with pytest.raises(UserError, match=f"cannot listen at 127.0.0.1, port {port}: "):
        build_server("mine", lambda: model, host="127.0.0.1", port=port, seconds=1)


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
    while sum(model.sizes) + model.batcher.waiting < 200:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    model.gate.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert found == {n: (200, {"tokens": [f"word{n}"]}) for n in range(200)}
    assert sum(model.sizes[:2]) == 200  # all that waited for the first went together
    assert not model.met


def test_what_waits_too_long_or_is_too_much_is_refused():
    model = Model()
    model.gate.clear()
    batcher = Batcher(lambda: model, most_waiting=2)
    for _ in range(2):  # the first is being answered, or waits as the others do
        with pytest.raises(Busy):
            asyncio.run(batcher.ask([["a"]], seconds=0.01))
    deadline = time.monotonic() + PATIENCE
    with pytest.raises(Busy):
        while time.monotonic() < deadline:
            asyncio.run(batcher.ask([["b"]], seconds=0.01))
    model.gate.set()
    while batcher.waiting and time.monotonic() < deadline:
        time.sleep(0.01)
    assert asyncio.run(batcher.ask([["c"]], seconds=PATIENCE))[0].tokens == ["c"]


def test_one_bad_question_spoils_no_other():
    model = Model()
    model.gate.clear()
    batcher, found = Batcher(lambda: model), {}

    def ask(word):
        try:
            found[word] = asyncio.run(batcher.ask([[word]], seconds=PATIENCE))[0].tokens
        except ValueError as error:
            found[word] = str(error)

    threads = [threading.Thread(target=ask, args=(w,)) for w in ("first", "a", "crash", "b")]
    for thread in threads:
        thread.start()
    model.gate.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert found == {"first": ["first"], "a": ["a"], "b": ["b"], "crash": "a model that fails"}


def test_a_model_with_too_few_answers_fails_that_question_alone():
    model = Model()

    def answers(asked, heard=None):
        return model(asked)[: len(asked) - asked.count(["few"])]

    batcher = Batcher(lambda: answers)
    with pytest.raises(RuntimeError, match="the model answered 1 of 2 utterances"):
        asyncio.run(batcher.ask([["few"], ["a"]], seconds=PATIENCE))
    assert asyncio.run(batcher.ask([["b"]], seconds=PATIENCE))[0].tokens == ["b"]


def test_a_model_that_cannot_be_loaded_is_said():
    def load():
        raise OSError("no weights")

    with pytest.raises(OSError, match="no weights"):
        Batcher(load).wait_until_loaded()


def test_the_limits_are_those_that_are_documented():
    assert (app.MOST_UTTERANCES, app.MOST_TOKENS, wire.MOST_BYTES) == (256, 1000, 1 << 20)
    assert (app.MOST_TOGETHER, connections.MOST_HELD) == (20_000, 64 << 20)
    assert (connections.MOST_CONNECTIONS, connections.MOST_OF_ADDRESS) == (500, 250)
    assert (connections.REQUEST_SECONDS, connections.ANSWER_SECONDS) == (20, 20)
    assert connections.END_SECONDS == 5
