"""Lists of words and labels; one that was read from a private corpus is not public."""

import gzip
import json

import pytest
from support.jsonl import write_jsonl

from edp_mx.data.description import describe
from edp_mx.data.labels import LabelsConfig
from edp_mx.data.lists import common_words, labels_in, tokens_of, write_labels
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary, VocabularyConfig

CALL = Utterance(("Call", "mum"), ("O", "I-who"), "call", "1")
STOP = Utterance(("stop",), ("O",), "stop", "2")


def test_words_of_texts_corpora_and_stand_ins(tmp_path):
    (tmp_path / "a.txt").write_text("call mum\n\ncall dad")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"call mum\n"))
    write_jsonl(tmp_path / "c.jsonl", [CALL, STOP])
    made = {"size": 50, "seed": 3}
    for name, wanted in (
        (tmp_path / "a.txt", [["call", "mum"], ["call", "dad"]]),
        (tmp_path / "b.txt.gz", [["call", "mum"]]),
        (tmp_path / "c.jsonl", [["Call", "mum"], ["stop"]]),
        ("health", [list(u.tokens) for u in make_utterances("health", **made)]),
    ):
        assert [list(tokens) for tokens in tokens_of(str(name), **made)] == wanted
    assert common_words(tokens_of(str(tmp_path / "a.txt"), **made)) == ["call", "dad", "mum"]


@pytest.mark.parametrize("private", [[], ["corpora/mine.jsonl"]])
def test_a_list_is_public_unless_it_says_that_it_is_not(private, tmp_path):
    path = tmp_path / "labels.json"
    write_labels(path, labels_in(describe([CALL, STOP])), private=private)
    written = json.loads(path.read_text())
    assert (written["intents"], written["slots"]) == (["call", "stop"], ["who"])
    (tmp_path / "words.txt").write_text("call\n")
    lists = (VocabularyConfig("file", str(tmp_path / "words.txt")), LabelsConfig("file", str(path)))
    vocabulary = Vocabulary.build([CALL, STOP], *lists)
    assert vocabulary.slots == ("O", "B-who", "I-who") and vocabulary.intents == ("call", "stop")
    assert vocabulary.is_public is vocabulary.has_public_labels is (not private)
    again = Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json())))
    assert again.is_public is (not private)
    if private:  # the user removes the line, and the list is JSON still
        lines = path.read_text().splitlines()
        path.write_text("\n".join(line for line in lines if '"private"' not in line))
        assert Vocabulary.build([CALL, STOP], *lists).is_public
