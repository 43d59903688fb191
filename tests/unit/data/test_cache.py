"""What is kept of a corpus is never stale, never torn, private, and saves time and memory."""

import json
import logging
import os
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.jsonl import write_jsonl
from support.refusals import one_sentence

from edp_mx.data import cache as cache_module
from edp_mx.data import corpus as corpus_module
from edp_mx.data.cache import MOST_DAYS, cache_folder, cache_key
from edp_mx.data.columnar_corpus import StoredUtterances
from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.synthetic import make_utterances

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own, for corpora of 100 utterances and more; returns its folder."""
    monkeypatch.setenv("EDP_MX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(corpus_module, "KEPT_FROM", 100)
    return tmp_path / "cache" / "corpora"


@pytest.fixture
def mine(tmp_path):
    """300 utterances in a file."""
    path = tmp_path / "mine.jsonl"
    write_jsonl(path, make_utterances("health", size=300, seed=1))
    return DataConfig(corpus="mine", path=str(path))


def entries(folder):
    return sorted(path for path in folder.iterdir() if path.suffix != ".lock")


def test_a_second_start_reads_no_text(cache, mine, monkeypatch):
    first = load_corpus(mine)
    monkeypatch.setattr(corpus_module, "stream_corpus", lambda _: pytest.fail("text was read"))
    again = load_corpus(mine)
    assert list(again.utterances) == list(first.utterances)
    assert len(entries(cache)) == len(list(cache.glob("*.lock"))) == 1


def test_every_changed_byte_is_seen(cache, mine):
    path = Path(mine.path)
    load_corpus(mine)
    content, times = path.read_bytes(), path.stat()
    for place in (content.index(b"health/000000") + 12, content.rindex(b"health/") + 12):
        changed = bytearray(content)
        changed[place] = ord("x")
        path.write_bytes(changed)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # same size, same time
        assert any("x" in u.id for u in load_corpus(mine).utterances)
    path.write_bytes(content)
    assert not any("x" in u.id for u in load_corpus(mine).utterances)
    assert len(entries(cache)) == 3


def test_each_setting_that_matters_has_its_own(cache, mine, tmp_path):
    settings = [{}, {"split_seed": 1}, {"size": 200}, {"corpus": "yours"}, {"layout": "json_lines"}]
    for number, setting in enumerate(settings, start=1):
        load_corpus(replace(mine, **setting))
        assert len(entries(cache)) == number
    load_corpus(replace(mine, max_tokens=3))  # has no say in the text
    other = tmp_path / "other.jsonl"
    other.write_bytes(Path(mine.path).read_bytes())
    load_corpus(replace(mine, path=str(other)))  # ids may begin with the file's name
    assert len(entries(cache)) == len(settings) + 1


def test_the_code_that_reads_has_a_say(tmp_path, monkeypatch):
    for folder in ("data/readers", "metrics"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(cache_module, "__file__", str(tmp_path / "data" / "cache.py"))
    for name in ("data/readers/one.py", "data/readers/grammar.yaml", "metrics/spans.py"):
        code = tmp_path / name
        code.write_text("1")
        before = cache_key("settings", [])
        code.write_text("2")
        assert cache_key("settings", []) != before
        code.write_text("1")
        assert cache_key("settings", []) == before


def test_the_cache_is_where_the_environment_says_or_nowhere(cache, mine, monkeypatch):
    assert cache_folder() == cache
    load_corpus(replace(mine, path=None, corpus="health", size=99))
    assert not cache.exists()  # a small corpus leaves nothing
    monkeypatch.setenv("EDP_MX_CACHE", "off")
    assert cache_folder() is None
    assert not isinstance(load_corpus(mine).utterances, StoredUtterances)
    assert not cache.exists()
    monkeypatch.delenv("EDP_MX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert cache_folder() == Path("/c/edp_mx/corpora")


def test_nobody_else_may_look(cache, mine):
    old = os.umask(0)
    try:
        load_corpus(mine)
    finally:
        os.umask(old)
    for path in (cache, *cache.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    cache.chmod(0o750)
    one_sentence("is open to others", load_corpus, mine)


@pytest.mark.parametrize("harm", ["cut", "flipped", "foreign"])
def test_a_torn_file_is_made_anew_with_a_sentence(harm, cache, mine, caplog):
    wanted = list(load_corpus(mine).utterances)
    (entry,) = entries(cache)
    whole = entry.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    entry.write_bytes({"cut": whole[:-1], "flipped": flipped, "foreign": b"theirs"}[harm])
    with caplog.at_level(logging.WARNING):
        assert list(load_corpus(mine).utterances) == wanted
    assert "is torn: the corpus is read anew" in caplog.text
    caplog.clear()
    assert list(load_corpus(mine).utterances) == wanted and not caplog.text
    assert entries(cache) == [entry] and entry.read_bytes() == whole


def test_what_a_killed_process_left_behind_is_removed(cache, mine):
    load_corpus(mine)
    (entry,) = entries(cache)
    entry.rename(cache / f".{entry.name[:32]}.left")
    load_corpus(mine)
    assert entries(cache) == [entry]


def test_a_corpus_that_changes_while_it_is_read_is_not_kept(cache, mine, monkeypatch):
    real, path = corpus_module.write_store, Path(mine.path)

    def changing(*arguments, **options):
        real(*arguments, **options)
        path.write_bytes(path.read_bytes().replace(b"health/000007", b"health/x00007"))

    monkeypatch.setattr(corpus_module, "write_store", changing)
    one_sentence("changed while it was read", load_corpus, mine)
    assert not entries(cache)


def test_a_broken_corpus_is_said_as_ever_and_not_kept(cache, mine):
    with open(mine.path, "a") as file:
        file.write('{"tokens": ["a"], "slots": [], "intent": "x"}\n')
    one_sentence(r"mine\.jsonl, line 301: 1 token but 0 slot tags", load_corpus, mine)
    assert not entries(cache)


def test_where_nothing_can_be_kept_the_corpus_is_held_in_memory(cache, mine, caplog):
    cache.parent.write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING):
        corpus = load_corpus(mine)
    assert isinstance(corpus.utterances, tuple) and len(corpus.utterances) == 300
    assert "cannot be kept" in caplog.text


# --------------------------------------------------------------------------------------- eviction
def aged(entry, days):
    then = time.time() - 86_400 * days
    os.utime(entry, (then, then))


def test_what_was_long_not_used_goes_and_its_readers_read_on(cache, mine):
    configs = [replace(mine, split_seed=seed) for seed in range(3)]
    load_corpus(configs[0])
    (used,) = entries(cache)
    corpus = load_corpus(configs[1])
    for entry in entries(cache):
        aged(entry, MOST_DAYS + 1)
    load_corpus(configs[0])  # a use
    load_corpus(configs[2])
    assert len(entries(cache)) == 2 and used in entries(cache)
    assert [u.id for u in corpus.utterances] == [f"health/{n:06d}" for n in range(300)]


def test_beyond_the_size_the_oldest_go_and_never_what_was_just_kept(cache, mine, monkeypatch):
    cache.mkdir(parents=True, mode=0o700)
    for age, name in enumerate("wxyz", start=1):
        (cache / name).write_bytes(bytes(10**6))
        aged(cache / name, age)
    monkeypatch.setattr(cache_module, "MOST_BYTES", 2.5e6)
    load_corpus(mine)
    assert [entry.name for entry in entries(cache)[1:]] == ["w", "x"]
    monkeypatch.setattr(cache_module, "MOST_BYTES", 10)
    (cache / ".other.aside").write_bytes(bytes(10**6))  # another process is writing it
    load_corpus(replace(mine, split_seed=1))
    assert len(entries(cache)) == 2 and entries(cache)[0].name == ".other.aside"


# ----------------------------------------------------------------------------- several processes
LOAD = """
import json, sys
from edp_mx.data import corpus
corpus.KEPT_FROM = 100
made = []
real = corpus.write_store
corpus.write_store = lambda *a, **o: (made.append(1), real(*a, **o))
found = corpus.load_corpus(corpus.DataConfig(corpus="health", size=8_000))
print(json.dumps([found.fingerprint(), len(made)]))
"""


def test_of_processes_that_start_together_one_reads(cache):
    environment = {**os.environ, "EDP_MX_CACHE": str(cache.parent), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", LOAD]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(3)
    ]
    answers = [json.loads(process.communicate(timeout=500)[0]) for process in processes]
    fingerprints, made = zip(*answers)
    assert len(set(fingerprints)) == 1 and sum(made) == 1
    assert len(entries(cache)) == 1
