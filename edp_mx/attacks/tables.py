"""The attacks on the runs of a table, by SGD runs: the paper's, whose shadow one is, and LiRA."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from edp_mx.attacks.membership.shadow_attack import OTHER_CORPUS
from edp_mx.errors import UserError
from edp_mx.runs.attack_records import (
    AttackRecord,
    RunKey,
    attack_records_of,
    collect_attacks,
    keep_attacks,
    key_of,
    target_of,
)
from edp_mx.runs.record import absent_files
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.processes import log_of
from edp_mx.runs.sweep.trainings import Budget, Trainings
from edp_mx.runs.sweep.trial import last_sentence
from edp_mx.runs.tables.cells import Cell, Request, cells_of
from edp_mx.runs.tables.fill import is_its_record, lines_of, runs_below

Made = Set[Tuple[Optional[RunKey], str]]  # attacks: the run, and their name
_NAMES = {"shadow": "the paper's attack", "lira": "LiRA"}
_OPTIONS = {"shadow": "--attacks", "lira": "--lira K"}


class Attack(NamedTuple):
    """An attack that a table wants.

    Attributes:
        target: whose run is attacked.
        name: of the attack's folder in the run, `attack-<name>`.
        helper: whose run is the shadow, or has LiRA's shadow models.
    """

    target: Cell
    name: str
    helper: Cell

    @property
    def is_on_itself(self) -> bool:
        """Whether it is the attack that trains LiRA's shadow models, by which others judge too."""
        return self.name == "lira" and self.helper is self.target

    def options(self, helper: RunDirectory, request: Request, jobs: int) -> List[str]:
        """Return what `edp-mx attack` is to be given beside the attacked run."""
        if self.name == "shadow":
            return ["--shadow", str(helper.path)]
        if self.is_on_itself:
            return ["--lira", str(request.lira), "--jobs", str(jobs)]
        return ["--shadows-of", str(helper.path)]


def shadow_cells(request: Request) -> List[Cell]:
    """Return the SGD cells that the attacks need and that the table itself does not ask for."""
    needed = [OTHER_CORPUS[corpus] for corpus in request.corpora if request.is_attacked]
    needed += request.corpora if request.lira else []
    wanted = cells_of(request._replace(corpora=tuple(dict.fromkeys(needed)), methods=("sgd",)))
    is_there = set(request.corpora) if "sgd" in request.methods else set()
    return [cell for cell in wanted if cell.corpus not in is_there]


def want_runs(
    request: Request, cells: Sequence[Cell], shadows: Sequence[Cell], folder: Path, records: Path
) -> None:
    """Have the runs trained again that an attack lacks and of which only the record is left.

    A run that is trained again is attacked again in all ways, for which other runs may be needed.
    Attacks for which a file is missing, such as a warm start, are left out.

    Args:
        folder: of the runs.
        records: the folder of the records of attacks.

    Raises:
        UserError: a run would be trained again, so that an attack on it would be lost which the
            table does not ask for.
    """
    here, made = runs_below(folder), _made(records, request.lira)
    attacks = [
        each
        for each in _attacks(request, cells, shadows)
        if all(_can_be_here(cell, here) for cell in (each.target, each.helper))
    ]
    before, wanted = -1, 0
    while before < wanted:
        for attack in attacks:
            is_made = (_key_of(attack.target), attack.name) in made
            if is_made and not attack.target.trial.is_wanted_again:
                continue
            for trial in (attack.target.trial, attack.helper.trial):
                record = trial.record
                trial.is_wanted_again = record is not None and record["hash"] not in here
        before, wanted = wanted, sum(cell.trial.is_wanted_again for cell in (*cells, *shadows))
    _refuse_losses(request, cells, _made(records, 0))


def _can_be_here(cell: Cell, here: Dict[str, Path]) -> bool:
    """Whether a run is here or can be trained."""
    trial = cell.trial
    if trial.record is None:
        return trial.is_open
    return trial.record["hash"] in here or (
        trial.config is not None and not absent_files(trial.config)
    )


def _refuse_losses(request: Request, cells: Sequence[Cell], made: Made) -> None:
    """Refuse to train a run again without an attack that was made on it."""
    for cell in cells:
        for name, is_asked in (("shadow", request.is_attacked), ("lira", bool(request.lira))):
            is_made = (_key_of(cell), name) in made
            if cell.trial.is_wanted_again and is_made and not is_asked:
                raise UserError(
                    f"--retrain would train {cell.name} again, and {_NAMES[name]} on the run "
                    f"before would be lost: add {_OPTIONS[name]}, which makes it again"
                )


