"""CLINC150 as its owners publish it: one file with six lists of pairs."""

import gzip
import json
from collections import Counter

import pytest
from support.refusals import one_sentence

from edp_mx.data.readers import stream_utterances
from edp_mx.errors import UserError

DOCUMENT = {
    "oos_val": [["why not", "oos"]],
    "val": [["wake me", "alarm"]],
    "train": [["set an alarm", "alarm"], ["how much  is it", "price"]],
    "oos_test": [],
    "test": [["alarm please", "alarm"]],
    "oos_train": [["who is that", "oos"]],
}


def write(path, document=DOCUMENT):
    text = json.dumps(document, indent=1)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["data_full.json", "data_oos_plus.json.gz"])
def test_each_part_has_its_utterances_out_of_scope(name, tmp_path):
    file = write(tmp_path / name)
    for path in (file, tmp_path):
        found = [(part, u.id, " ".join(u.tokens), u.intent) for part, u in stream_utterances(path)]
        assert found == [
            ("train", "train/1", "set an alarm", "alarm"),
            ("train", "train/2", "how much is it", "price"),
            ("train", "oos_train/1", "who is that", "oos"),
            ("validation", "val/1", "wake me", "alarm"),
            ("validation", "oos_val/1", "why not", "oos"),
            ("test", "test/1", "alarm please", "alarm"),
        ]
        assert {slot for _, u in stream_utterances(path) for slot in u.slots} == {"O"}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({**DOCUMENT, "val": None}, 'data_full.json: the list "val" is missing'),
        ({**DOCUMENT, "val": [["a", "b", "c"]]}, "utterance 1 of val: not a pair"),
        ({**DOCUMENT, "val": [["a", 3]]}, "utterance 1 of val: not a pair"),
        ({**DOCUMENT, "val": [["", "alarm"]]}, "utterance 1 of val"),
        ([DOCUMENT], 'the list "train" is missing'),
    ],
)
def test_a_broken_file_is_refused_by_place(document, told, tmp_path):
    one_sentence(told, list, stream_utterances(write(tmp_path / "data_full.json", document)))


def test_a_torn_file_and_a_folder_with_two_are_refused(tmp_path):
    file = write(tmp_path / "data_full.json")
    file.write_text(file.read_text()[:-20])
    one_sentence(r"data_full.json, line \d+: not JSON", list, stream_utterances(file))
    write(tmp_path / "data_small.json")
    with pytest.raises(UserError, match=r"holds data_full.json and .*data_small.json; name one"):
        list(stream_utterances(tmp_path))


def test_the_published_sizes(corpora):
    if not (corpora / "clinc150").exists():
        pytest.skip("CLINC150 is absent: see EDP_MX_DATA")
    found = [(part, u.intent) for part, u in stream_utterances(corpora / "clinc150")]
    assert Counter(part for part, _ in found) == {
        "train": 15_100,
        "validation": 3_100,
        "test": 5_500,
    }
    assert len({intent for _, intent in found}) == 151
    assert sum(intent == "oos" for _, intent in found) == 1_200
