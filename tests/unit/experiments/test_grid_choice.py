"""The grids beside Table 1: their best trial, the table's settings, and what all trials spend."""

import math

import pytest
from support.commands import ROOT, edp_mx
from support.records import changed, kept, record_of

from edp_mx.runs.records import records_below, value_of
from experiments.pages.grid_choice import HEADER, choice_of_settings, epsilon_of
from experiments.records import GRIDS
from experiments.tables.query import query

DELTA = 5e-4


def edp(ser, *, z=1e-4, c=1.0, tau=None, epochs=20, seed=0, **changes):
    settings = {"privacy.noise_multiplier": z, "privacy.max_grad_norm": c, "training.seed": seed,
                "privacy.micro_batches_per_worker": 8, "privacy.variant": "published",
                "training.epochs": epochs}  # fmt: skip
    if tau is not None:
        settings.update({"privacy.decay.kind": "exponential", "privacy.decay.rate": tau})
    record = record_of("atis", "clc", "edp_sgd", ser=ser, **{"delta": DELTA, **settings, **changes})
    log10 = summed([(z, tau or 0.0, epochs)])
    published = {"epsilon": None, "log10_epsilon": log10}
    return changed(record, epochs=epochs, as_published=published)


def summed(runs):
    """log10 ε of (z₀, τ, epochs) by summing each epoch's ρ = 1 / (2 z_t²)."""
    rho = math.fsum(
        1 / (2 * (z * math.exp(-tau * t)) ** 2) for z, tau, epochs in runs for t in range(epochs)
    )
    return epsilon_by_paper(rho)


def epsilon_by_paper(rho):
    return math.log10(rho + 2 * math.sqrt(rho * math.log(1 / DELTA)))


TRIALS = [edp(0.2, z=1e-2, epochs=4), edp(0.05, z=1e-3, epochs=4), edp(0.1, z=1e-2),
          edp(0.08, z=1e-3, c=0.5)]  # fmt: skip
TABLE = [edp(0.09), edp(0.11, seed=1)]


def row(trials, table):
    ((part),) = choice_of_settings(trials, query(table), has_pictures=True)
    (cells,) = part.tables[0].rows
    return dict(zip(HEADER, map(str, cells))), part


def test_the_best_of_the_longest_trials_stands_beside_the_table_s_settings():
    cells, part = row(TRIALS, TABLE)
    assert (cells["the best"], cells["trials"]) == ("C = 0.5, z₀ = 0.001", "4")
    assert list(cells.values())[5:8] == ["8.00", "C = 1, z₀ = 0.0001", "10.00 (9.00–11.00)"]
    alone, together = (cells[f"log₁₀ ε of {what}"] for what in ("one", "all trials"))
    assert alone == f"{summed([(1e-4, 0, 20)]):.1f}"
    runs = [(1e-2, 0, 4), (1e-3, 0, 4), (1e-2, 0, 20), (1e-3, 0, 20)]
    assert together == f"{summed(runs):.1f}"
    assert [name in part.pictures[0].panels[i] for i, name in enumerate(
        ["privacy.max_grad_norm", "privacy.noise_multiplier"])] == [True, True]  # fmt: skip


@pytest.mark.parametrize("tau", [None, 0.05, 2.0])
def test_what_trials_spend_adds_up(tau):
    runs = [(1e-3, tau or 0.0, 5), (2.0, tau or 0.0, 30), (50.0, 0.0, 1)]
    records = [edp(0.1, z=z, tau=tau and each, epochs=epochs) for z, each, epochs in runs]
    assert epsilon_of(records).log10 == pytest.approx(summed(runs), rel=1e-9)
    assert epsilon_of(records[2:]).log10 == pytest.approx(summed(runs[2:]), rel=1e-9)
    endless = {"epsilon": None, "log10_epsilon": None}
    assert epsilon_of([*records, changed(records[0], as_published=endless)]).is_infinite


@pytest.mark.parametrize(
    "trials, table",
    [
        ([], TABLE),
        (TRIALS, []),
        ([edp(0.1, tau=0.1)], TABLE),  # another method
        ([edp(0.1, **{"model.hidden_size": 8})], TABLE),
        ([record_of("atis", "clc", "none")], [record_of("atis", "clc", "none")]),
        ([changed(each, validation=None) for each in TRIALS], TABLE),
    ],
)
def test_what_table_1_does_not_have_is_not_compared(trials, table):
    assert choice_of_settings(trials, query(table)) == []


def test_both_commands_print_the_grids(tmp_path):
    records, grids = kept(tmp_path / "records", TABLE), kept(tmp_path / "grids", TRIALS)
    options = ["--grids", grids, "--out", tmp_path / "page.html"]
    edp_mx("experiments.report", records, *options)
    html, text = ((tmp_path / f"page.{end}").read_text() for end in ("html", "md"))
    assert "C = 0.5, z₀ = 0.001" in html and "C = 0.5, z₀ = 0.001" in text
    assert 'aria-label="ATIS, CLC, eDP-SGD, no decay, α ÷ largest: validation SER' in html
    assert f"--grids {grids}" in text
    dry = ["experiments.table1", "--corpora", "atis", "--models", "clc", "--methods", "edp_none",
           "--dry-run", "--records", ROOT / "results", "--runs", tmp_path / "runs",
           "--small", "--grids", grids, "--configs", ROOT / "configs"]  # fmt: skip
    said = edp_mx(*dry).stdout
    assert "The choice of settings" not in said  # the grid is of another model


@pytest.mark.parametrize("kind", ["none", "linear", "exponential"])
def test_what_is_kept_of_a_grid_spends_the_sum_of_its_epochs(kind):
    records = [
        each
        for each in records_below(ROOT / GRIDS)
        if each.settings.get("privacy.decay.kind", "none") == kind
    ]
    assert len(records) == 42 + 7
    rho = 0.0
    for record in records:
        z, tau = (value_of(record, f"privacy.{key}") for key in ("noise_multiplier", "decay.rate"))
        for t in range(record.epochs):
            decay = {"none": 1, "linear": 1 / (1 + tau * t), "exponential": math.exp(-tau * t)}
            rho += 1 / (2 * (z * decay[kind]) ** 2)
    assert epsilon_of(records).log10 == pytest.approx(epsilon_by_paper(rho), rel=1e-9)
