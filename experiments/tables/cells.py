"""The cells of Table 1, one training each, and the records that answer for one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Set

from edp_mx.config import ExperimentConfig, load_config
from edp_mx.dp.accounting.clippings import CLIPPINGS
from edp_mx.errors import UserError
from edp_mx.runs.file_types import Record
from edp_mx.runs.record import RESULTS_VERSION, absent_files, records_like, settings_of
from edp_mx.runtime.config_files import overrides_of
from edp_mx.runtime.yaml_tree import override
from experiments.tables.methods import CORPORA, FAMILIES, METHODS, Method, N, layers_of
from experiments.tables.paper import TABLE_1
from experiments.tables.paper_point import paper_point
from experiments.tables.trainings import TableTrial

_CORPUS = ("data.path", "data.split")  # no other corpus answers for one
_SHARE = "privacy.micro_batches_per_worker"
# The keys that define a method, which --set may not change.
_OF_METHODS = ("training.seed", "privacy.mechanism", "privacy.variant", "privacy.decay",
               "privacy.target_epsilon", _SHARE, "data.corpus", "data.path",
               "model.family")  # fmt: skip


class Request(NamedTuple):
    """The request for a table.

    Attributes:
        configs: the folder of the shipped configurations.
        workers: Horovod workers of each training; they share the paper's N = 8 micro-batches.
        overrides: `key=value` texts, set in every training.
        is_attacked: the paper's attack is made on each run too.
        lira: so is LiRA, with so many shadow models; 0 for none.
        is_small: take the models of `configs/small`.
        known: the names that `methods` may have.
    """

    configs: Path
    corpora: Sequence[str] = CORPORA
    families: Sequence[str] = FAMILIES
    methods: Sequence[str] = tuple(METHODS)
    seeds: Sequence[int] = (0,)
    workers: int = 1
    overrides: Sequence[str] = ()
    is_attacked: bool = False
    lira: int = 0
    is_small: bool = False
    known: Mapping[str, Method] = MappingProxyType(METHODS)


class Cell(NamedTuple):
    """One training of a table."""

    corpus: str
    family: str
    method: str
    seed: int
    trial: TableTrial

    @property
    def name(self) -> str:
        return f"{self.corpus}_{self.family}_{self.method}, seed {self.seed}"


class Table(NamedTuple):
    """The trainings of a table.

    Attributes:
        shadows: the SGD cells that its attacks need beside its own.
        runs: the folder of the run directories.
        records: the folder in which the records of runs and attacks are looked for, and kept.
    """

    request: Request
    cells: Sequence[Cell]
    shadows: Sequence[Cell]
    runs: Path
    records: Path

    @property
    def trainings(self) -> List[Cell]:
        return [*self.cells, *self.shadows]


def cells_of(request: Request) -> List[Cell]:
    """Return the trainings of a table: all methods with the first seed, then with the next.

    Raises:
        UserError: N cannot be shared by the workers; the configurations are not there; or a setting
            is one that the methods make.
    """
    if N % request.workers:
        raise UserError(
            f"{request.workers} workers cannot share the paper's N = {N} micro-batches: take 1, 2, "
            "4 or 8 (NP, or --workers)"
        )
    refuse_other_folder(request.configs)
    given = settings_given(request.overrides)
    return [
        Cell(corpus, family, method, seed, _trial(request, corpus, family, method, seed, given))
        for seed in request.seeds
        for family in request.families
        for corpus in request.corpora
        for method in request.methods
        if corpus in TABLE_1[family] or not request.known[method].is_at_papers_epsilon
    ]


def _trial(
    request: Request, corpus: str, family: str, method: str, seed: int, given: Dict[str, Any]
) -> TableTrial:
    chosen = request.known[method]
    layers, values = layers_of(request.configs, corpus, family, chosen, is_small=request.is_small)
    values.update({"name": f"{corpus}_{family}_{method}", "training.seed": seed})
    decay = chosen.decay
    if decay:
        values[_SHARE] = N // request.workers
        values["privacy.clipping"] = "ghost"  # the micro-batches of a worker at once
    if decay and chosen.is_at_papers_epsilon:
        epochs = load_config(layers, overrides_of({**values, **given})).training.epochs
        point = paper_point(family, corpus, decay, epochs=epochs)
        assert point is not None  # only the paper's rows are asked for
        values.update({"privacy.noise_multiplier": point.noise_multiplier,
                       "privacy.decay.rate": point.decay.rate})  # fmt: skip
    return TableTrial.of({**values, **given}, layers, workers=request.workers)


def refuse_other_folder(configs: Path) -> None:
    """Refuse a folder that does not hold the shipped configurations."""
    if not (configs / "mechanism").is_dir():
        raise UserError(
            f"{configs} does not hold the shipped configurations: name their folder with --configs"
        )


def settings_given(overrides: Sequence[str]) -> Dict[str, Any]:
    """Return the settings of `key=value` texts, by dotted key; refuse a key of a method."""
    given = {}
    for text in overrides:
        tree: Dict[str, Any] = {}
        override(tree, {}, text)
        key = text.partition("=")[0].strip()
        if any(key == each or key.startswith(f"{each}.") for each in _OF_METHODS):
            raise UserError(f"--set {text}: the table itself sets {key}; leave it out")
        for part in key.split("."):
            tree = tree[part]
        given[key] = tree
    return given


def find_for_cell(
    records: Sequence[Record], config: ExperimentConfig, *, workers: int
) -> List[Record]:
    """Return the records of all runs with these settings.

    The micro-batches may have been shared by more or fewer workers, where as many left none, and
    clipped at once or one at a time, which gives the same sum. Of a file that is not on this
    machine (a checkpoint, word vectors) any content counts, since nobody could train the cell here.
    """
    counts = (workers, *(each for each in (1, 2, 4, 8) if each != workers))
    for count in counts:
        shared = _shared(config, count)
        alike = [one for each in shared for one in records_like(records, each, workers=count)]
        if alike:
            return alike
    absent = set(absent_files(config))
    if not absent or any(key.startswith(_CORPUS) for key in absent):
        return []
    found = []
    for count in counts:
        for each in _shared(config, count):
            wanted = _without(settings_of(each), absent)
            for record in records:
                is_one = (record.results_version, record.workers) == (RESULTS_VERSION, count)
                if is_one and _without(record.settings, absent) == wanted:
                    found.append(record)
    return found


def _shared(config: ExperimentConfig, workers: int) -> List[ExperimentConfig]:
    """Return the same settings for a number of workers, with each way of clipping."""
    if config.privacy.mechanism != "edp_sgd":
        return [config]
    share = replace(config.privacy, micro_batches_per_worker=N // workers)
    ways = (replace(share, clipping=clipping) for clipping in CLIPPINGS)
    return [replace(config, privacy=privacy) for privacy in ways]


def _without(settings: Mapping[str, Any], absent: Set[str]) -> Dict[str, Any]:
    """Settings with no more than whether an absent file was named."""
    return {key: None if key in absent else value for key, value in settings.items()}
