"""Words and labels that count as public are not read from the corpus itself."""

import json

import pytest
from support.utterances import say

from edp_mx.data.config import DataConfig
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.sources import public_sample, refuse_private_lists
from edp_mx.data.vocabulary import VocabularyConfig
from edp_mx.errors import UserError


@pytest.mark.parametrize("path", ["{data}/atis", "{data}/atis/train", "{data}"])
def test_a_public_corpus_that_was_found_by_its_name_is_no_sample_of_itself(
    tmp_path, monkeypatch, path
):
    monkeypatch.setenv("EDP_MX_DATA", str(tmp_path))
    (tmp_path / "atis").mkdir()
    sample = VocabularyConfig("sample", path.format(data=tmp_path))
    with pytest.raises(UserError, match=r"data\.vocabulary\.path must not be .*with the corpus"):
        refuse_private_lists(DataConfig(corpus="atis", vocabulary=sample))
    other = VocabularyConfig("sample", str(tmp_path / "snips"))
    refuse_private_lists(DataConfig(corpus="atis", vocabulary=other))
    refuse_private_lists(DataConfig(corpus="health", vocabulary=sample))  # drawn, not read


def test_a_public_sample_is_read_by_the_corpus_own_columns(tmp_path):
    path = tmp_path / "public.jsonl"
    path.write_text(json.dumps({"said": "call mum", "BIO": ["O", "B-who"], "class": "call"}))
    columns = ColumnsConfig(text="said", slots="BIO", intent="class")
    (found,) = public_sample(DataConfig(corpus="mine", path="a", columns=columns), str(path))
    assert found.tokens == say("call mum").tokens and found.slots == ("O", "B-who")
