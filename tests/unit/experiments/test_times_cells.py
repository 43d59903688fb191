"""The rows of Table 2: their settings, and the record that keeps them."""

import json
from dataclasses import replace

import pytest
from support.commands import CONFIGS, ROOT, edp_mx
from support.times import times_row

from experiments.tables.times import METHODS, Times, TimesRequest, times_cells


def test_the_methods_of_each_row_differ_in_their_privacy_alone():
    cells = times_cells(TimesRequest(CONFIGS))
    assert len(cells) == 2 * 7 * 3
    for cell in cells:
        assert cell.error is None, cell.error
        configs = {name: trial.config for name, trial in cell.trials.items()}
        sgd = configs["sgd"]
        assert (sgd.data.corpus, sgd.model.family) == (cell.corpus, cell.family)
        assert sgd.training.batch_size % cell.workers == 0  # each has its share
        for config in configs.values():
            alike = replace(config, privacy=sgd.privacy, name=sgd.name)
            assert alike == replace(sgd, data=config.data)
            assert config.data == sgd.data
        clips = [(c.privacy.mechanism, c.privacy.clipping, c.privacy.sampler)
                 for c in configs.values()]  # fmt: skip
        assert clips == [("none", "loop", "shuffle"), ("edp_sgd", "loop", "shuffle"),
                         ("dp_sgd", "loop", "shuffle"), ("dp_sgd", "ghost", "shuffle")]  # fmt: skip
        million = 1_000_000 if cell.corpus in ("health", "communication", "video") else None
        assert sgd.data.size == million


def test_a_row_takes_the_place_of_an_older_one_and_the_file_is_whole(tmp_path):
    path = tmp_path / "table2.json"
    asked = TimesRequest(CONFIGS, ("atis",), ("clc",), workers=(1,))
    (small,), (other,) = (times_cells(asked._replace(steps=steps)) for steps in (2, 3))
    times = Times(path)
    assert not times.has(small)
    times.put(small, times_row(workers=2))  # another row's place
    times.put(small, times_row())
    assert times.has(small) and not times.has(other)
    times.put(other, times_row(batch_size=7))
    rows = json.loads(path.read_text())
    assert [(row["workers"], row["batch_size"]) for row in rows] == [(1, 7), (2, 32)]
    assert Times(path).has(other) and not Times(path).has(small)
    assert list(tmp_path.iterdir()) == [path]
    assert set(METHODS) == set(times_row()["seconds"])


@pytest.mark.parametrize(
    "options, message",
    [
        (["--out", "table.txt"], "--out is table.txt; name a file that ends in .md"),
        (["--workers", "0"], "--workers is 0; it must be 1 or more"),
        (["--steps", "0"], "--steps is 0"),
        (["--set", "privacy.mechanism=none"], "the table itself sets privacy.mechanism"),
        (["--configs", "docs"], "docs does not hold the shipped configurations"),
        (["--budget-seconds", "0"], "nothing could be measured"),
        (["--set", "training.batch_sice=3"], "did you mean batch_size"),
        (["--set", "data.embeddings.path=none.vec"], "there is no"),
    ],
)
def test_what_a_table_cannot_be_is_said(options, message, monkeypatch):
    monkeypatch.chdir(ROOT)
    said = edp_mx(
        "experiments.table2", "--corpora", "atis", "--models", "clc", *options, code=2
    ).stderr
    assert message in said, said
