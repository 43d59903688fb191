"""The head of Table 1's page: models, corpora, epochs, runs and noise."""

from __future__ import annotations

from itertools import product
from statistics import fmean
from typing import Iterator, List, Mapping, Optional

from edp_mx.data.synthetic.grammar import STANDINS
from edp_mx.reports.report_parts import Part
from edp_mx.runs.file_types import Record
from edp_mx.runs.records import value_of
from experiments.tables.methods import CORPORA, FAMILIES, METHODS
from experiments.tables.paper import MODELS, PAPERS_CORPORA, name_of
from experiments.tables.query import Entry, Key

TITLE = "What this table is"
CONVERGED = 0.05  # by this share SGD's SER on validation may fall in the last epoch


def about(entries: Mapping[Key, Entry]) -> List[Part]:
    """Return a part on how far the runs are from the paper's, from their records alone.

    DP-SGD has models of its own (its recipe's) and is left out of sizes and epochs.
    """
    if not entries:
        return []
    like_the_papers = {k: e for k, e in entries.items() if k[2] != "dp_sgd"}
    families = [each for each in FAMILIES if any(_records(like_the_papers, each))]
    points = [f"{each.upper()}: {_model(each, like_the_papers)}" for each in families]
    points += [_corpus(each, entries) for each in CORPORA if any(_records(entries, corpus=each))]
    points += [*_epochs(like_the_papers), _runs(entries), *_noise(entries)]
    return [Part(TITLE, points=points)]


def _records(entries: Mapping[Key, Entry], family: str = "", corpus: str = "") -> Iterator[Record]:
    for (its_family, its_corpus, _), entry in entries.items():
        if family in ("", its_family) and corpus in ("", its_corpus):
            yield from entry.records


def _model(family: str, entries: Mapping[Key, Entry]) -> str:
    """The sizes of a family's models, beside the paper's."""
    found = dict.fromkeys(map(_sizes, _records(entries, family)))
    return f"{' and '.join(found)}; the paper's: {MODELS[family]}."


def _sizes(record: Record) -> str:
    layers, width = (value_of(record, f"model.{key}") for key in ("num_layers", "hidden_size"))
    if record.family == "bert":
        start = "a checkpoint" if value_of(record, "model.checkpoint") else "random weights"
        return f"{layers} layers, {width} wide, from {start}"
    vectors = value_of(record, "data.embeddings.dimension")
    source = "of a file" if value_of(record, "data.embeddings.path") else "drawn at random"
    return f"{layers} layers of {width}, {vectors}-wide word vectors {source}"


def _corpus(corpus: str, entries: Mapping[Key, Entry]) -> str:
    numbers = sorted({record.n for record in _records(entries, corpus=corpus)})
    n = " or ".join(f"{number:,}" for number in numbers)
    made = "; sentences from a grammar of this project" * (corpus in STANDINS)
    papers = PAPERS_CORPORA.get(corpus, "it has none such")
    return f"{name_of(corpus)}: {n} training utterances{made}; the paper: {papers}."


def _epochs(entries: Mapping[Key, Entry]) -> Iterator[str]:
    """How many the runs of each corpus have, family by family, and where SGD still improves."""
    said, falls = [], []
    for family, corpus in product(FAMILIES, CORPORA):
        found = {record.epochs for record in _records(entries, family, corpus)}
        name = f"{name_of(corpus)} ({family.upper()})"
        said += [f"{name} {' or '.join(map(str, sorted(found)))}"] * bool(found)
        fall = _last_fall(entries.get((family, corpus, "sgd")))
        falls += [f"{fall:.0%} on {name}".replace("%", " %")] * (fall > CONVERGED)
    yield f"Epochs: {', '.join(said)}."
    if falls:
        fell = ", ".join(falls)
        yield f"SGD still improves: in the last epoch its SER on validation fell by {fell}."


def _last_fall(sgd: Optional[Entry]) -> float:
    """The share by which SGD's mean SER on validation fell in the last epoch."""
    columns = [record.by_epoch or {} for record in (sgd.records if sgd else ())]
    ends = [column.get("validation_ser", ())[-2:] for column in columns]
    both = [(before, last) for before, last in filter(lambda end: len(end) == 2, ends)
            if before and last]  # fmt: skip
    return 1 - fmean(last for _, last in both) / fmean(before for before, _ in both) if both else 0


def _runs(entries: Mapping[Key, Entry]) -> str:
    single = sum(len(entry.records) == 1 for entry in entries.values())
    return (
        f"Runs: {single} of {len(entries)} rows are of one run. All seeds of a corpus share its "
        "one split, so that their range says nothing about another split."
    )


def _noise(entries: Mapping[Key, Entry]) -> Iterator[str]:
    """The first noise multipliers of eDP-SGD: at the paper's ε, and of the other rows."""
    for is_papers, said in (
        (True, "the paper's ε, where α are the norms of the first gradients themselves"),
        (False, "the other rows of eDP-SGD, where α is divided by its largest"),
    ):
        chosen = [
            value_of(record, "privacy.noise_multiplier")
            for key, entry in entries.items()
            if METHODS[key[2]].decay and METHODS[key[2]].is_at_papers_epsilon == is_papers
            for record in entry.records
        ]
        if chosen:
            low, high = min(chosen), max(chosen)
            between = f"{low:g}" if low == high else f"{low:.3g} to {high:.3g}"
            yield f"Noise: z₀ is {between} at {said}."
