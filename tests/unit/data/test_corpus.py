"""Corpora by name: where they are looked for, how they are split, what is refused."""

import pytest
from support.jsonl import write_jsonl
from support.refusals import one_sentence
from support.utterances import ids_of, say

from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.sources import find_corpus
from edp_mx.data.splits import Split
from edp_mx.errors import UserError
from edp_mx.runtime.json_text import read_json


@pytest.fixture
def own_corpus(tmp_path):
    """Three JSON-lines files of 80, 10 and 30 utterances."""
    for part, count in (("train", 80), ("valid", 10), ("test", 30)):
        utterances = [say(f"{part} {i}", intent=str(i % 3)) for i in range(count)]
        write_jsonl(tmp_path / f"{part}.jsonl", utterances)
    return tmp_path


def test_own_split_and_paper_split(own_corpus):
    own = load_corpus(DataConfig(corpus="mine", path=str(own_corpus), split="own"))
    assert [len(p) for p in (own.train, own.validation, own.test)] == [80, 10, 30]
    assert {u.tokens[0] for u in own.test} == {"test"}
    paper = load_corpus(DataConfig(corpus="mine", path=str(own_corpus)))
    assert [len(p) for p in (paper.train, paper.validation, paper.test)] == [54, 6, 60]
    paper.split.write(own_corpus / "split.json", paper.utterances)
    ids = read_json(own_corpus / "split.json")
    assert ids == ids_of(paper.split, paper.utterances)
    assert ids["train"] == [u.id for u in paper.train]
    again = Split.from_json(ids, paper.utterances)
    assert again.test.tolist() == paper.split.test.tolist()


def test_a_subset_keeps_the_own_parts(own_corpus):
    config = DataConfig(corpus="mine", path=str(own_corpus), split="own", size=60)
    corpus = load_corpus(config)
    assert len(corpus.utterances) == 60
    assert {u.tokens[0] for u in corpus.validation} == {"valid"}
    assert corpus.utterances == load_corpus(config).utterances
    paper = load_corpus(DataConfig(corpus="mine", path=str(own_corpus), size=60))
    assert [len(p) for p in (paper.train, paper.validation, paper.test)] == [27, 3, 30]
    with pytest.raises(UserError, match=r"data\.size must be at most 120, .*, not 121"):
        load_corpus(DataConfig(corpus="mine", path=str(own_corpus), size=121))


def test_standins_are_made_in_memory_and_repeatable():
    config = DataConfig(corpus="health", size=400, split_seed=5)
    corpus = load_corpus(config)
    assert len(corpus.utterances) == 400
    assert corpus.utterances == load_corpus(config).utterances
    assert abs(len(corpus.train) - 180) <= 4
    sides = [{tuple(t.lower() for t in u.tokens) for u in p} for p in (corpus.train, corpus.test)]
    assert not sides[0] & sides[1]
    with pytest.raises(UserError, match="stand-in has no split of its own"):
        load_corpus(DataConfig(corpus="health", split="own"))


def test_where_a_public_corpus_is_looked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EDP_MX_DATA", raising=False)
    with pytest.raises(UserError, match=r"data.atis does not exist; run `edp-mx data fetch atis`"):
        find_corpus(DataConfig(corpus="atis"))
    (tmp_path / "data" / "atis").mkdir(parents=True)
    assert find_corpus(DataConfig(corpus="atis")).parts[-2:] == ("data", "atis")
    (tmp_path / "root" / "atis").mkdir(parents=True)
    monkeypatch.setenv("EDP_MX_DATA", str(tmp_path / "root"))
    assert find_corpus(DataConfig(corpus="atis")) == tmp_path / "root" / "atis"
    given = DataConfig(corpus="atis", path=str(tmp_path))
    assert find_corpus(given) == tmp_path
    one_sentence(r"data\.path", find_corpus, DataConfig(corpus="atis", path="nowhere"))
    with pytest.raises(UserError, match=r"data\.corpus must be one of atis, .*, not 'mine'"):
        find_corpus(DataConfig(corpus="mine"))


@pytest.mark.parametrize("users, size", [([""], 2), (["ann", "bo"], 40)])
def test_a_corpus_too_small_to_split_is_refused(tmp_path, users, size):
    utterances = [say(str(i), user=users[i % len(users)]) for i in range(size)]
    write_jsonl(tmp_path / "all.jsonl", utterances)
    one_sentence("too few utterances", load_corpus, DataConfig(corpus="mine", path=str(tmp_path)))
