"""Table 1 as a query over the records of runs and of attacks on them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, TypeVar

from edp_mx.runs.attack_files import ALIGNED, AttackRecord, AttackSuccess
from edp_mx.runs.file_types import Record
from edp_mx.runs.measurements import Measurement, Spread, came_to, measurements, spread_of
from edp_mx.runs.record import run_id
from edp_mx.runs.records import value_of
from edp_mx.tasks.intent_slot.task import INTENT_SLOT
from experiments.tables.methods import METHODS, method_of
from experiments.tables.pooled import BySeed, Pooled, pooled_of

PAPERS_WIDTH = 312  # of its BERT
PAPERS_ATTACK, LIRA = "shadow classifier", "LiRA"  # with the latter begin its variants' names
Key = Tuple[str, str, str]  # family, corpus, method
Value = TypeVar("Value")
Success = Mapping[str, AttackSuccess]  # by the name of an attack, its outcome
Successes = Mapping[Tuple[str, str], Success]  # by run and kind of attack


@dataclass(frozen=True)
class Entry:
    """The measurements of one method: means over seeds, and the least and largest of its runs.

    Attributes:
        records: of its runs.
        ser: on the test part.
        ser_change: relative to the mean SER of SGD on the same corpus; None where SGD is missing,
            and of eDP-SGD where SGD was trained with other settings but for privacy.
        auc: of the paper's attack.
        auc_change: relative to SGD's, as `ser_change`.
        lira_auc: LiRA's AUC, the largest of its variants.
        lira_tpr: the share of members that it finds at a false-positive rate of 1 %, by that of its
            variants which finds most.
        attacked: how many of the runs have the paper's attack.
        lira_attacked: how many have LiRA.
        is_aligned: whether these have its aligned variant; where some of the runs have it, LiRA's
            numbers are of these alone.
        by_seed: of each of the four scores, the mean of the runs of each seed, by which means and
            intervals count: runs of one seed are alike in more than their settings.
        ser_interval: by how much `ser_change` may differ by chance, either way; None where no row
            of the corpus and family was trained with two seeds.
        auc_interval: the same of `auc_change`.

    Units: shares of 1; a change of -0.1 is 10 % less.
    """

    records: Tuple[Record, ...]
    ser: Spread
    ser_change: Optional[Spread] = None
    auc: Optional[Spread] = None
    auc_change: Optional[Spread] = None
    lira_auc: Optional[Spread] = None
    lira_tpr: Optional[Spread] = None
    attacked: int = 0
    lira_attacked: int = 0
    is_aligned: bool = True
    by_seed: BySeed = field(default_factory=dict)
    ser_interval: Optional[float] = None
    auc_interval: Optional[float] = None


def query(records: Iterable[Record], attacks: Sequence[AttackRecord] = ()) -> Dict[Key, Entry]:
    """Return the measurements of each method of Table 1, by family, corpus and method.

    A corpus is shown at one size, that at which most methods were measured (of several, the
    largest). Of several settings of a method the newest results count, of these the models of
    the size that most methods have, of these the runs that most methods have alike but for
    their privacy, of these those that were attacked most, and then the best on the validation
    part. All runs of these settings count; another warm start is another setting.
    """
    records = list(records)
    success = successes_of(attacks, records)
    attacked = Counter(run for run, _ in success)
    by_method: Dict[str, List[Record]] = {method: [] for method in METHODS}
    for record in records:
        if is_of_table(record):
            by_method.get(method_of(record) or "", []).append(record)
    chosen: Dict[Key, List[Measurement]] = {}
    for method, of_it in by_method.items():
        for each in all_measurements(of_it, success):
            chosen.setdefault((each.family, each.corpus, method), []).append(each)
    sizes = {
        place: max((count, n) for n, count in counts.items())[1]
        for place, counts in _counted(chosen, lambda each: each.n).items()
    }
    fitting = {
        key: [each for each in every if each.n == sizes[key[:2]]] for key, every in chosen.items()
    }
    sized = _counted(fitting, lambda each: _size_of_model(each.records[0]))
    shared = _counted(fitting, lambda each: but_for_privacy(each.records[0]))
    best = {
        key: min(every, key=lambda each: _order(each, sized[key[:2]], shared[key[:2]], attacked))
        for key, every in fitting.items()
        if every
    }
    found: Dict[Key, Entry] = {}
    for key, measured in best.items():  # SGD comes first, since METHODS begins with it
        sgd = found.get((*key[:2], "sgd")) if key[2] != "sgd" else None
        is_beside = sgd and (key[2] == "dp_sgd" or _are_alike(measured.records, sgd.records))
        found[key] = entry_of(measured.records, success, sgd=sgd if is_beside else None)
    places = {key[:2] for key in found}
    pooled = {
        place: pooled_of([entry.by_seed for key, entry in found.items() if key[:2] == place])
        for place in places
    }
    return {key: _with_intervals(key, found, pooled[key[:2]]) for key in found}


def successes_of(attacks: Iterable[AttackRecord], records: Iterable[Record]) -> Successes:
    """Return the outcome of each attack, by the id of the attacked run and the attack's name.

    A run that repeats an attacked one to the last digit has its outcome, too, and where it has one
    of its own, that which has LiRA's aligned variant.
    """
    ends = {run_id(record): came_to(record) for record in records}
    repeats: Dict[str, List[str]] = {}
    for run, end in ends.items():
        repeats.setdefault(end, []).append(run)
    success = {(each.run, each.attack): each.success for each in attacks if not each.chosen}
    found = dict(success)
    for (run, attack), each in success.items():
        for other in repeats.get(ends.get(run, ""), ()):
            own = found.setdefault((other, attack), each)
            if ALIGNED in each and ALIGNED not in own:
                found[other, attack] = each
    return found


def is_of_table(record: Record) -> bool:
    """Whether a record may be one of Table 1's: intents and slots, and no wider BERT's."""
    is_wider = record.family == "bert" and value_of(record, "model.hidden_size") > PAPERS_WIDTH
    return record.task is INTENT_SLOT and not is_wider


def all_measurements(records: Iterable[Record], success: Successes) -> List[Measurement]:
    """Return the measurements; of runs that repeat each other, one that was attacked is kept."""
    attacked = Counter(run for run, _ in success)
    ordered = sorted(records, key=lambda each: attacked[run_id(each)])  # the last one is kept
    return measurements(ordered, is_shown=lambda _: True, by_epsilon=False)


def _with_intervals(key: Key, found: Mapping[Key, Entry], pooled: Mapping[str, Pooled]) -> Entry:
    entry, sgd = found[key], found.get((*key[:2], "sgd"))
    given: Dict[str, Any] = {}
    for name, change in (("ser", entry.ser_change), ("auc", entry.auc_change)):
        if sgd and change and name in pooled:
            seeds = (len(each.by_seed[name]) for each in (entry, sgd))
            given[f"{name}_interval"] = pooled[name].interval(1 + change.mean, *seeds)
    return replace(entry, **given)


def _counted(
    measured: Dict[Key, List[Measurement]], of: Callable[[Measurement], Value]
) -> Dict[Tuple[str, str], Counter[Value]]:
    """By family and corpus, how many methods have a run with the same value of `of`."""
    methods: Dict[Tuple[str, str], Counter[Value]] = {}
    for key, every in measured.items():
        methods.setdefault(key[:2], Counter()).update(set(map(of, every)))
    return methods


def but_for_privacy(record: Record, *more: str) -> str:
    """Return the settings of a run without its seed and its privacy, and without some more."""
    left_out = ("privacy.", "training.seed", *more)
    kept = {k: v for k, v in record.settings.items() if not k.startswith(left_out)}
    return json.dumps(kept, sort_keys=True)


def _are_alike(records: Sequence[Record], of_sgd: Sequence[Record]) -> bool:
    """Whether runs differ from SGD's in their privacy alone, as DP-SGD's by its recipe never do."""
    return but_for_privacy(records[0]) == but_for_privacy(of_sgd[0])


def _size_of_model(record: Record) -> Tuple[Any, ...]:
    return tuple(value_of(record, f"model.{key}") for key in ("num_layers", "hidden_size"))


def _order(
    measured: Measurement,
    sized: Counter[Tuple[Any, ...]],
    shared: Counter[str],
    attacked: Counter[str],
) -> Tuple[float, ...]:
    version = max(record.results_version for record in measured.records)
    alike = sized[_size_of_model(measured.records[0])]
    methods = shared[but_for_privacy(measured.records[0])]
    attacks = sum(attacked[run_id(record)] for record in measured.records)
    return -version, -alike, -methods, -attacks, measured.validation, -len(measured.records)


def entry_of(
    records: Sequence[Record], success: Successes, *, sgd: Optional[Entry] = None
) -> Entry:
    """Return the measurements of some runs, beside SGD's on the same corpus."""
    by_lira = _by_lira(records, success)
    of_runs = {
        "ser": {place: record.test["ser"] for place, record in enumerate(records)},
        "auc": _by_shadow(records, success),
        "lira_auc": {place: max(map(_auc, its.values())) for place, its in by_lira.items()},
        "lira_tpr": {place: max(each.tpr.value for each in its.values())
                     for place, its in by_lira.items()},
    }  # fmt: skip
    by_seed = {name: _by_seed(records, values) for name, values in of_runs.items()}
    ser, auc, lira_auc, lira_tpr = (
        spread_of(tuple(its.values()))._replace(mean=fmean(by_seed[name])) if its else None
        for name, its in of_runs.items()
    )
    assert ser is not None
    return Entry(
        records=tuple(records),
        ser=ser,
        ser_change=_change(ser, sgd.ser if sgd else None),
        auc=auc,
        auc_change=_change(auc, sgd.auc if sgd else None),
        lira_auc=lira_auc,
        lira_tpr=lira_tpr,
        attacked=len(of_runs["auc"]),
        lira_attacked=len(by_lira),
        is_aligned=all(ALIGNED in each for each in by_lira.values()),
        by_seed=by_seed,
    )


