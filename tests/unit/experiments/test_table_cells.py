"""The cells of Table 1: their settings, and which record answers for one."""

import math
from dataclasses import replace
from itertools import product

import pytest
from support.commands import CONFIGS, ROOT
from support.records import changed, record_of
from support.refusals import one_sentence

from edp_mx.runs.attack_records import collect_attacks
from edp_mx.runs.record import RESULTS_VERSION, run_id, settings_hash, settings_of
from edp_mx.runs.records import collect
from experiments.tables.cells import Request, cells_of, find_for_cell
from experiments.tables.fill import look_up, problems
from experiments.tables.methods import CORPORA, FAMILIES, METHODS, method_of
from experiments.tables.paper import DECAY_RATES, TABLE_1
from experiments.tables.query import query
from experiments.tables.trainings import Trainings

RECORDS = ROOT / "results"


def cell(method="edp_linear", corpus="atis", family="clc", **changes):
    (found,) = cells_of(Request(CONFIGS, (corpus,), (family,), (method,), **changes))
    assert found.trial.error is None, found.trial.error
    return found


def left_by(one, workers=1):
    """The record that its run would leave."""
    config = one.trial.config
    settings, privacy = settings_of(config), config.privacy
    made = record_of(one.corpus, one.family, privacy.mechanism, workers=workers)
    if privacy.mechanism == "edp_sgd":
        made = changed(made, as_published=published(one.corpus, config))
    return changed(made, settings=settings, results_version=RESULTS_VERSION,
                   hash=settings_hash(settings, workers))  # fmt: skip


def published(corpus, config):
    """The paper's count, term by term."""
    z, decay, target = config.privacy.noise_multiplier, config.privacy.decay, -math.log(5e-5)
    if corpus in ("atis", "snips", "nlu_eval", "dstc8"):
        target = -math.log(5e-4)
    factor = {"none": lambda t: 1.0, "linear": lambda t: 1 + decay.rate * t,
              "exponential": lambda t: math.exp(decay.rate * t)}[decay.kind]  # fmt: skip
    rho = sum((factor(t) / z) ** 2 / 2 for t in range(config.training.epochs))
    epsilon = rho + 2 * math.sqrt(rho * target)
    return {"epsilon": epsilon, "log10_epsilon": math.log10(epsilon)}


@pytest.mark.parametrize("is_small", [False, True])
def test_every_cell_has_settings_that_are_sound_and_is_recognised_by_its_record(is_small):
    cells = cells_of(Request(CONFIGS, seeds=(0, 3), is_small=is_small))
    assert len(cells) == 2 * len(FAMILIES) * (len(CORPORA) * len(METHODS) - 3)
    assert [c.seed for c in cells] == sorted(c.seed for c in cells)  # the first seed comes first
    hashes = set()
    for each in cells:
        config = each.trial.config
        assert each.trial.error is None
        assert (config.data.corpus, config.model.family) == (each.corpus, each.family)
        assert config.training.seed == each.seed
        assert method_of(left_by(each)) == each.method
        assert config.privacy.micro_batches_per_worker == (8 if METHODS[each.method].decay else 1)
        hashes.add(each.trial.hash)
    assert len(hashes) == len(cells)


def test_small_models_are_small_but_for_what_a_recipe_says():
    for family, corpus in product(FAMILIES, CORPORA):
        for method in ("sgd", "edp_linear_free"):
            small, full = (
                cell(method, corpus, family, is_small=is_small).trial.config
                for is_small in (True, False)
            )
            assert small.model.hidden_size < full.model.hidden_size / 2
            assert small.training.epochs <= full.training.epochs
            assert small.data == replace(full.data, embeddings=small.data.embeddings)
            assert small.privacy == replace(full.privacy, clipping="ghost")
    for corpus in CORPORA:
        small, full = (
            cell("dp_sgd", corpus, is_small=is_small).trial.config for is_small in (True, False)
        )
        assert small == full


def test_what_is_calibrated_keeps_the_paper_s_noise_and_takes_nothing_from_the_data():
    published, calibrated = (
        cell(name).trial.config for name in ("edp_none_free", "edp_none_calibrated")
    )
    assert (published.privacy.variant, calibrated.privacy.variant) == ("published", "calibrated")
    assert calibrated.privacy.layer_scales == "ones"
    assert calibrated.privacy.noise_multiplier == published.privacy.noise_multiplier
    assert calibrated.training == published.training


@pytest.mark.parametrize("family", FAMILIES)
def test_the_papers_rows_have_the_paper_s_epsilon_at_the_epochs_that_are_trained(family):
    """Also where that takes less noise than the paper searched: T is smaller here."""
    request = Request(CONFIGS, families=(family,), methods=tuple(METHODS)[1:4], is_small=True)
    cells = cells_of(request)
    assert len(cells) == 18
    for each in cells:
        config = each.trial.config
        found = published(each.corpus, config)["log10_epsilon"]
        paper = TABLE_1[family][each.corpus].changes[METHODS[each.method].decay].log10_epsilon
        assert found == pytest.approx(paper, abs=0.01)
        assert config.privacy.decay.rate in DECAY_RATES[METHODS[each.method].decay]
        chosen = (
            config.privacy.variant,
            config.privacy.layer_scales,
            config.privacy.layer_scales_unit,
        )
        assert chosen == ("published", "first_batch", "norm")


