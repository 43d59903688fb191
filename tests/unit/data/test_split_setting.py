"""`data.split`: the paper's, the corpus' own, or percentages."""

import pytest

from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.splits import PARTS
from edp_mx.runtime.settings import SettingError


@pytest.mark.parametrize("split, sizes", [("paper", (90, 10, 100)), ("80/10/10", (160, 20, 20))])
def test_the_parts_have_their_shares(split, sizes):
    corpus = load_corpus(DataConfig(corpus="health", size=200, split=split))
    found = [len(getattr(corpus, part)) for part in PARTS]
    assert all(abs(n - wanted) <= 2 for n, wanted in zip(found, sizes)), found
    assert sum(found) == 200


@pytest.mark.parametrize("split", ["mine", "80/20", "80/10/11", "80/-10/30", "", "0.8/0.1/0.1"])
def test_what_is_no_split_is_refused(split):
    with pytest.raises(SettingError, match="split must be paper, own, or three percentages"):
        DataConfig(split=split)