def attack_cells(
    request: Request,
    cells: Sequence[Cell],
    shadows: Sequence[Cell],
    trainings: Trainings,
    budget: Budget,
    *,
    records: Path,
    on_end: Callable[[], None] = lambda: None,
) -> List[str]:
    """Make the attacks on a table's runs that have no record yet, and keep what they came to.

    The paper's attack takes the SGD run on another corpus as its shadow. LiRA trains its shadow
    models on halves of the run's own corpus, with the settings of SGD; it judges the runs of all
    methods by the same ones.

    Args:
        shadows: from `shadow_cells`, trained.
        records: the folder to keep the records of attacks in.
        on_end: told after each attack.

    Returns:
        Why attacks were not made, what they lack or how they failed: a line for those alike.
    """
    here = runs_below(trainings.folder)
    said = []
    for attack in _lacking(request, cells, shadows, here, records):
        run, helper = _run_of(attack.target, here), _run_of(attack.helper, here)
        problem = _obstacle(attack, here)
        if not problem and not budget.permits():
            problem = "not made yet"
        if not problem and run is not None and helper is not None:
            words = [sys.executable, "-m", "edp_mx", "attack", str(run.path)]
            options = attack.options(helper, request, budget.at_once)
            if trainings.run([*words, *options], log_of(run)):
                problem = last_sentence(log_of(run))
            else:
                _keep(run, records)
                on_end()
        if problem:
            said.append((attack.target, f"{_NAMES[attack.name]}: {problem}"))
    return lines_of(said)


def attacks_not_made(
    request: Request, cells: Sequence[Cell], shadows: Sequence[Cell], folder: Path, records: Path
) -> List[str]:
    """Return which attacks have no record, and what they lack, as `attack_cells` does."""
    here = runs_below(folder)
    lacking = _lacking(request, cells, shadows, here, records, is_read_only=True)
    return lines_of(
        (each.target, f"{_NAMES[each.name]}: {_obstacle(each, here) or 'not made yet'}")
        for each in lacking
    )


def _lacking(
    request: Request,
    cells: Sequence[Cell],
    shadows: Sequence[Cell],
    here: Dict[str, Path],
    records: Path,
    *,
    is_read_only: bool = False,
) -> List[Attack]:
    """Return the attacks that are to be made; keep the records of those that were made here.

    Where LiRA lacks a run, its shadow models may be wanted although their own run's is made.
    """
    attacks = list(_attacks(request, cells, shadows))
    runs = [_run_of(attack.target, here) for attack in attacks]
    is_done = [
        run is not None and _is_done(run, attack, request) for run, attack in zip(runs, attacks)
    ]
    for run in {run.path: run for run, done in zip(runs, is_done) if run and done}.values():
        if not is_read_only:
            _keep(run, records)
    made = _made(records, request.lira)
    open_ = [
        not done and (_key_of(attack.target), attack.name) not in made
        for done, attack in zip(is_done, attacks)
    ]
    lenders = {
        attack.helper.name
        for is_open, attack in zip(open_, attacks)
        if is_open and attack.name == "lira" and not _obstacle(attack, here)
    }
    return [
        attack
        for is_open, done, attack in zip(open_, is_done, attacks)
        if is_open or (not done and attack.is_on_itself and attack.target.name in lenders)
    ]


def _is_done(run: RunDirectory, attack: Attack, request: Request) -> bool:
    """Whether an attack was made in a run to its end, LiRA with as many shadow models as asked."""
    made = {each["attack"]: each for each in attack_records_of(run)}
    return attack.name in made and _suffices(made[attack.name], request.lira)


def _keep(run: RunDirectory, records: Path) -> None:
    """Keep the attacks on a run, unless the record there is another run's."""
    if is_its_record(run, records):
        keep_attacks(run, records)


def _obstacle(attack: Attack, here: Dict[str, Path]) -> str:
    """Return why an attack cannot be made, or nothing."""
    cells = [cell for cell in (attack.target, attack.helper) if _run_of(cell, here) is None]
    if not cells:
        return ""
    if any(cell.trial.record is None or cell.trial.is_open for cell in cells):
        return "the run, or one that the attack needs, is not trained yet"
    return "of the run, or of one that the attack needs, only the record is left; see --retrain"


def _attacks(request: Request, cells: Sequence[Cell], shadows: Sequence[Cell]) -> Iterator[Attack]:
    """Yield the attacks on what was trained, SGD's LiRA before those that take its models."""
    sgd = {
        (cell.corpus, cell.family, cell.seed): cell
        for cell in (*shadows, *cells)
        if cell.method == "sgd"
    }
    trained = [cell for cell in cells if cell.trial.record]
    if request.is_attacked:
        for cell in trained:
            yield Attack(cell, "shadow", sgd[OTHER_CORPUS[cell.corpus], cell.family, cell.seed])
    if request.lira:
        lenders = [sgd[cell.corpus, cell.family, cell.seed] for cell in trained]
        for cell in {each.name: each for each in lenders}.values():
            yield Attack(cell, "lira", cell)
        for cell, lender in zip(trained, lenders):
            if cell is not lender:
                yield Attack(cell, "lira", lender)


def _made(records: Path, lira: int) -> Made:
    """The attacks that have a record, of LiRA those with so many shadow models or more."""
    found = collect_attacks([records])
    return {(target_of(each), each["attack"]) for each in found if _suffices(each, lira)}


def _suffices(record: AttackRecord, lira: int) -> bool:
    return record["attack"] != "lira" or (record["shadows"] or 0) >= lira


def _key_of(cell: Cell) -> Optional[RunKey]:
    return key_of(cell.trial.record) if cell.trial.record else None


def _run_of(cell: Cell, here: Dict[str, Path]) -> Optional[RunDirectory]:
    """The run directory of a cell, if it is here."""
    record = cell.trial.record
    place = here.get(record["hash"]) if record else None
    return RunDirectory(place) if place is not None else None
