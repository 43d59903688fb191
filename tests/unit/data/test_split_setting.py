"""`data.split`: the paper's, the corpus' own, or percentages."""

import pytest
from support import cli
from support.refusals import one_sentence

from edp_mx.config import dump_config, load_config
from edp_mx.data.checking import check
from edp_mx.data.config import DataConfig, SplitConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.splits import PARTS
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.text import write_json_lines
from edp_mx.errors import UserError
from edp_mx.runs.record import settings_of
from edp_mx.runtime.settings import SettingError

SHARES = SplitConfig(train=0.8, validation=0.1, test=0.1)


@pytest.mark.parametrize(
    "split, sizes", [("paper", (90, 10, 100)), ("80/10/10", (160, 20, 20)), (SHARES, (160, 20, 20))]
)
def test_the_parts_have_their_shares(split, sizes):
    corpus = load_corpus(DataConfig(corpus="health", size=200, split=split))
    found = [len(getattr(corpus, part)) for part in PARTS]
    assert all(abs(n - wanted) <= 2 for n, wanted in zip(found, sizes)), found
    assert sum(found) == 200


@pytest.mark.parametrize("split", ["mine", "80/20", "80/10/11", "80/-10/30", "", "0.8/0.1/0.1"])
def test_what_is_no_split_is_refused(split):
    with pytest.raises(SettingError, match="split must be paper, own, or three percentages"):
        DataConfig(split=split)


def write_made(path, *, size, seed):
    made = make_utterances("health", size=size, seed=seed)
    write_json_lines(path, (utterance.to_json() for utterance in made))


@pytest.fixture
def files(tmp_path):
    """Two files of utterances, whose ids are the same: 60 to train on, 20 to test on."""
    for name, size, seed in (("mine", 60, 1), ("theirs", 20, 2)):
        write_made(tmp_path / f"{name}.jsonl", size=size, seed=seed)
    return tmp_path


@pytest.mark.parametrize("test", ["mine.jsonl", "../files/mine.jsonl"])
def test_a_file_of_the_corpus_is_no_test_part(files, test):
    folder = files / "files"
    folder.mkdir()
    (files / "mine.jsonl").rename(folder / "mine.jsonl")
    split = SplitConfig(test=str(folder / test))
    for path in (folder, folder / "mine.jsonl"):
        with pytest.raises(SettingError, match="because that is a file of the corpus"):
            DataConfig(corpus="mine", path=str(path), split=split)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_test_part_that_is_trained_on_is_warned_of(files, caplog, seed):
    write_made(files / "theirs.jsonl", size=20, seed=seed)  # the first twenty, or others
    split = SplitConfig(test=str(files / "theirs.jsonl"), validation=0.1)
    load_corpus(DataConfig(corpus="mine", path=str(files / "mine.jsonl"), split=split))
    warned = [r.getMessage() for r in caplog.records if "stand in the training part" in r.msg]
    assert len(warned) == (seed == 1) and all(" of 20 test utterances" in text for text in warned)


def test_a_file_is_the_test_part(files, monkeypatch):
    path = files / "mine.yaml"
    path.write_text(
        "data: {corpus: mine, path: mine.jsonl, split: {test: theirs.jsonl, validation: 0.1}}"
    )
    monkeypatch.chdir(files)
    config = load_config(path)
    corpus = load_corpus(config.data)
    assert list(corpus.test) == list(make_utterances("health", size=20, seed=2))
    assert sorted(u.tokens for u in (*corpus.train, *corpus.validation)) == sorted(
        u.tokens for u in make_utterances("health", size=60, seed=1)
    )
    assert [len(getattr(corpus, part)) for part in PARTS] == [54, 6, 20]
    again = files / "config.yaml"  # as a run writes it: with whole paths
    again.write_text(dump_config(config))
    monkeypatch.chdir("/")
    assert list(load_corpus(load_config(again).data).test) == list(corpus.test)
    kept = settings_of(config)  # a hash of a private file would confirm a guess
    assert kept["data.path"] == kept["data.split.test"] == "given"


