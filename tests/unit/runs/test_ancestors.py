"""Whose utterances a model brings along from the runs that it descends from."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.refusals import one_sentence

from edp_mx.config import load_config
from edp_mx.data.corpus import load_corpus
from edp_mx.data.fingerprint import fingerprint
from edp_mx.data.labels import LabelsConfig
from edp_mx.data.lists import lines_as_texts
from edp_mx.data.origin import ORIGIN, noted_sources, write_origin
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary, VocabularyConfig
from edp_mx.dp.accounting.samplers import Sizes
from edp_mx.runs.ancestors import brought_along, origin_of_run
from edp_mx.runs.plan import plan_for
from edp_mx.runs.run_directory import RunDirectory

MINE, OTHER = "{corpus: mine, path: PLACE/mine.jsonl}", "{corpus: other, path: PLACE/other.jsonl}"
DRAWS = SimpleNamespace(sizes=Sizes(3200, 32, 1, 1.0, 100))


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with two corpora of 100 utterances."""
    monkeypatch.delenv("EDP_MX_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "other"):
        lines = [{"tokens": [f"{name}{i}"], "slots": ["O"], "intent": "x"} for i in range(100)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path


def settings_of(place, data, *, start=None, words="train", more="split: 80/10/10"):
    data = f"{data[:-1]}, {more}, vocabulary: {{source: {words}}}}}".replace("PLACE", str(place))
    model = f"start_from: {place / start}" if start else "family: clc"
    return f"data: {data}\nmodel: {{{model}}}\n"


def write_run(place, name, data, *, part="another", key=None, **rest):
    """Write what is looked at of a run; `part`: the fingerprint of its training part."""
    run = RunDirectory(place / name)
    run.path.mkdir(exist_ok=True)
    run.config.write_text(settings_of(place, data, **rest))
    this, *line = origin_of_run(run, load_config(run.config), SimpleNamespace(train=[]))
    read = this.corpora[0].with_part(part)
    this = replace(this, corpora=(replace(read, key=key or read.key),))
    write_origin(run.path / ORIGIN, [this, *line])


def configured(place, data=MINE, *overrides, start="first", words="checkpoint", **rest):
    path = place / "ours.yaml"
    path.write_text(settings_of(place, data, start=start, words=words, **rest))
    return load_config(path, overrides)


def brought(place, *arguments, **rest):
    """Whether the start, and the words, are from the same corpus."""
    config = configured(place, *arguments, **rest)
    return brought_along(config, load_corpus(config.data))[:2]


def test_words_that_a_run_took_from_the_same_corpus_do_not_become_public(place):
    """A trains without privacy and B starts from it: ε = 8 holds only if A's utterances differ."""
    (place / "labels.json").write_text(json.dumps({"slots": [], "intents": ["x"]}))
    said = [Utterance(("call", "xyzzy"), ("O", "O"), "x", "1")]
    labels = LabelsConfig("file", str(place / "labels.json"))
    vocabulary = Vocabulary.build(
        said, VocabularyConfig("checkpoint"), labels, start=Vocabulary.build(said)
    )
    assert "xyzzy" in vocabulary.words and vocabulary.is_public  # it cannot see whose they are
    write_run(place, "first", MINE)
    settings = ["privacy.mechanism=dp_sgd", "privacy.target_epsilon=8"]
    config = configured(place, MINE, *settings)
    corpus = load_corpus(config.data)

    def planned(assumed):
        given = configured(place, MINE, *settings, f"privacy.assume_public=[{assumed}]")
        return plan_for(given, corpus, vocabulary, DRAWS, 1, brought=brought_along(given, corpus))

    for assumed, needed in (("", "vocabulary"), ("start", "vocabulary"), ("vocabulary", "start")):
        one_sentence(rf"assume_public: \[{needed}\]", planned, assumed)
    assert set(planned("start, vocabulary").private_inputs) == {"start", "vocabulary"}
    write_run(place, "first", OTHER)
    assert planned("").private_inputs == ()


@pytest.mark.parametrize(
    ("words", "are_own"), [("train", True), ("sample", False), ("checkpoint", False)]
)
def test_words_are_private_if_a_run_took_them_from_its_training_part(place, words, are_own):
    write_run(place, "first", MINE, words=words)
    assert brought(place) == (True, are_own)
    assert brought(place, words="train") == (True, False)  # they are not those of the run
    assert brought(place, start=None) == (False, False)


def test_a_list_of_words_beside_an_origin_is_of_that_model(place):
    write_run(place, "first", MINE)
    words = place / "first" / "vocab.txt"
    words.touch()
    assert brought(place, start=None, words=f"file, path: {words}") == (False, True)
    words.rename(place / "vocab.txt")
    assert brought(place, start=None, words=f"file, path: {place / 'vocab.txt'}") == (False, False)


@pytest.mark.parametrize(("read", "is_own"), [("mine", True), ("other", False)])
def test_word_vectors_say_whose_text_they_were_trained_on(place, read, is_own):
    """A run that starts from such a model is told, too; words from elsewhere stay public."""
    vectors = place / "vectors.vec"
    config = configured(place, MINE, f"data.embeddings.path={vectors}", start=None, words="sample")
    corpus = load_corpus(config.data)
    unknown = ("word vectors", "vectors.vec, whose training text nobody here knows", None)
    assert brought_along(config, corpus) == (False, False, (unknown,))
    text = place / "text.txt"
    text.write_text("".join(f"{read}{i}\n" for i in range(50)))
    with noted_sources(vectors, [(str(text), lines_as_texts(text))], seed=0):
        pass
    own, words_are_own, ((kind, said, same),) = brought_along(config, corpus)
    assert (own, words_are_own, kind, same) == (is_own, False, "word vectors", is_own)
    which = "which is this corpus, or may be" if is_own else "declared other than this corpus"
    assert said == f"vectors.vec, trained on text without privacy, {which}"
    write_run(place, "first", OTHER, start=None)
    theirs = configured(place, OTHER, f"data.embeddings.path={vectors}", start=None, words="sample")
    first = RunDirectory(place / "first")
    line = origin_of_run(first, theirs, SimpleNamespace(train=[]))
    write_origin(first.path / ORIGIN, line)
    assert brought(place) == (is_own, False)


@pytest.mark.parametrize(("words", "are_own"), [("checkpoint", True), ("train", False)])
def test_a_detour_by_another_corpus_is_seen(place, words, are_own):
    """Weights go on from run to run, words only to those that take them over."""
    write_run(place, "first", MINE)
    write_run(place, "second", OTHER, start="first", words=words)
    assert brought(place, start="second") == (True, are_own)
    write_run(place, "first", "{corpus: third, path: PLACE/third.jsonl}")
    write_run(place, "second", OTHER, start="first", words=words)
    assert brought(place, start="second") == (False, False)


def test_a_run_that_is_gone_may_have_been_trained_on_anything(place):
    write_run(place, "second", OTHER, start="first", words="checkpoint")
    assert brought(place, start="second") == (True, True)
    (place / "first").mkdir()
    (place / "first" / "config.json").write_text("{}")  # a checkpoint in Hugging Face's layout
    write_run(place, "second", OTHER, start="first", words="checkpoint")
    assert brought(place, start="second") == (False, False)


def test_a_corpus_is_the_same_by_its_name_its_path_and_the_folder_that_holds_it(place, monkeypatch):
    """However it is split."""
    folder = place / "corpora" / "atis"
    folder.mkdir(parents=True)
    monkeypatch.setenv("EDP_MX_DATA", str(folder.parent))
    (place / "mine.jsonl").rename(folder / "train.jsonl")
    paths = [f"{{corpus: c{i}, path: {p}}}" for i, p in enumerate((folder, folder / "train.jsonl"))]
    for one in ("{corpus: atis}", *paths):
        write_run(place, "first", one, more="split_seed: 1")
        for other in ("{corpus: atis}", *paths):
            config = configured(place, other)
            assert brought_along(config, SimpleNamespace(train=[])).is_own, (one, other)
    assert brought(place, OTHER) == (False, False)


def test_the_name_decides_where_no_texts_can_be_compared(place):
    """The corpus lies elsewhere now; another training part may be another split of it."""
    ours = fingerprint(load_corpus(configured(place).data).train)
    for name, part, key, is_own in [
        ("mine", "another", None, True), ("merged", "another", None, False),
        ("mine", ours, "of another machine", True), ("merged", ours, "of another machine", False),
        ("merged", ours, None, True),
    ]:  # fmt: skip
        data = f"{{corpus: {name}, path: /elsewhere/{name}.jsonl}}"
        write_run(place, "first", data, part=part, key=key)
        assert brought(place) == (is_own, is_own), (name, part, key)


def test_pieces_from_the_folder_of_a_model_bring_what_that_was_trained_on(place):
    """And a tokenizer from elsewhere is no run that is gone."""
    write_run(place, "first", MINE)
    config = configured(place, MINE, f"data.vocabulary.path={place / 'first'}", start=None,
                        words="file")  # fmt: skip
    corpus = load_corpus(config.data)
    assert brought_along(config, corpus)[:2] == (False, True)
    write_run(place, "first", OTHER)
    assert brought_along(config, corpus)[:2] == (False, False)
    for name in ("config.yaml", ORIGIN):
        (place / "first" / name).unlink()
    said = ("words", "first, whose training text nobody here knows", None)
    assert brought_along(config, corpus) == (False, False, (said,))
