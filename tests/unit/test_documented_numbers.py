"""Every measured number of a page is that of the records which a comment beside it names.

`<!-- records: NAME, NAME -->` stands in a paragraph, or on top of a table, where each row may have
names of its own, after a `|` or on a line. A name is the beginning of that of a record in
results/runs.jsonl, or a page of results/: with `#WORD+WORD` only its lines with these words, in
the line or in the heading above it, blanks left out, for the columns that have the first of them.
"""

import re

import pytest
from support.documentation import ROOT

from edp_mx.runs.record import run_id
from edp_mx.runs.record_files import name_of, read_lines

PAGES = ("README", "docs/index", "docs/recipe", "docs/without-encoder", "docs/attacks", "docs/bert",
         "docs/own-corpus", "docs/generation", "docs/tables", "docs/tasks", "docs/mechanisms",
         "docs/export", "docs/sweeps", "docs/security")  # fmt: skip
RUNS, ATTACKS = (
    list(read_lines(ROOT / "results" / f"{name}.jsonl")) for name in ("runs", "attacks")
)
IDS = {run_id(record) for record in RUNS}
COMMENT = re.compile(r"<!-- records:\s(.*?)\s*-->\n?", re.S)
# Settings stand in code; versions, and the rate of false alarms that is asked for, are given.
NOT_MEASURED = re.compile(
    r"^```.*?^```|`[^`]*`|\]\([^)]*\)|Python 3\S+|section \S+|(?:of|at) 1 %", re.M | re.S
)
NUMBER = re.compile(r"(?<![\w.^-])(\d[\d,]*(?:\.(\d+))?)(?!\w|[.,]\d)(?: ?(%|mn|bn))?")
SCORES = re.compile(r"SER|intents|accuracy|F1|AUC|TPR|exposure|BLEU|ROUGE|slot errors|perplexity")
KEYS = (("SER", "ser"), ("intents right", "intent_accuracy"), ("F1", "slot_f1"),
        ("accuracy", "accuracy"), ("F1", "macro_f1"))  # fmt: skip
WRITTEN = (("BLEU", "bleu"), ("ROUGE-L", "rouge_l"), ("slot errors", "slot_error_rate"),
           ("F1", "word_f1"), ("with a threshold", "accuracy"))  # fmt: skip
LARGE = {f"results/{name}.md" for name in ("tradeoff", "table1", "table1_full_size")}
SIZES = {"mn": 1e6, "bn": 1e9}
ROUNDED = 6e-5  # of a share of 1 with six digits, in per cent


def said_by(record):
    """The columns that a record is of, and what it and the attacks on its run say of which key."""
    holds = record.holds.epsilon or record.holds_if.epsilon  # None: infinite
    written = record.written or {}
    said = {
        **{key: [100 * record.test[name]] for key, name in KEYS if name in record.test},
        **{key: [100 * written[name]] for key, name in WRITTEN if name in written},
        "perplexity": [record.test.get("perplexity", 0)],
        "n": [record.n],
        "minutes": [record.seconds / 60],
        "steps": [record.steps],
        "δ": [record.delta],
        "ε publ": [record.as_published.epsilon or 0],
        "ε that holds": [holds or 0],
    }
    of_run = [each for each in ATTACKS if each.run == run_id(record)]
    return f"ε = {holds:.0f}" if holds else "no privacy", {**said, **said_by_attacks(of_run)}


def said_by_attacks(attacks):
    """What attacks say of which key."""
    said = {}
    for attack in attacks:
        for name, success in attack.success.items():
            rates = {"AUC %": success.auc, "TPR %": success.tpr}
            for rate, found in rates.items():
                said[f"{rate}, {name}"] = [
                    100 * each for each in (found.value, found.low, found.high)
                ]
    return said


def sources_of(names):
    """What is said by each record and page that a line of a comment names."""
    sources = []
    for name in names.replace(",", " ").split():
        page, _, words = name.partition("#")
        if page.endswith(".md"):
            assert words or page not in LARGE, f"{page} has any number; name its lines"
            lines = under_headings((ROOT / page).read_text())
            named = [line for said, line in lines if all(word in said for word in words.split("+"))]
            assert named, f"no line of {page} has all of {words}"
            numbers = NUMBER.finditer("\n".join(named).replace("-", "−"))
            key = words.split("+")[0] or "page"
            sources.append(("", {key: [float(each[1].replace(",", "")) for each in numbers]}))
            continue
        named = [record for record in RUNS if name_of(record).startswith(name)]
        distinct = {(one.hash, str(one.test)): one for one in reversed(named)}  # as in Table 1
        found = list(map(said_by, distinct.values()))
        for attack in ATTACKS:  # on a run of which no record is left
            if attack.run not in IDS and name_of_attacked(attack).startswith(name):
                found.append(("", said_by_attacks([attack])))
        assert found, f"there is no record {name}"
        sources += found
    return sources


