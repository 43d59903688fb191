"""The inputs of a run: written down at its start, and the same when it is resumed."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from edp_mx.data.fingerprint import is_same, keyed
from edp_mx.dp.accounting.ledger import read_ledger
from edp_mx.errors import UserError
from edp_mx.runs.file_types import Environment
from edp_mx.runs.prepare import short_hash
from edp_mx.runs.record import NO_EFFECT
from edp_mx.runs.run_directory import RunDirectory, environment
from edp_mx.runtime.yaml_tree import leaves


def has_started(run: RunDirectory) -> bool:
    """Return whether a run has taken a step, so that it must go on as it was begun."""
    if run.has("environment") or run.checkpoint.exists() or run.epochs():
        return True
    entries = read_ledger(run.ledger).entries if run.ledger.exists() else ()
    return any(entry.epoch is not None for entry in entries)


FILES = ("environment", "split", "vocabulary", "layers")  # files that no run can be used without


def refuse_lost(run: RunDirectory) -> None:
    """Refuse to go on, or to end, once a file that the run was begun with is gone."""
    lost = [] if run.config.exists() else [run.config.name]
    lost += [f"{name}.json" for name in FILES if not run.has(name)]
    if lost:
        raise UserError(
            f"{run.path} has lost {' and '.join(lost)}: without that its model cannot be "
            "used and its ε cannot be counted; restore it and resume the run, or train into a new "
            "directory"
        )


def write_start(
    run: RunDirectory,
    *,
    num_workers: int,
    fingerprints: Mapping[str, str],
    vocabulary: Dict[str, Any],
    frozen: str,
) -> None:
    """Write `vocabulary.json`, then `environment.json`, with the fingerprints as keyed ones.

    `frozen` is a hash of the weights that are not trained, which no checkpoint holds.
    """
    prints = {part: keyed(value) for part, value in fingerprints.items()}
    run.write("vocabulary", vocabulary)
    begun = {"settings": _settings(run), "fingerprints": prints, "frozen": frozen}
    run.write("environment", {**environment(num_workers), **begun})


def refuse_other_start(
    run: RunDirectory,
    *,
    fingerprints: Mapping[str, str],
    vocabulary: Dict[str, Any],
    frozen: Optional[str] = None,
) -> None:
    """Compare the inputs of a resumed run with the ones that `write_start` wrote.

    Another corpus would be trained on beside the first under one ε, with another vocabulary the
    weights mean other words, and those of a checkpoint go on top of the frozen ones.

    Raises:
        UserError: the settings, the corpus, the vocabulary or the frozen weights (unless None)
            differ, or the vocabulary is gone.

    Edge cases: a fingerprint that another machine keyed says nothing here.
    """
    begun = run.load(Environment)
    if begun.settings != _settings(run):
        _refuse(run, f"{run.config.name} was changed since it was begun")
    for part, recorded in begun.fingerprints.items():
        if is_same(recorded, fingerprints[part]) is False:
            _refuse(run, f"the {part} part of the corpus is another one now")
    if not run.has("vocabulary"):
        _refuse(run, "vocabulary.json is missing")
    if run.read("vocabulary") != vocabulary:
        _refuse(run, "vocabulary.json is not the vocabulary of now")
    if frozen is not None and begun.frozen != frozen:
        _refuse(run, "the frozen weights, which come from its start, are other ones now")


def _settings(run: RunDirectory) -> str:
    """A hash of the settings in `config.yaml`, but for those without an effect."""
    kept = {key: value for key, value in leaves(run.settings()) if key not in NO_EFFECT}
    return short_hash(sorted(kept.items()))


def _refuse(run: RunDirectory, why: str) -> None:
    raise UserError(
        f"{run.path} cannot be resumed, because {why}: put back what the run was begun with, or "
        "train into a new directory"
    )