@pytest.mark.parametrize("workers, trained", list(product((1, 2), (1, 4, 8))))
def test_the_paper_s_8_micro_batches_may_be_shared_by_any_number_of_workers(workers, trained):
    record = left_by(cell(workers=trained), trained)
    found = find_for_cell([record], cell(workers=workers).trial.config, workers=workers)
    assert found == [record]
    for other in (cell("edp_none"), cell(seeds=(1,)), cell(overrides=["training.epochs=7"])):
        assert find_for_cell([record], other.trial.config, workers=1) == []


def test_all_runs_with_the_same_settings_answer_for_a_cell():
    one = cell()
    both = [left_by(one), changed(left_by(one), date="2030-01-01")]
    assert find_for_cell(both, one.trial.config, workers=1) == both
    by_loop = left_by(cell(overrides=["privacy.clipping=loop"]))
    assert find_for_cell([*both, by_loop], one.trial.config, workers=1) == [by_loop, *both]


def test_a_record_answers_for_a_cell_whose_checkpoint_is_not_on_this_machine():
    as_then = {"family": "bert", "overrides": ["training.batch_size=1800"]}
    one = cell("dp_sgd", **as_then)
    kept = [found.record for found in collect([RECORDS])]
    assert not one.trial.config.model.start_from.startswith("/")
    found = find_for_cell(kept, one.trial.config, workers=1)
    # Both of seed 0, from two warm starts of which none is here, answer.
    names = {each.name for each in found}
    assert names == {"atis_bert_heads_epsilon_8", "atis_bert_heads_epsilon_8_seed_0"}
    other = cell("dp_sgd", seeds=(9,), **as_then)
    assert find_for_cell(kept, other.trial.config, workers=1) == []
    old = [changed(each, results_version=RESULTS_VERSION - 1) for each in found]
    assert find_for_cell(old, one.trial.config, workers=1) == []


def test_a_cell_that_lacks_a_checkpoint_is_listed_and_not_trained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = [cell("sgd"), cell("sgd", family="bert")]
    look_up(cells, Trainings(tmp_path, workers=1, kept=tmp_path, is_read_only=True))
    assert [each.trial.is_open for each in cells] == [True, False]
    waits, lacks = problems(cells)
    assert waits == "atis_clc (sgd), seed 0: not trained yet"
    assert "needs missing files (model.checkpoint: runs/pretrain_public/model)" in lacks


def test_cells_that_lack_the_same_share_a_line():
    request = Request(CONFIGS, ("atis", "health", "video"), ("clc",), ("sgd", "edp_none"), (0, 1))
    cells = cells_of(request)
    for each in cells:
        each.trial.records = [{}] if each.corpus == "atis" and each.seed == 0 else []
    cells[2].trial.error = "exit code 2"  # SGD on health, seed 0
    assert problems(cells) == [
        "health_clc (sgd), seed 0: exit code 2",
        "health_clc (edp_none), seed 0: not trained yet",
        "video_clc (sgd, edp_none), seed 0: not trained yet",
        "atis_clc, health_clc, video_clc (sgd, edp_none), seed 1: not trained yet",
    ]
    cells[2].trial.error = None
    cells[0].trial.records, cells[1].trial.records = [], []
    assert problems(cells) == [
        "atis_clc, health_clc, video_clc (sgd, edp_none), seeds 0, 1: not trained yet"
    ]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"workers": 3}, "3 workers cannot share the paper's N = 8"),
        ({"configs": ROOT / "docs"}, "does not hold the shipped configurations"),
        ({"overrides": ["privacy.variant=calibrated"]}, "the table itself sets privacy.variant"),
        ({"overrides": ["privacy.decay.rate=0.1"]}, "the table itself sets privacy.decay.rate"),
        ({"overrides": ["training.epochs"]}, "write it as key.path=value"),
    ],
)
def test_what_a_table_cannot_be_is_said(changes, message):
    one_sentence(message, cells_of, Request(**{"configs": CONFIGS, **changes}))


def test_sgd_of_the_heads_alone_is_not_the_table_s_sgd():
    whole, heads = (
        record_of("snips", "bert", "none", **{"model.trained": trained})
        for trained in ("all", "heads")
    )
    assert (method_of(whole), method_of(heads)) == ("sgd", None)


def test_runs_that_were_made_again_have_records_beside_each_other():
    """97 of those in results; ATIS was trained by SGD with seed 0 three times."""
    found = collect([RECORDS])
    by_id = {run_id(each.record): each for each in found}
    hashes = {each.record.hash for each in found}
    assert len(by_id) == len(found) and len(found) - len(hashes) >= 97
    attacks = collect_attacks([RECORDS])
    lost = {each.attacked_run for each in attacks if each.run not in by_id}
    assert lost == {"71894ba224a8194b"}  # its record was removed long before
    made = [each.record for each in found if each.record.hash == "0833bedf68198c1d"]
    entry = query(made, attacks)["clc", "atis", "sgd"]
    assert entry.ser == pytest.approx((0.058505, 0.058269, 0.058897), abs=1e-6)
    assert entry.auc == pytest.approx((0.55971, 0.55542, 0.56293), abs=1e-5)
    assert len(entry.records) == entry.attacked == 3
