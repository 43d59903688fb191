"""How a text becomes tokens where a model is asked: as its corpus was cut."""

import re

import pytest

from edp_mx.config import load_config
from edp_mx.data.config import DataConfig
from edp_mx.data.readers import read_utterances
from edp_mx.data.readers.assembly import tag_chunks
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.tokenization import PATTERNS
from edp_mx.runs.record import settings_of
from edp_mx.runtime.settings import SettingError

ASKED = "What's open at 18:30, for $24?"


@pytest.mark.parametrize(
    ("corpus", "tokenizer", "tokens"),
    [
        ("mine", "auto", ["What's", "open", "at", "18:30,", "for", "$24?"]),
        ("mine", "punctuation", ["What's", "open", "at", "18:30", ",", "for", "$24", "?"]),
        ("dstc8", "auto", ["What's", "open", "at", "18:30", ",", "for", "$24", "?"]),
        ("dstc8", "blanks", ["What's", "open", "at", "18:30,", "for", "$24?"]),
    ],
)
def test_a_text_is_cut_as_the_corpus_was(corpus, tokenizer, tokens):
    assert DataConfig(corpus=corpus, tokenizer=tokenizer).tokens_of(ASKED) == tokens
    assert DataConfig(corpus=corpus, tokenizer=tokenizer).tokens_of(" \t") == []


def test_a_no_break_space_stays_inside_a_token_wherever_a_text_is_cut():
    text, tokens = "wake me at 10\u00a0am", ["wake", "me", "at", "10\u00a0am"]
    assert DataConfig(corpus="mine").tokens_of(text) == tokens
    assert tag_chunks([(text, None)])[0] == tokens
    assert re.findall(PATTERNS["blanks"], text) == tokens
    assert DataConfig(corpus="mine").tokens_of("hello \u00a0 !") == ["hello", "!"]
    assert tag_chunks([("hello \u00a0 !", None)])[0] == ["hello", "!"]


@pytest.mark.parametrize("tokenizer", ["blanks", "punctuation"])
def test_a_model_of_two_texts_takes_sep_between_them_as_a_token(tokenizer):
    config = DataConfig(tokenizer=tokenizer, columns=ColumnsConfig(second="hypothesis"))
    assert config.tokens_of("It rains [SEP] no sun") == ["It", "rains", "[SEP]", "no", "sun"]
    assert "[SEP]" not in config.tokens_of("It rains [SEP]no")


def test_another_tokenizer_is_refused():
    with pytest.raises(SettingError, match="tokenizer must be one of auto, blanks, punctuation"):
        DataConfig(tokenizer="words")


def test_the_text_of_dstc8_is_cut_into_its_tokens(real_corpus):
    tokens = [list(each.tokens) for each in read_utterances(real_corpus("dstc8"))]
    cut = DataConfig(corpus="dstc8").tokens_of
    others = sum(cut(" ".join(each)) != each for each in tokens)
    assert len(tokens) > 100_000 and others < len(tokens) / 1000  # as in ".american"


def test_it_changes_no_record(tmp_path):
    (tmp_path / "a.yaml").write_text("training: {epochs: 3}")
    plain, other = (load_config(tmp_path / "a.yaml", given)
                    for given in ((), ["data.tokenizer=punctuation"]))  # fmt: skip
    assert settings_of(plain) == settings_of(other)
