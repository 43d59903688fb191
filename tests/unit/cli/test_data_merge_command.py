"""`edp-mx data merge`: several labelled corpora as one."""

import json

import pytest
from support.jsonl import write_jsonl

from edp_mx.cli import main
from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.readers import read_utterances
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.utterance import Utterance


def merged(out, *corpora, seed=0):
    assert main(["data", "merge", *map(str, corpora), "--seed", str(seed), "--out", str(out)]) == 0
    return read_utterances(out)


def labelled(utterances, label):
    """What the merged corpus has of a corpus, as a set."""
    return {
        Utterance(
            u.tokens,
            tuple(t if t == "O" else f"{t[:2]}{label}.{t[2:]}" for t in u.slots),
            f"{label}.{u.intent}",
        )
        for u in utterances
    }


@pytest.fixture
def mine(tmp_path):
    """Ten utterances of named users, one of them twice, and one of them again as another intent."""
    rows = [Utterance(("take", str(n)), ("O", "B-n"), "take", user=f"u{n}") for n in range(10)]
    again = Utterance(("take", "0"), ("O", "B-n"), "get", user="u0")
    path = tmp_path / "mine.v1.jsonl"
    write_jsonl(path, [*rows, rows[0], again])
    return path


def test_labels_bear_the_corpus_and_repeats_are_gone(tmp_path, mine, capsys):
    whole = merged(tmp_path / "out" / "all.jsonl.gz", mine, "health:100", "video:50")
    told = capsys.readouterr().out
    health = [u for u in whole if u.intent.startswith("health.")]
    video = [u for u in whole if u.intent.startswith("video.")]
    assert {u for u in whole if u.intent.startswith("mine.")} == labelled(
        read_utterances(mine), "mine"
    )
    assert set(health) <= labelled(make_utterances("health", size=2000, seed=0), "health")
    assert set(video) <= labelled(make_utterances("video", size=1000, seed=0), "video")
    assert (len(health), len(video)) == (100, 50) and len(whole) == 161 == len(set(whole))
    assert "161 utterances: mine 11, health 100, video 50" in told
    assert not any(u.user for u in whole)
    corpus = load_corpus(DataConfig(corpus="merged", path=str(tmp_path / "out" / "all.jsonl.gz")))
    assert len(corpus.train) > 0.4 * len(whole)


def test_a_file_may_have_a_colon_in_its_name(tmp_path, mine):
    named = mine.rename(tmp_path / "at 9:30.jsonl")
    assert len(merged(tmp_path / "all.jsonl", named)) == 11
    assert len(merged(tmp_path / "five.jsonl", f"{named}:5")) == 5


def test_the_same_seed_gives_the_same_bytes_and_a_subset_is_random(tmp_path, mine):
    names = [tmp_path / f"{i}.jsonl.gz" for i in range(3)]
    first, _, other = (
        merged(name, f"{mine}:5", "health:50", seed=seed) for name, seed in zip(names, (3, 3, 4))
    )
    assert names[0].read_bytes() == names[1].read_bytes() != names[2].read_bytes()
    kept, others = ({u for u in part if u.intent.startswith("mine")} for part in (first, other))
    assert len(kept) == len(others) == 5 and kept != others
    assert kept | others <= labelled(read_utterances(mine), "mine")
    order = [u.intent.partition(".")[0] for u in first]
    assert order != sorted(order) and order != sorted(order, reverse=True)  # shuffled


def test_public_corpora_are_found_by_name(tmp_path, corpora, monkeypatch):
    monkeypatch.setenv("EDP_MX_DATA", str(corpora))
    whole = merged(tmp_path / "a.jsonl", "atis:1000", "communication:200")
    atis = {u for u in whole if u.intent.startswith("atis.")}
    assert len(atis) == 1000 and len(whole) == 1200
    assert atis <= labelled(read_utterances(corpora / "atis"), "atis")
    first = json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0])
    assert sorted(first) == ["intent", "slots", "tokens"]


@pytest.mark.parametrize(
    ("arguments", "name", "message"),
    [
        (["nowhere"], "a.jsonl", "nowhere: no such file or folder, nor a corpus (atis, snips,"),
        (["MINE:12"], "a.jsonl", "11 distinct utterances, fewer than 12"),
        (["health:0"], "a.jsonl", "health:0: after the colon comes a number"),
        (["health:many"], "a.jsonl", "health:many: after the colon comes a number"),
        (["health:9", "health"], "a.jsonl", "health is the label of two corpora"),
        (["health:9"], "a.txt", "must end in .jsonl or .jsonl.gz"),
        (["health:9", "--seed", "-1"], "a.jsonl", "--seed is -1; it must be 0 or more"),
    ],
)
def test_what_cannot_be_merged_is_said_and_nothing_is_left(
    tmp_path, mine, capsys, arguments, name, message
):
    given = [argument.replace("MINE", str(mine)) for argument in arguments]
    assert main(["data", "merge", *given, "--out", str(tmp_path / "out" / name)]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_corpus_is_not_written_over_by_what_is_made_of_it(tmp_path, mine, capsys):
    before = mine.read_bytes()
    (tmp_path / "link.jsonl").symlink_to(mine)
    for source, out in ((mine, mine), (tmp_path, mine), (mine, tmp_path / "link.jsonl")):
        for action in (["merge"], ["text"], ["words", "--public"]):
            given = [*action[:1], source, *action[1:], "--out", out, "--force"]
            assert main(["data", *map(str, given)]) == 2
            assert f"--out is {out}, which is read as a part of {source}" in capsys.readouterr().err
            assert mine.read_bytes() == before
