"""A resumed run goes on with what it was begun with, or not at all."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from edp_mx.data.fingerprint import is_same
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory


def refuse_other_start(
    run: RunDirectory,
    *,
    settings: str,
    fingerprints: Mapping[str, str],
    vocabulary: Dict[str, Any],
) -> None:
    """Compare what a resumed run has now with what its directory says of the start.

    Another corpus would be trained on beside the first under one ε, and with another vocabulary
    the weights mean other words.

    Args:
        settings: a hash of all settings.
        fingerprints: of the parts of the corpus, by their names, not keyed.
        vocabulary: as `vocabulary.json` has it.

    Raises:
        UserError: something differs, or the vocabulary is gone.

    Edge cases: a run that an older version began names no settings; a fingerprint that another
    machine keyed says nothing here.
    """
    begun = run.read("environment")
    if begun.get("settings", settings) != settings:
        _refuse(run, f"{run.config} was changed since")
    for part, recorded in begun.get("fingerprints", {}).items():
        if is_same(recorded, fingerprints[part]) is False:
            _refuse(run, f"the {part} part of the corpus is another now")
    if not run.has("vocabulary"):
        _refuse(run, f"{run.path / 'vocabulary.json'} is missing")
    if run.read("vocabulary") != vocabulary:
        _refuse(run, f"{run.path / 'vocabulary.json'} is not the vocabulary of now")


def _refuse(run: RunDirectory, why: str) -> None:
    raise UserError(
        f"{run.path} cannot be resumed, because {why}: put back what the run was begun with, or "
        "train into a new directory"
    )