def under_headings(text):
    """Yield the lines of a page, each behind itself and its heading without blanks."""
    heading = ""
    for line in text.splitlines():
        heading = line if line.startswith("#") else heading
        yield (heading + line).replace(" ", ""), line


def name_of_attacked(attack):
    return f"{attack.name}-{attack.attacked_run}"


def is_named(key, label):
    return re.search(rf"(?<!\w){re.escape(key)}(?!\w| \w)", label) is not None


def allowed(sources, head="", row=""):
    """(whether a cell of this column and row is measured, the values for it, and their means)."""
    is_of_some = re.search(r"ε = \d|no privacy", head)
    said = [each for column, each in sources if column in head or not is_of_some]
    every = {key for each in said for key in each}
    keys = {key for key in every if is_named(key, f"{head} | {row}")}
    lists = [[value for each in said for value in each.get(key, ())] for key in keys or every]
    is_measured = bool(keys) or SCORES.search(head) is not None
    return is_measured, [value for each in lists for value in (*each, sum(each) / len(each))]


def unfounded(text, is_measured, values):
    """The numbers of a text that are measured, by their form or their place, and no value is."""
    for number, digits, unit in NUMBER.findall(text):
        size = SIZES.get(unit, 1)
        value, unsure = float(number.replace(",", "")) * size, 0.5 * 10 ** -len(digits) * size
        is_there = any(abs(value - each) <= unsure + ROUNDED for each in values)
        if (digits or unit or is_measured) and not is_there:
            yield number


def without_record(page):
    """The measured numbers of a page that no record beside them has."""
    for block in re.split(r"\n\s*\n", NOT_MEASURED.sub(" ", page)):
        comment = COMMENT.search(block)
        named = re.split(r"\s*[|\n]\s*", comment[1]) if comment else []
        text = COMMENT.sub("", block)
        rows = [line.strip("|").split("|") for line in text.split("\n") if line.startswith("|")]
        if not rows:
            sources = sources_of(" ".join(named))
            yield from unfounded(text, False, allowed(sources)[1])
            columns = {column for column, _ in sources}
            if columns and "" not in columns:  # of a page's, nothing is known
                yield from set(re.findall(r"ε = \d+", text)) - columns
            continue
        heads = [cell.strip() for cell in rows[0]]
        by_row = [sources_of(line) for line in named or [""]]
        by_row *= len(rows) - 2 if len(by_row) == 1 else 1
        assert len(by_row) == len(rows) - 2, f"a line of records for each row: {heads}"
        for (first, *cells), sources in zip(rows[2:], by_row):
            base = by_row[0][0][1].get("SER") if by_row[0] else None
            for _, said in sources:
                if base and "SER" in said:
                    said["ΔSER"] = [100 * (said["SER"][0] / base[0] - 1)]
            yield from unfounded(first, False, allowed(sources)[1])
            for head, cell in zip(heads[1:], cells):
                yield from unfounded(cell, *allowed(sources, head, first.strip()))


@pytest.mark.parametrize("page", PAGES)
def test_each_measured_number_has_a_record(page):
    assert not list(without_record((ROOT / f"{page}.md").read_text()))


def test_comments_of_configurations_have_no_measured_number():
    for path in (ROOT / "configs").rglob("*.yaml"):
        comments = "\n".join(re.findall("#.*", path.read_text()))
        assert not re.findall(r"\d ?%|SER \d|perplexity \d", comments), path


HEADS = "atis_bert_heads_epsilon_8_small_seed_0-7a82"
TABLE = f"""
<!-- records:
{HEADS}, atis_clc_sgd-0833
atis_clc_sgd-0833
-->
| run | n | SER %, ε = 8 | no privacy |
| --- | ---: | ---: | ---: |
| heads | 2,642 | 15.3 | 5.83 |
| SGD | 2,642 | – | 5.8 |
"""


