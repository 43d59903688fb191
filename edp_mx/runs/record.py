"""The record of a finished run: a few KB without paths and text, which outlives its folder."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, Mapping, Optional, Sequence, Tuple

from edp_mx.data.fingerprint import is_same, keyed
from edp_mx.data.origin import ORIGIN
from edp_mx.runs.file_types import (
    Environment,
    Machine,
    Privacy,
    Record,
    Results,
    Scores,
    VocabularyLists,
)
from edp_mx.runs.ledger_evidence import END
from edp_mx.runs.recount import privacy_of
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.blas import cpuinfo
from edp_mx.runtime.files import sha256_of
from edp_mx.runtime.structured import structure, unstructure
from edp_mx.tasks.task import Task

if TYPE_CHECKING:
    from edp_mx.config import ExperimentConfig

_Columns = Dict[str, Tuple[Optional[float], ...]]

RECORDS = Path("results")  # the folder where records are kept
# Raise it with every change that alters what the same settings give, a changed default included:
# records of an older version then answer for no run of this one.
RESULTS_VERSION = 1
NO_EFFECT = ("name", "training.tracking", "training.watchdog_seconds", "data.tokenizer")
_ALWAYS = ("data.corpus", "model.family")  # named even where they are the default
_CORPUS = ("data.path", "data.split.test")  # its place
_BOUNDS = ("as_published", "holds", "holds_if")
# Fields that may be counted anew, or that older versions lack: they identify no run.
ADDED = ("by_epoch", "labels", "written")  # by later versions, or later in the life of a run
_RETOLD = (*_BOUNDS, END, "delta", "n", *ADDED)
KEPT_EPOCHS = 60  # of a run, in its record
_BY_EPOCH = ("noise_multiplier", "clipped_fraction", "processor_seconds")  # beside loss and score


def settings_of(config: ExperimentConfig) -> Dict[str, Any]:
    """Return the settings that differ from their defaults, by dotted key.

    Left out are those that change no result. In place of a path stands a hash of what lies there,
    except for the corpus: it may be private, and a hash would confirm a guess.
    """
    found = {}
    for key, value, default, is_path in _leaves(config, ""):
        if key in NO_EFFECT or (value == default and key not in _ALWAYS):
            continue
        if key in _CORPUS and isinstance(value, str):
            value = "given"
        elif is_path and isinstance(value, str):
            value = content_of(Path(value))
        found[key] = value
    return json.loads(json.dumps(found, sort_keys=True))


def absent_files(config: ExperimentConfig) -> Dict[str, str]:
    """Return the settings that name a file or folder which is not there, by dotted key."""
    named = ((key, value) for key, value, _, is_path in _leaves(config, "") if is_path)
    return {key: each for key, each in named if isinstance(each, str) and not Path(each).exists()}


def settings_hash(settings: Dict[str, Any], workers: int) -> str:
    """Return sixteen digits for the settings that decide a result, and how many workers trained."""
    whole = json.dumps([RESULTS_VERSION, workers, settings], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def content_of(path: Path) -> str:
    """Return a hash of a file, or of the files of a folder; of a run, of its weights and words.

    What is not there has a hash too: a run that has ended must be able to write its record.
    """
    names = [path] if path.is_file() else sorted(path.glob("[!.]*"))
    names = [name for name in names if name.name != ORIGIN]  # keyed: each machine's is another
    if (path / "weights.npz").exists():
        names = [path / "weights.npz", path / "vocabulary.json"]
    digest = hashlib.sha256()
    for file in (name for name in names if name.is_file()):
        stat = file.stat()
        inside = file.name if file != path else ""
        digest.update(f"{inside} {_sha256(file, stat.st_mtime_ns, stat.st_size)}\n".encode())
    return f"sha256:{digest.hexdigest()[:16]}"


def _corpus_files(config: ExperimentConfig) -> Optional[str]:
    """A hash of the files of a corpus that is named by its path; None if there is none."""
    paths = (config.data.path, config.data.test_file)
    return " ".join(content_of(Path(path)) for path in paths if path is not None) or None


@lru_cache(maxsize=None)
def _sha256(path: Path, _: int, __: int) -> str:
    return sha256_of(path)


def _leaves(config: Any, prefix: str) -> Iterator[Tuple[str, Any, Any, bool]]:
    """Yield (dotted key, value, default, whether it names files) of each setting."""
    for field in dataclasses.fields(config):
        value, key = getattr(config, field.name), f"{prefix}{field.name}"
        if dataclasses.is_dataclass(value):
            yield from _leaves(value, f"{key}.")
        else:
            yield key, value, field.default, field.metadata.get("is_path", False)


def make_record(run: RunDirectory, config: ExperimentConfig, results: Dict[str, Any]) -> Record:
    """Return the record of a run that has trained, from its configuration and its files.

    Needed are `privacy.json`, `environment.json`, the log, and what `results.json` is to have.
    """
    settings, files, workers = settings_of(config), _corpus_files(config), run.num_workers()
    privacy, environment, rows = run.load(Privacy), run.load(Environment), run.epochs()
    task, scores = run.task, structure(results, Results)
    return Record(
        name=config.name,
        hash=settings_hash(settings, workers),
        results_version=RESULTS_VERSION,
        date=environment.started[:10],
        corpus=config.data.corpus,
        family=config.model.family,
        mechanism=config.privacy.mechanism,
        test=task.shares(scores.test),
        validation=_validation_scores(rows, config.training.checkpoint, task),
        **_of_privacy(privacy),
        epochs=len(rows),
        steps=privacy.steps // max(1, privacy.epochs) * len(rows),
        seconds=round(scores.training_seconds, 1),
        workers=workers,
        machine=machine_of(environment),
        corpus_files=None if files is None else keyed(files),
        settings=settings,
        by_epoch=by_epoch(rows, task),
        labels=run.load(VocabularyLists).labels if run.has("vocabulary") else None,
    )


def _of_privacy(privacy: Privacy) -> Dict[str, Any]:
    """The fields of `privacy.json` that a record has; its bounds without the keys of no field."""
    return {
        **{name: replace(getattr(privacy, name)) for name in _BOUNDS},
        "delta": privacy.delta,
        "n": privacy.num_examples,
        END: privacy.ledger_end,
    }


def by_epoch(rows: Sequence[Mapping[str, Any]], task: Task) -> _Columns:
    """Return a record's columns of the lines of `metrics.jsonl`: `epoch`, from 1, and others.

    Of a longer run, `KEPT_EPOCHS` epochs are kept, the first and the last among them.
    """
    count = min(len(rows), KEPT_EPOCHS)
    places = [round(i * (len(rows) - 1) / max(1, count - 1)) for i in range(count)]
    score = task.metric.key
    kept = {key: (key, 1.0) for key in ("loss", score, *_BY_EPOCH)}  # name and divisor
    kept[score] = (f"validation_{score}", task.metric.factor)
    columns: _Columns = {"epoch": tuple(place + 1 for place in places)}
    for key, (name, divisor) in kept.items():
        values = [rows[place].get(key) for place in places]
        if any(value is not None for value in values):
            columns[name] = tuple(None if v is None else rounded(v / divisor) for v in values)
    return columns


def rounded(value: float) -> float:
    """Return a number with four digits."""
    return float(f"{value:.4g}")


def record_of(run: RunDirectory) -> Record:
    """Return the record of a finished run.

    Its ε are counted from the ledger (`is_counted`), and are not those that the record states. They
    are that only where the folder has neither a ledger nor `privacy.json`.

    Raises:
        UserError: no ε can be read from the ledger, or it is gone.
    """
    record = run.load(Record)
    if run.has("generated"):
        record = replace(record, written=run.read("generated"))
    is_private = run.has("privacy") and record.mechanism != "none"
    if run.ledger.exists() or is_private:
        record = replace(record, **_of_privacy(privacy_of(run, [])), is_counted=True)
    return record


def run_id(record: Record) -> str:
    """Return sixteen digits that identify a run, also among runs with the same settings.

    They are a hash of the fields that all versions have: scores, day, seconds, machine, etc.
    """
    kept = {key: value for key, value in unstructure(record).items() if key not in _RETOLD}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]


def _validation_scores(
    rows: Sequence[Mapping[str, Any]], checkpoint: Optional[str], task: Task
) -> Optional[Scores]:
    """The scores of the epoch that the run ended with."""
    if not rows:
        return None
    scores = [{each.key: row[each.key] / each.factor for each in task.metrics} for row in rows]
    is_best = checkpoint == "best_on_validation"
    return task.shares(min(scores, key=task.cost) if is_best else scores[-1])


def machine_of(environment: Environment) -> Machine:
    """Return the machine of a record, from an `environment` that was made on this machine."""
    processor, of = cpuinfo().get("model name") or platform.processor(), environment
    return Machine(processor, of.machine, of.cores, of.python, of.packages, of.blas)


def validation_cost(record: Record) -> float:
    """Return the SER on the validation part, by which settings are chosen; ∞ if there is none.

    Of another task than the paper's, it is a number of which less is better too.
    """
    return record.task.cost(record.validation or {})


def records_like(
    records: Iterable[Record], config: ExperimentConfig, *, workers: int
) -> Iterator[Record]:
    """Yield the records of runs with these settings and as many workers.

    A run on a corpus of one's own counts only where this machine's key says that its files are
    still the same.
    """
    wanted = settings_hash(settings_of(config), workers)
    for record in (each for each in records if each.hash == wanted):
        files, kept = _corpus_files(config), record.corpus_files
        if files is None or (kept and is_same(kept, files)):
            yield record