def _by_seed(records: Sequence[Record], values: Mapping[int, float]) -> Tuple[float, ...]:
    """The mean of the runs of each seed; `values` are those of the runs at some places."""
    found: Dict[Any, List[float]] = {}
    for place, value in values.items():
        found.setdefault(value_of(records[place], "training.seed"), []).append(value)
    return tuple(map(fmean, found.values()))


def _by_shadow(records: Sequence[Record], success: Successes) -> Dict[int, float]:
    """The AUC of the paper's attack by the place of the run."""
    made = {place: success.get((run_id(each), "shadow"), {}) for place, each in enumerate(records)}
    return {place: _auc(its[PAPERS_ATTACK]) for place, its in made.items() if PAPERS_ATTACK in its}


def _by_lira(records: Sequence[Record], success: Successes) -> Dict[int, Success]:
    """LiRA's outcomes by the place of their run; those with the aligned variant, where some are."""
    made = {
        place: liras
        for place, record in enumerate(records)
        if (liras := _liras(success.get((run_id(record), "lira"), {})))
    }
    return {place: each for place, each in made.items() if ALIGNED in each} or made


def _liras(success: Success) -> Success:
    """The outcome of each variant of LiRA.

    The shadow models are trained by SGD. Where another method leaves other losses than they have,
    the online variant takes members for others, and measures little of the leak: the best variant
    is nearest to that.
    """
    return {name: found for name, found in success.items() if name.startswith(LIRA)}


def best_lira(success: Success) -> Optional[str]:
    """Return the variant of LiRA with the largest AUC, None where there is none."""
    variants = _liras(success)
    return max(variants, key=lambda name: _auc(variants[name])) if variants else None


def _auc(found: AttackSuccess) -> float:
    return found.auc.value


def _change(ours: Optional[Spread], of_sgd: Optional[Spread]) -> Optional[Spread]:
    """The spread relative to the mean of SGD's."""
    if ours is None or of_sgd is None or not of_sgd.mean:
        return None
    return Spread(*(value / of_sgd.mean - 1 for value in ours))