def test_check_prints_the_sizes(files, capsys):
    path = files / "mine.yaml"
    path.write_text(
        f"data: {{corpus: mine, path: {files / 'mine.jsonl'}, "
        f"split: {{test: {files / 'theirs.jsonl'}}}}}\ntraining: {{batch_size: 19}}"
    )
    said = cli.printed(capsys, "train", path, "--check")
    assert said.startswith("mine: 57 training, 3 validation, 20 test utterances\n")
    with pytest.raises(UserError, match=r"do not exist: data.path \(nowhere\)"):
        cli.run("train", path, "--check", "--set", "data.path=nowhere")


@pytest.mark.parametrize(
    ("key", "name", "content", "words"),
    [
        ("vocabulary", "words.txt", "\n", "holds no word"),
        ("labels", "labels.json", '{"slots": ["call"]}', '"intents" is not a list of names'),
        ("labels", "labels.json", "{", "labels.json"),
    ],
)
def test_check_reads_the_lists(files, key, name, content, words):
    path = files / "mine.yaml"
    (files / name).write_text(content)
    path.write_text(
        f"data: {{corpus: mine, path: {files / 'mine.jsonl'}, "
        f"{key}: {{source: file, path: {files / name}}}}}"
    )
    one_sentence(words, cli.run, "train", path, "--check")


def test_a_mapping_that_is_no_split_is_refused_with_its_place(files):
    path = files / "a.yaml"
    for split, told in {
        "{train: 0.8, validation: 0.1, test: 0.2}": "line 1: data.split.test must name a file, or",
        "{train: 0.9, test: 0.1}": "data.split.test must name a file, or be a share",
        "{train: 0.8, test: a.jsonl}": "data.split.train must be left out, because test names",
        "{test: true}": "data.split.test: True is not a number or a text",
        "{tset: a.jsonl}": "data.split.tset: there is no such key; did you mean test",
        "5": "data.split: 5 is not a text or a mapping",
    }.items():
        path.write_text(f"data: {{split: {split}}}")
        one_sentence(told, load_config, path)


def test_a_test_file_beside_another_test_part_is_refused(files):
    split = SplitConfig(test=str(files / "theirs.jsonl"))
    with pytest.raises(UserError, match="a stand-in has no split of its own"):
        load_corpus(DataConfig(corpus="health", split=split))
    for part in ("train", "test"):
        (files / "own").mkdir(exist_ok=True)
        (files / "mine.jsonl").rename(files / "own" / f"{part}.jsonl")
        write_made(files / "mine.jsonl", size=60, seed=1)
    with pytest.raises(UserError, match="data.split.test: .*own has a test part of its own"):
        load_corpus(DataConfig(corpus="mine", path=str(files / "own"), split=split))
    missing = SplitConfig(test=str(files / "nowhere.jsonl"))
    with pytest.raises(UserError, match="nowhere.jsonl does not exist"):
        load_corpus(DataConfig(corpus="mine", path=str(files / "mine.jsonl"), split=missing))


@pytest.mark.parametrize("part", ["train", "valid", "test"])
def test_an_empty_part_is_refused_and_a_missing_test_part_is_not(part, tmp_path):
    for number, name in enumerate(("train", "valid", "test")):
        made = make_utterances("health", size=20, seed=number)
        lines = ({**u.to_json(), "id": f"{name}/{u.id}"} for u in made)
        write_json_lines(tmp_path / f"{name}.jsonl", lines)
    config = DataConfig(corpus="mine", path=str(tmp_path), split="own")
    (tmp_path / f"{part}.jsonl").write_text("\n")
    one_sentence(rf"{part}\.jsonl, the .* part, holds no utterance.*remove it", load_corpus, config)
    assert check(tmp_path).num_errors == 1
    if part == "test":
        (tmp_path / "test.jsonl").unlink()
        assert list(load_corpus(config).test) == list(make_utterances("health", size=20, seed=1))


def test_an_empty_file_is_no_test_part(files):
    (files / "mine.jsonl").rename(files / "train.jsonl")
    (files / "theirs.jsonl").rename(files / "valid.jsonl")
    (files / "empty").mkdir()
    (files / "empty" / "none.jsonl").touch()
    split = SplitConfig(test=str(files / "empty" / "none.jsonl"))
    config = DataConfig(corpus="mine", path=str(files), split=split)
    one_sentence(r"data\.split\.test: .*none\.jsonl holds no utterances", load_corpus, config)
