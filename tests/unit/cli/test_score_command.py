"""`edp-mx score`: its contract for other programs, and where a file is broken."""

import json
from functools import partial

import pytest
from support import cli
from support.refusals import one_sentence

run = partial(cli.run, "score")


TOKENS = ["from", "boston", "to", "new", "york"]
REFERENCE = [
    {"tokens": TOKENS, "slots": ["O", "B-from", "O", "B-to", "I-to"], "intent": "flight"},
    {"tokens": ["hi"], "slots": ["O"], "intent": "greet"},
]
HYPOTHESIS = [
    {"tokens": TOKENS, "slots": ["O", "B-to", "O", "B-to", "I-to"], "intent": "flight"},
    {"tokens": ["hi"], "slots": ["B-from"], "intent": "bye"},
]


def files(tmp_path, reference, hypothesis):
    """Writes two files; utterances are dictionaries, or lines as they are."""
    paths = tmp_path / "reference.jsonl", tmp_path / "hypothesis.jsonl"
    for path, lines in zip(paths, (reference, hypothesis)):
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return [str(path) for path in paths]


@pytest.mark.parametrize(
    "alignment, counts, ser",
    [
        ("overlap", (2, 2, 0, 1), 3 / 4),
        ("type", (2, 1, 1, 2), 4 / 4),
        ("exact", (2, 1, 1, 2), 4 / 4),
    ],
)
def test_the_contract(tmp_path, capsys, alignment, counts, ser):
    assert run(*files(tmp_path, REFERENCE, HYPOTHESIS), "--alignment", alignment, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    names = ("correct", "substitutions", "deletions", "insertions")
    assert found == {**dict(zip(names, counts)), "ser": ser, "intent_accuracy": 0.5,
                     "slot_precision": pytest.approx(1 / 3), "slot_recall": 0.5,
                     "slot_f1": pytest.approx(0.4), "utterances": 2}  # fmt: skip


@pytest.mark.parametrize(
    "line, words",
    [
        ('{"tokens": ["hi"', "not JSON"),
        ('["hi"]', "not an object"),
        ({"tokens": ["hi"], "slots": ["O"]}, "intent must be a string"),
        ({"tokens": ["hi"], "slots": ["O", "O"], "intent": "x"}, "1 token but 2 slots"),
        ({"tokens": ["hi"], "slots": ["X-a"], "intent": "x"}, "not BIO"),
        ({"tokens": ["ho"], "slots": ["O"], "intent": "x"}, "token 1 is 'ho', but 'hi'"),
        ({"tokens": ["h", "i"], "slots": ["O", "O"], "intent": "x"}, "2 tokens, but .*has 1"),
    ],
)
def test_a_broken_line_is_named(tmp_path, line, words):
    given = files(tmp_path, REFERENCE, [HYPOTHESIS[0], line])
    one_sentence(rf"hypothesis.jsonl, line 2: .*{words}", run, *given)


@pytest.mark.parametrize(
    "counts, words",
    [
        ((2, 1), "hypothesis.jsonl has 1 utterance but .*reference.jsonl has more"),
        ((1, 2), "reference.jsonl has 1 utterance but .*hypothesis.jsonl has more"),
        ((0, 0), "hold no utterances"),
    ],
)
def test_files_that_do_not_match(tmp_path, counts, words):
    one_sentence(words, run, *files(tmp_path, REFERENCE[: counts[0]], HYPOTHESIS[: counts[1]]))


def test_unreadable_files(tmp_path):
    reference, hypothesis = files(tmp_path, REFERENCE, HYPOTHESIS)
    one_sentence("cannot read .*absent.jsonl", run, reference, str(tmp_path / "absent.jsonl"))
    (tmp_path / "hypothesis.jsonl").write_bytes(b'{"tokens": ["\xff"]}\n')
    one_sentence("line 1: not UTF-8", run, reference, hypothesis)
