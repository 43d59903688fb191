"""The words that stand for intents, from their names and from a file."""

import pytest
from support.refusals import one_sentence

from edp_mx.data.wordpiece import SPECIAL_PIECES, WordPiece
from edp_mx.errors import UserError
from edp_mx.models.label_names import label_pieces, label_words

INTENTS = ("PlayMusic", "alarm_set", "天気")


def test_words_are_those_of_the_names_unless_a_file_gives_others(tmp_path):
    file = tmp_path / "words.yaml"
    file.write_text("PlayMusic: [music, a song]\n天気: weather\n")
    assert label_words(INTENTS, None) == {
        "PlayMusic": ["play", "music"],
        "alarm_set": ["alarm", "set"],
        "天気": ["天気"],
    }
    assert label_words(INTENTS, str(file)) == {
        "PlayMusic": ["music", "a", "song"],
        "alarm_set": ["alarm", "set"],
        "天気": ["weather"],
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("PlayMusic: play\nPlay: music\n", "words.yaml, line 2: there is no intent 'Play'"),
        ("PlayMusic: 3\n", "line 1: the words of PlayMusic must be a text"),
        ("PlayMusic: [music, 3]\n", "line 1: the words of PlayMusic must be a text"),
        ("PlayMusic: ''\n", "line 1: the words of PlayMusic must be a text"),
        ("PlayMusic: a\nPlayMusic: b\n", "line 2: PlayMusic is set twice"),
        ("- PlayMusic\n", "words.yaml: .* a mapping"),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path, text, told):
    (tmp_path / "words.yaml").write_text(text)
    one_sentence(told, label_words, INTENTS, str(tmp_path / "words.yaml"))


def test_words_become_pieces_and_what_cannot_be_spelled_is_left_out():
    tokenizer = WordPiece((*SPECIAL_PIECES, "play", "##s", "music"))
    assert label_pieces({"a": ["plays", "zz"], "b": ["Music"]}, tokenizer) == [[5, 6], [7]]
    with pytest.raises(UserError, match="cannot spell 'zz', the words of the intent 'c'"):
        label_pieces({"c": ["zz"]}, tokenizer)