def test_a_number_without_its_record_is_found():
    """Another digit, another column, another row, a paragraph, a per cent without a point."""
    assert not list(without_record(TABLE))
    assert list(without_record(TABLE.replace("15.3 | 5.83", "15.4 | 5.83"))) == ["15.4"]
    assert list(without_record(TABLE.replace("15.3 | 5.83", "5.83 | 15.3"))) == ["5.83", "15.3"]
    assert list(without_record(TABLE.replace("| – |", "| 15.3 |"))) == ["15.3"]
    assert list(without_record(TABLE.replace("| 2,642 | –", "| 2,643 | –"))) == ["2,643"]
    prose = "<!-- records: {} -->\nAt ε = 8 it has 15.3 %, and 89 % of the intents in 330 steps."
    assert not list(without_record(prose.format(HEADS)))
    assert list(without_record(prose.format("atis_clc_sgd-0833"))) == ["15.3", "89", "ε = 8"]
    assert list(without_record(re.sub(COMMENT, "", TABLE))) == ["15.3", "5.83", "5.8"]
    assert list(without_record("| a | SER |\n| - | - |\n| b | 15 |")) == ["15"]
    assert list(without_record("It has 15.3 % or 15 %. `--set a=0.1`")) == ["15.3", "15"]
    with pytest.raises(AssertionError, match="no record atis_clc_sgd-9999"):
        list(without_record(prose.format("atis_clc_sgd-9999")))


CORPORA = {"NLU-eval": "NLU-Eval", "Comm.": "Communication"}
CHANGE = re.compile(r"([+-][\d.]+)(?: ±([\d.]+))?(?: \[([+-][\d.]+)\])?")


def changes_of(page, rows="thepaper'sε|"):
    """ΔSER and ΔMIA, each with its ± and the paper's, and log₁₀ ε: three for each row's name."""
    found = {}
    for said, line in under_headings((ROOT / "results" / f"{page}.md").read_text()):
        if rows in said and "anotherpre-training" not in said:
            corpus, _, _, _, ser, auc, log10, *_ = (each.strip() for each in line[1:].split("|"))
            name = f"{said[3 : said.index('|')]}, {CORPORA.get(corpus, corpus)}"
            found_in = (CHANGE.match(each) for each in (ser, auc))
            changes = (each.groups() if each else (None, None, None) for each in found_in)
            found.setdefault(name, []).append((*changes, log10.split()[0]))
    return found


def as_said(change, digits):
    ours, _, papers = change
    one, other = (f"{float(each):+.{digits}f}".replace("-", "−") for each in (ours, papers))
    return " [".join(each if each.strip("+−0.") else each[1:] for each in (one, other)) + "]"


def test_the_changes_at_the_papers_epsilon_are_those_of_table_1():
    """The two tables of docs/tables.md, and in how many rows SER rises beyond chance."""
    said = (ROOT / "docs" / "tables.md").read_text()
    small = changes_of("table1")
    for name, rows in small.items():
        cells = " | ".join(f"{as_said(ser, 0)} at {log10}" for ser, _, log10 in rows)
        assert f"\n| {name} | {cells} |\n" in said
    for name, rows in changes_of("table1_full_size").items():
        sers = " | ".join(f"{as_said(ser, 1)} at {log10}" for ser, _, log10 in rows)
        aucs = " | ".join(as_said(auc, 1) for _, auc, _ in rows)
        assert f"\n| {name}: SER | {sers} |\n| … AUC | {aucs} |\n" in said
    every = [
        (float(log10), *map(float, ser[:2])) for rows in small.values() for ser, _, log10 in rows
    ]
    rises = [change > chance for log10, change, chance in every if log10 < 6]
    stays = [abs(change) <= chance for log10, change, chance in every if log10 > 6]
    assert len(every) == 36
    assert f"raises SER beyond chance in {sum(rises)} of {len(rises)} rows" in said
    assert f"within chance of SGD's in {sum(stays)} of {len(stays)}" in said
    others = [change for rows in changes_of("table1", "÷largest|").values()
              for *both, _ in rows for change in both if change[1]]  # fmt: skip
    chance = sum(abs(float(change)) <= float(by_chance) for change, by_chance, _ in others)
    assert f"Of their {len(others)} changes that have a ±, chance explains {chance}." in said
