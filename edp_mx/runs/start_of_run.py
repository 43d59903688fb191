"""What a run is begun with: written down once, and the same when it is resumed, or it is not."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from edp_mx.data.fingerprint import is_same, keyed
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory, environment

FILES = ("environment", "split", "vocabulary", "layers")  # what no run can be used without


def refuse_lost(run: RunDirectory) -> None:
    """Refuse to go on, or to end, once a file that the run was begun with is gone.

    Raises:
        UserError: one is.
    """
    lost = [] if run.config.exists() else [run.config.name]
    lost += [f"{name}.json" for name in FILES if not run.has(name)]
    if lost:
        raise UserError(
            f"{run.path} has lost {' and '.join(lost)}, without which nobody can use what it "
            "trains or tell what it spent: put back what is gone and resume the run, or train "
            "into a new directory"
        )


def write_start(
    run: RunDirectory,
    *,
    num_workers: int,
    settings: str,
    fingerprints: Mapping[str, str],
    vocabulary: Dict[str, Any],
) -> None:
    """Write `environment.json` and `vocabulary.json`.

    Args:
        settings: a hash of all settings.
        fingerprints: of the parts of the corpus, by their names; they are keyed here.
        vocabulary: as `vocabulary.json` has it.
    """
    prints = {part: keyed(value) for part, value in fingerprints.items()}
    begun = {"settings": settings, "fingerprints": prints}
    run.write("environment", {**environment(num_workers), **begun})
    run.write("vocabulary", vocabulary)


def refuse_other_start(
    run: RunDirectory,
    *,
    settings: str,
    fingerprints: Mapping[str, str],
    vocabulary: Dict[str, Any],
) -> None:
    """Compare what a resumed run has now with what `write_start` wrote.

    Another corpus would be trained on beside the first under one ε, and with another vocabulary
    the weights mean other words.

    Raises:
        UserError: the settings, the corpus or the vocabulary differ, or the last is gone.

    Edge cases: a run that an older version began names no settings; a fingerprint that another
    machine keyed says nothing here.
    """
    begun = run.read("environment")
    if begun.get("settings") not in (None, settings):
        _refuse(run, f"{run.config.name} was changed since it was begun")
    for part, recorded in begun.get("fingerprints", {}).items():
        if is_same(recorded, fingerprints[part]) is False:
            _refuse(run, f"the {part} part of the corpus is another now")
    if not run.has("vocabulary"):
        _refuse(run, "vocabulary.json is missing")
    if run.read("vocabulary") != vocabulary:
        _refuse(run, "vocabulary.json is not the vocabulary of now")


def _refuse(run: RunDirectory, why: str) -> None:
    raise UserError(
        f"{run.path} cannot be resumed, because {why}: put back what the run was begun with, or "
        "train into a new directory"
    )
