"""Table 1 over made-up records: every column, missing cells, several seeds; the page parsed."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from support.commands import edp_mx
from support.documentation import ROOT
from support.records import attack_of, changed, kept, record_of

from edp_mx.runs.attack_files import ALIGNED
from edp_mx.runs.attack_records import collect_attacks
from edp_mx.runs.record import run_id
from edp_mx.runs.record_files import put_attacks, read_lines
from experiments.pages.table1 import HEADER, table1
from experiments.pages.table1_about import about
from experiments.tables.paper import TABLE_1
from experiments.tables.query import query

# Table 1 as printed: SER and AUC of SGD, then ΔSER, ΔMIA and log10 ε by decay.
PRINTED = """
clc atis 6.3 67.5 -12.9 -8.26 4.4 -10.6 -11.6 5.8 -11.9 -11.3 24.4
clc snips 13.0 70.6 -1.8 -2.5 3.1 -10.3 1.8 6.5 -6.7 4.4 17.4
clc nlu_eval 26.7 65.3 -0.7 -1.4 2.0 3.6 -7.6 2.7 1.4 -4.6 22.1
clc health 6.3 95.3 -1.2 -3.1 3.6 -2.5 -2.3 4.0 -2.7 -1.5 4.3
clc communication 5.4 87.7 0.3 -3.2 6.2 0.3 -5.7 7.5 0.5 -5.4 19.1
clc video 15.6 75.1 4.0 -2.4 4.8 4.4 -3.7 5.9 3.1 -6.0 19.5
bert atis 5.4 56.1 1.3 -2.5 5.9 -9.7 -5.2 6.3 -4.1 -5.8 11.1
bert snips 12.7 65.3 -21.5 -8.3 2.7 -20.3 -9.2 2.3 -7.1 -8.3 2.7
bert nlu_eval 24.1 63.6 -2.4 -7.6 2.2 4.6 -11.6 1.7 0.3 -9.5 2.3
bert health 6.2 90.6 3.2 -4.1 1.9 0.8 -2.9 2.8 1.2 -4.3 2.9
bert communication 5.6 88.4 0.3 -4.4 2.1 0.2 -3.4 2.8 0.7 -4.4 3.7
bert video 15.8 81.0 4.7 -10.1 1.9 4.6 -10.9 1.8 3.3 -8.2 2.3
"""
EDP = {"privacy.micro_batches_per_worker": 8, "privacy.noise_multiplier": 1e-4}
FREE = {**EDP, "privacy.variant": "published"}
PUBLISHED = {**FREE, "privacy.layer_scales_unit": "norm"}


def edp(seed, ser, log10=4.4, **changes):
    record = record_of("atis", "clc", "edp_sgd", ser=ser, **{"training.seed": seed, **changes})
    return changed(
        record,
        as_published={"epsilon": 10**log10, "log10_epsilon": log10},
        holds_if={"epsilon": 10**10.4, "log10_epsilon": 10.4, "conditions": ["α were so"]},
    )


def sgd(seed, ser, **changes):
    return record_of("atis", "clc", "none", ser=ser, **{"training.seed": seed, **changes})


def attack(record, name, title, auc, tpr):
    return attack_of(record, name, title, auc=auc, tpr=tpr)


def made():
    records = [sgd(0, 0.05), sgd(1, 0.07), edp(0, 0.054, **PUBLISHED), edp(1, 0.06, **PUBLISHED),
               record_of("atis", "clc", "dp_sgd", epsilon=8.0, ser=0.3)]  # fmt: skip
    attacks = [attack(records[0], "shadow", "shadow classifier", 0.60, 0.02),
               attack(records[2], "shadow", "shadow classifier", 0.57, 0.02),
               attack(records[2], "lira", ALIGNED, 0.75, 0.083)]  # fmt: skip
    return records, attacks


def row(records, attacks, method, corpus="atis", family="clc"):
    part = table1(query(records, attacks), [(family, corpus, method)])
    ((cells,),) = [table.rows for table in part.tables]
    return dict(zip(HEADER, map(str, cells))), part


@pytest.mark.parametrize("line", PRINTED.strip().splitlines(), ids=lambda line: line[:9])
def test_the_paper_s_numbers_are_as_printed(line):
    family, corpus, *numbers = line.split()
    found = TABLE_1[family][corpus]
    changes = [
        value for decay in ("none", "linear", "exponential") for value in found.changes[decay]
    ]
    assert [str(v) for v in (found.ser, found.auc)] == numbers[:2]
    assert changes == [float(n) for n in numbers[2:]]


def test_sgd_has_its_scores_and_the_paper_s():
    cells, _ = row(*made(), "sgd")
    assert list(cells.values()) == [
        "ATIS", "SGD", "6.00 (5.00–7.00) [6.3]", "60.0 (1 run) [67.5]", "–", "–", "∞", "∞",
        "–", "–", "1,000", "2"]  # fmt: skip


def test_the_others_are_relative_to_sgd():
    cells, part = row(*made(), "edp_none")
    assert list(cells.values()) == [
        "ATIS", "eDP-SGD, no decay, the paper's ε", "5.70 (5.40–6.00)", "57.0 (1 run)",
        # t(0.975, 2) · √((2 (1/6)² + 2 (0.3/5.7)²) / 2) · 0.95 · √(1/2 + 1/2)
        "-5.0 ±71.4 [-12.9]", "-5.0 [-8.26]", "4.4 [4.4]", "10.4ᵃ", "75.0 (1 run)",
        "8.3 (1 run)", "1,000", "2"]  # fmt: skip
    assert part.notes == ["ᵃ only if α were so; otherwise ∞"]
    said = {"epsilon": None, "log10_epsilon": None, "reason": "the noise is too small"}
    without = edp(0, 0.05, **PUBLISHED)
    cells, part = row([changed(without, holds=said, holds_if=said)], (), "edp_none")
    assert cells["log₁₀ ε that holds"] == "∞ᵃ"
    assert part.notes == ["ᵃ ∞: the noise is too small"]
    lower, higher = ({"epsilon": 10.0**x, "log10_epsilon": x, "conditions": ["so"]} for x in (1, 2))
    cells, _ = row([changed(without, holds=higher, holds_if=lower)], (), "edp_none")
    assert cells["log₁₀ ε that holds"] == "2.0"  # what holds, not what would
    exact, _ = row(*made(), "dp_sgd")
    assert exact["ΔSER %"].startswith("+400.0 ±") and exact["log₁₀ ε that holds"] == "0.9ᵇ"


def test_of_lira_s_variants_the_one_that_tells_members_best_counts():
    records, _ = made()
    attacks = [attack(records[0], "lira", "LiRA online", 0.55, 0.02)]
    better = attack(records[0], "lira", "LiRA offline", 0.7, 0.01)
    other = attack(records[0], "lira", "loss calibrated by shadows", 0.9, 0.5)
    found = {**attacks[0].success, **better.success, **other.success}
    attacks[0] = replace(attacks[0], success=found)
    cells, _ = row(records, attacks, "sgd")
    shown = ("70.0 (1 run, not aligned)", "2.0 (1 run, not aligned)")
    assert (cells["LiRA AUC %"], cells["LiRA TPR %"]) == shown
    best = attack(records[0], "lira", ALIGNED, 0.8, 0.03).success
    cells, _ = row(records, [replace(attacks[0], success={**found, **best})], "sgd")
    assert (cells["LiRA AUC %"], cells["LiRA TPR %"]) == ("80.0 (1 run)", "3.0 (1 run)")


def test_attacks_with_the_aligned_variant_and_without_are_not_mixed():
    records, _ = made()
    attacks = [attack(records[0], "lira", "LiRA offline", 0.9, 0.2),
               attack(records[1], "lira", ALIGNED, 0.7, 0.02)]  # fmt: skip
    cells, _ = row(records, attacks, "sgd")
    assert (cells["LiRA AUC %"], cells["LiRA TPR %"]) == ("70.0 (1 run)", "2.0 (1 run)")


def test_another_warm_start_is_another_setting_and_that_which_was_attacked_most_is_shown():
    start = "model.start_from"
    before = [sgd(seed, 0.1, **{start: "sha256:a"}) for seed in (0, 1, 2)]
    anew = sgd(0, 0.4, **{start: "sha256:b"})
    shadow = attack(anew, "shadow", "shadow classifier", 0.6, 0.02)
    cells, _ = row([*before, anew], (), "sgd")
    assert (cells["SER %"], cells["runs"]) == ("10.00 [6.3]", "3")  # the better on validation
    cells, _ = row([*before, anew], [shadow], "sgd")
    assert (cells["SER %"], cells["runs"]) == ("40.00 [6.3]", "1")
    assert cells["MIA-AUC %"] == "60.0 [67.5]"


def test_a_run_that_was_made_again_counts_beside_the_first_and_so_do_the_attacks_on_each():
    """Also where the first is better on the validation part and was attacked in more ways."""
    first, again = sgd(0, 0.05, validation=0.01), sgd(0, 0.06, validation=0.3)
    assert first.hash == again.hash and first.name == again.name
    other = edp(0, 0.033, **PUBLISHED)
    attacks = [attack(first, "shadow", "shadow classifier", 0.60, 0.02),
               attack(again, "shadow", "shadow classifier", 0.55, 0.02),
               attack(first, "lira", ALIGNED, 0.75, 0.083),
               attack(other, "shadow", "shadow classifier", 0.575, 0.02)]  # fmt: skip
    for both in ([first, again], [again, first]):
        shown, _ = row([*both, other], attacks, "sgd")
        assert (shown["SER %"], shown["runs"]) == ("5.50 (5.00–6.00) [6.3]", "2")
        assert shown["MIA-AUC %"] == "57.5 (55.0–60.0) [67.5]"
        assert shown["LiRA AUC %"] == "75.0 (1 run)"
        shown, _ = row([*both, other], attacks, "edp_none")
        # t(0.975, 1) · √(2 (1/11)²) · 0.6 · √(1/1 + 1/2), and √(2 (1/23)²) · 1
        assert shown["ΔSER %"] == "-40.0 [-12.9]"
        assert shown["ΔMIA %"] == "+0.0 [-8.26]"


def test_a_run_that_repeats_another_counts_once_with_the_attacks_on_it():
    first = sgd(0, 0.05)
    again = changed(first, date="2030-01-01")
    for attacked in (first, again):
        for both in ([first, again], [again, first]):
            found = attack(attacked, "shadow", "shadow classifier", 0.6, 0.02)
            shown, _ = row(both, [found], "sgd")
            assert (shown["MIA-AUC %"], shown["runs"]) == ("60.0 [67.5]", "1")
            old = attack(attacked, "lira", "LiRA offline", 0.9, 0.02)
            new = attack(first if attacked is again else again, "lira", ALIGNED, 0.8, 0.02)
            assert row(both, [old, new], "sgd")[0]["LiRA AUC %"] == "80.0"


def test_what_is_not_measured_is_a_dash_beside_the_paper_s_number():
    cells, _ = row(*made(), "edp_linear")
    assert cells["ΔSER %"] == "– [-10.6]" and cells["log₁₀ ε published"] == "– [5.8]"
    assert cells["SER %"] == cells["runs"] == cells["LiRA TPR %"] == "–"
    calibrated, _ = row(*made(), "edp_none_calibrated")
    assert set(list(calibrated.values())[2:]) == {"–"}
    assert row(*made(), "sgd", corpus="dstc8")[0]["corpus"] == "DSTC8"
    without, _ = row(made()[0][2:], (), "edp_none")
    assert without["ΔSER %"] == "– [-12.9]" and without["SER %"].startswith("5.70")


def test_of_several_settings_the_best_on_validation_and_of_several_sizes_that_of_most_methods():
    tried = [
        sgd(0, 0.05, validation=0.2),
        sgd(0, 0.09, validation=0.1, **{"training.epochs": 3}),
        sgd(0, 0.01, n=500),
        edp(0, 0.02, n=500, **PUBLISHED),
        edp(0, 0.01, n=5000, **EDP),
    ]
    assert row(tried, (), "sgd")[0]["SER %"] == "1.00 [6.3]"
    assert row(tried, (), "edp_none")[0]["SER %"] == "2.00"
    assert row(tried, (), "edp_none_calibrated")[0]["SER %"] == "–"
    without = [each for each in tried if each.mechanism == "none"]
    assert row(without, (), "sgd")[0]["SER %"] == "9.00 [6.3]"  # the largest


def test_of_the_committed_records_other_tasks_and_wider_encoders_are_no_rows():
    records = list(read_lines(ROOT / "results" / "runs.jsonl"))
    assert {"banking77", "atis"} <= {record.corpus for record in records}
    shown = query(records)
    assert "banking77" not in {corpus for _, corpus, _ in shown}
    berts = [entry for key, entry in shown.items() if key[0] == "bert"]
    widths = {r.settings.get("model.hidden_size", 312) for each in berts for r in each.records}
    assert widths == {128} and ("bert", "atis", "dp_sgd") in shown


def test_sgd_is_shown_with_the_settings_of_the_others():
    larger = {"model.hidden_size": 128}
    tried = [
        sgd(0, 0.04, validation=0.04, **larger),
        sgd(0, 0.05, validation=0.05),
        edp(0, 0.06, **PUBLISHED),
    ]
    assert row(tried, (), "sgd")[0]["SER %"] == "5.00 [6.3]"
    tried += [edp(0, 0.03, **{**EDP, **larger}), edp(0, 0.07, **{**PUBLISHED, **larger})]
    assert row(tried, (), "sgd")[0]["SER %"] == "4.00 [6.3]"


def test_an_attack_on_other_utterances_than_usual_stands_beside_the_usual_one(tmp_path):
    record = sgd(0, 0.05)
    usual = attack(record, "shadow", "shadow classifier", 0.60, 0.02)
    few = replace(attack(record, "shadow", "shadow classifier", 0.90, 0.5), chosen={"size": 40})
    put_attacks(tmp_path / "attacks.jsonl", [usual])
    put_attacks(tmp_path / "attacks.jsonl", [few])
    kept_ones = list(collect_attacks([tmp_path]))
    assert sorted(each.chosen.get("size", 0) for each in kept_ones) == [0, 40]
    assert row([record], kept_ones, "sgd")[0]["MIA-AUC %"] == "60.0 [67.5]"


def test_the_interval_is_that_of_the_seeds_of_a_corpus():
    """A seed counts once however often it ran, and other corpora, of another spread, do not."""
    records, attacks = made()
    alone, _ = row(records, attacks, "edp_none")
    again = [replace(sgd(0, 0.051), date="2026-03-01"), replace(sgd(0, 0.049), date="2026-03-02")]
    snips = [record_of("snips", "clc", "none", ser=ser, **{"training.seed": seed})
             for seed, ser in enumerate((0.01, 0.9))]  # fmt: skip
    more, _ = row([*records, *again, *snips], attacks, "edp_none")
    assert alone["ΔSER %"].startswith("-5.0 ±71.4")  # as above, of a ratio of 0.95
    assert more["ΔSER %"] == alone["ΔSER %"]
    without_seed_1 = [records[0], *again, records[2]]
    assert "±" not in row(without_seed_1, attacks, "edp_none")[0]["ΔSER %"]


def test_a_change_is_relative_to_sgd_from_the_same_start_or_a_dash():
    one, other = ({"model.checkpoint": f"sha256:{start}"} for start in ("aa", "bb"))
    tried = [sgd(0, 0.05, **one), edp(0, 0.06, **PUBLISHED, **one), edp(0, 0.07, **FREE, **other)]
    assert row(tried, (), "edp_none")[0]["ΔSER %"].startswith("+20.0")
    apart, _ = row(tried, (), "edp_none_free")
    assert apart["SER %"] == "7.00" and apart["ΔSER %"] == "–"
    tried[1] = record_of("atis", "clc", "dp_sgd", epsilon=8.0, ser=0.3, **other)
    assert row(tried, (), "dp_sgd")[0]["ΔSER %"].startswith("+500.0")  # by a recipe of its own


@pytest.mark.parametrize(
    "record, method",
    [
        (sgd(0, 0.1), "sgd"),
        (edp(0, 0.1, **PUBLISHED), "edp_none"),
        (edp(0, 0.1, log10=4.6, **PUBLISHED), None),  # not the ε of the paper's row
        (edp(0, 0.1, log10=9.0, **FREE), "edp_none_free"),
        (edp(0, 0.1, **EDP), "edp_none_calibrated"),
        (edp(0, 0.1, log10=5.8, **PUBLISHED, **{"privacy.decay.kind": "linear"}), "edp_linear"),
        (edp(0, 0.1, **{**PUBLISHED, "privacy.micro_batches_per_worker": 2}), None),  # N = 2
        (
            edp(0, 0.1, **{**PUBLISHED, "privacy.micro_batches_per_worker": 4}, workers=2),
            "edp_none",
        ),
        (edp(0, 0.1, **{"privacy.micro_batches_per_worker": 8, "privacy.target_epsilon": 8}), None),
        (record_of(epsilon=8.0), "dp_sgd"),
        (record_of(epsilon=3.0), None),
        (record_of(epsilon=8.0, **{"privacy.unit": "user"}), None),
    ],
)
def test_each_record_counts_for_its_method_alone(record, method):
    found = {key[2] for key in query([record])}
    assert found == ({method} if method else set())


class Page(HTMLParser):
    """What a page has: its tags with attributes, the texts of its cells, what is left open."""

    VOID = ("meta", "img", "br", "link")

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.rows = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(tmp_path):
    records, attacks = made()
    renamed = {run_id(each): run_id(changed(each, name="<b>&")) for each in records}
    folder = kept(tmp_path / "records", [changed(each, name="<b>&") for each in records])
    put_attacks(
        folder / "attacks.jsonl",
        [changed(each, name="<b>&", run=renamed[each.run]) for each in attacks],
    )
    out = tmp_path / "report.html"
    edp_mx("experiments.report", folder, "--out", out)
    text = out.read_text()
    page = Page(text)
    assert page.open == [] and "<b>" not in text and "&lt;b&gt;&amp;" in text
    rows = [[" ".join(cell.split()) for cell in line] for line in page.rows]
    assert ["corpus, method", *HEADER[2:]] in rows
    (found,) = (line for line in rows if line[0] == "ATIS eDP-SGD, no decay, the paper's ε" and
                line[1].startswith("5.70"))  # fmt: skip
    assert found[2:8] == ["57.0 (1 run)", "-5.0 ±71.4 [-12.9]", "-5.0 [-8.26]", "4.4 [4.4]",
                          "10.4a", "75.0 (1 run)"]  # fmt: skip
    (target,) = (attrs["href"] for tag, attrs in page.tags if attrs.get("aria-label") == "note a"
                 and attrs["href"].startswith("#note-2-"))  # fmt: skip
    assert target[1:] in [attrs.get("id") for _, attrs in page.tags]
    assert not re.search(r"(?:src|href)=.https?:|@import|url\((?!#)", text)
    pictures = [attrs for tag, attrs in page.tags if tag == "svg"]
    assert len(pictures) > 5 and all(attrs["aria-label"] for attrs in pictures)
    assert (
        "meta",
        {"name": "viewport", "content": "width=device-width, initial-scale=1"},
    ) in page.tags
    assert (
        "prefers-color-scheme: dark" in text
        and "other models trained on the same data" in text.lower()
    )
    inside = [i for i, (tag, _) in enumerate(page.tags) if tag == "table"]
    assert all(page.tags[i - 1][1]["class"] == "wide" for i in inside)
    markdown = (tmp_path / "report.md").read_text()
    assert "-5.0 ±71.4 [-12.9]" in markdown and "python -m experiments.report" in markdown
    only_drawn = "Membership inference against ε"
    assert only_drawn in text and only_drawn not in markdown


def test_a_user_s_page_has_the_runs_and_the_attacks_without_the_paper_s_tables(tmp_path):
    records, attacks = made()
    folder = kept(tmp_path / "records", records)
    put_attacks(folder / "attacks.jsonl", attacks)
    edp_mx("report", folder, "--out", tmp_path / "page.html")
    text = (tmp_path / "page.md").read_text()
    attacked = text.partition("### Every attack")[2].partition("##")[0]
    rows = [[cell.strip() for cell in line.split("|")[2:6]] for line in attacked.splitlines()]
    assert ["lira", ALIGNED, "75.0", "8.3"] in rows
    assert "### Every run" in text and "Table 1" not in text
    assert f"edp-mx report {folder} --out" in text


def test_a_page_of_nothing_or_under_another_name_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    said = edp_mx(
        "experiments.report", tmp_path / "empty", "--out", tmp_path / "a.html", code=2
    ).stderr
    assert "has no record of a finished run" in said
    assert (
        "ends in .html" in edp_mx("experiments.report", "--out", tmp_path / "a.pdf", code=2).stderr
    )


def test_the_page_begins_with_what_it_is():
    small = {"model.hidden_size": 64, "data.embeddings.dimension": 64}
    records = [
        sgd(0, 0.05, **small),
        edp(0, 0.06, **PUBLISHED, **small),
        edp(0, 0.06, log10=9.0, **{**FREE, **small, "privacy.noise_multiplier": 2e-4}),
        record_of("health", "bert", "none", n=4500, **{"model.checkpoint": "sha256:ab"}),
        record_of("health", "bert", "dp_sgd", n=4500, **{"model.hidden_size": 7}),
    ]
    (part,) = about(query(records))
    said = "\n".join(part.points)
    assert "CLC: 2 layers of 64, 64-wide word vectors drawn at random; the paper's: 2 lay" in said
    assert "BERT: 4 layers, 312 wide, from a checkpoint; the paper's: 4 layers" in said
    assert "7 wide" not in said  # DP-SGD's recipe has models of its own
    assert "ATIS: 1,000 training utterances; the paper: the same" in said
    assert "Health: 4,500 training utterances; sentences from a grammar" in said
    assert "Epochs: ATIS (CLC) 10, Health (BERT) 10." in said
    assert "Runs: 5 of 5 rows are of one run." in said
    assert "z₀ is 0.0001 at the paper's ε" in said and "z₀ is 0.0002 at the other rows" in said
    assert about({}) == [] and "still improves" not in said
    columns = {"epoch": (1.0, 2.0), "validation_ser": (0.1, 0.08)}
    (part,) = about(query([replace(records[0], by_epoch=columns)]))
    assert "its SER on validation fell by 20 % on ATIS (CLC)." in "\n".join(part.points)
