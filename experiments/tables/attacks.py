"""The attacks on the runs of a table, by SGD runs: the paper's, whose shadow one is, and LiRA."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from edp_mx.attacks.membership.shadow_attack import OTHER_CORPUS
from edp_mx.runs.attack_files import ALIGNED
from edp_mx.runs.attack_records import collect_attacks, keep_whole
from edp_mx.runs.record import absent_files, run_id
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.budget import Budget
from edp_mx.runs.sweep.processes import log_of
from edp_mx.runs.sweep.trial import last_sentence
from experiments.tables.cells import Cell, Request, Table, cells_of
from experiments.tables.fill import fill, lines_of, look_up, runs_below
from experiments.tables.trainings import Trainings

Made = Set[Tuple[str, str]]  # attacks: the run's id, and their name
_NAMES = {"shadow": "the paper's attack", "lira": "LiRA"}


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

    def is_among(self, made: Made) -> bool:
        """Return whether it was made on one of the runs of its target."""
        return any((run_id(each), self.name) in made for each in self.target.trial.records)

    @property
    def is_on_itself(self) -> bool:
        """Whether it is the attack that trains LiRA's shadow models, by which others judge too."""
        return self.name == "lira" and self.helper is self.target

    def options(self, helper: RunDirectory, request: Request, jobs: int) -> List[str]:
        """Return the options of `edp-mx attack` beside the attacked run."""
        if self.name == "shadow":
            return ["--shadow", str(helper.path)]
        if self.is_on_itself:
            return ["--lira", str(request.lira), "--jobs", str(jobs)]
        return ["--shadows-of", str(helper.path)]


def shadow_cells(request: Request) -> List[Cell]:
    """Return the SGD cells that the attacks need and that the table itself does not ask for."""
    needed = [(corpus, request.seeds[:1]) for corpus in request.corpora if request.lira]
    if request.is_attacked:
        needed += [(OTHER_CORPUS[corpus], request.seeds) for corpus in request.corpora]
    is_there = set(request.corpora) if "sgd" in request.methods else set()
    wanted = [
        cell
        for corpus, seeds in needed
        if corpus not in is_there
        for cell in cells_of(request._replace(corpora=(corpus,), methods=("sgd",), seeds=seeds))
    ]
    return list({cell.name: cell for cell in wanted}.values())


def make(
    table: Table,
    budget: Budget,
    *,
    is_retried: bool = False,
    is_read_only: bool = False,
    makes_again: bool = True,
    on_end: Callable[[], object] = lambda: None,
) -> List[str]:
    """Train what a table lacks, attack its runs, and return which attacks are not made, and why.

    Args:
        is_retried: train failed runs again.
        is_read_only: give each cell its records, and train and attack nothing.
        makes_again: train runs again that an attack needs and of which only the records are left.
        on_end: called after each training and each attack.
    """
    trainings = Trainings(
        table.runs,
        workers=table.request.workers,
        kept=table.records,
        is_retried=is_retried,
        is_read_only=is_read_only,
    )
    with closing(trainings):
        look_up(table.trainings, trainings)
        if makes_again:
            want_runs(table)
        if is_read_only:
            return attack_cells(table, trainings, Budget(runs=0))  # which permits none
        fill(table, trainings, budget, on_end)
        return attack_cells(table, trainings, budget, on_end)


def want_runs(table: Table) -> None:
    """Have the runs made again that an attack lacks and of which only the records are left.

    Attacks for which a file is missing, such as a warm start, are left out.
    """
    here, made = runs_below(table.runs), _made([table.records, table.runs], table.request.lira)
    for attack in _attacks(table):
        both = (attack.target, attack.helper)
        if attack.is_among(made) or not all(_can_be_here(cell, here) for cell in both):
            continue
        for cell in both:
            cell.trial.is_wanted_again = bool(cell.trial.records) and _run_of(cell, here) is None


def _can_be_here(cell: Cell, here: Dict[str, Path]) -> bool:
    """Whether a run is here or can be trained."""
    trial = cell.trial
    if not trial.records:
        return trial.is_open
    can_be_trained = trial.config is not None and not absent_files(trial.config)
    return _run_of(cell, here) is not None or can_be_trained


def attack_cells(
    table: Table, trainings: Trainings, budget: Budget, on_end: Callable[[], object] = lambda: None
) -> List[str]:
    """Make the attacks on a table's runs that have no record yet, and keep their outcomes.

    The paper's attack takes the SGD run on another corpus as its shadow. LiRA trains its shadow
    models on halves of the run's own corpus, with the settings of SGD and the first seed; it judges
    the runs of all methods and seeds by the same ones, since all of them have the same split.

    Returns:
        Why attacks were not made or failed: one line for all with the same reason.
    """
    here = runs_below(table.runs)
    said = []
    for attack in _lacking(table, here):
        problem = _obstacle(attack, here)
        if not problem and not budget.permits():
            problem = "not made yet"
        run, helper = _run_of(attack.target, here), _run_of(attack.helper, here)
        if not problem and run is not None and helper is not None:
            options = attack.options(helper, table.request, budget.at_once)
            problem = _attack(run, options, trainings, table.records)
            on_end()
        if problem:
            said.append((attack.target, f"{_NAMES[attack.name]}: {problem}"))
    return lines_of(said)


def _attack(run: RunDirectory, options: List[str], trainings: Trainings, records: Path) -> str:
    """Attack a run and keep the outcome; return the error, if any."""
    words = [sys.executable, "-m", "edp_mx", "attack", str(run.path)]
    if trainings.run([*words, *options], log_of(run)):
        return last_sentence(log_of(run))
    keep_whole(run, records)
    return ""


def _lacking(table: Table, here: Dict[str, Path]) -> List[Attack]:
    """The attacks that none of a cell's runs has.

    Where LiRA lacks a run, its shadow models may be wanted although their own run's is made.
    """
    lira = table.request.lira
    made = _made([table.records, table.runs], lira)
    attacks = [(each, each.is_among(made)) for each in _attacks(table)]
    lenders = {
        each.helper.name
        for each, is_made in attacks
        if not is_made and each.name == "lira" and not _obstacle(each, here)
    }

    def lacks_models(attack: Attack) -> bool:
        run = _run_of(attack.target, here)
        if run is None or not attack.is_on_itself or attack.target.name not in lenders:
            return False
        return not attack.is_among(_made([run.path], lira))

    return [each for each, is_made in attacks if not is_made or lacks_models(each)]


def _obstacle(attack: Attack, here: Dict[str, Path]) -> str:
    """Return why an attack cannot be made, or nothing."""
    cells = [cell for cell in (attack.target, attack.helper) if _run_of(cell, here) is None]
    if not cells:
        return ""
    if any(not cell.trial.records or cell.trial.is_open for cell in cells):
        return "the run, or one that the attack needs, is not trained yet"
    return "of the run, or of one that the attack needs, only the record is left; see --retrain"


def _attacks(table: Table) -> Iterator[Attack]:
    """Yield the attacks on trained runs, SGD's LiRA before the attacks that use its models."""
    every = (*table.shadows, *table.cells)
    sgd = {(each.corpus, each.family, each.seed): each for each in every if each.method == "sgd"}
    trained = [cell for cell in table.cells if cell.trial.records]
    if table.request.is_attacked:
        for cell in trained:
            yield Attack(cell, "shadow", sgd[OTHER_CORPUS[cell.corpus], cell.family, cell.seed])
    if table.request.lira:
        first = table.request.seeds[0]
        lenders = [sgd[cell.corpus, cell.family, first] for cell in trained]
        for cell in {each.name: each for each in lenders}.values():
            yield Attack(cell, "lira", cell)
        for cell, lender in zip(trained, lenders):
            if cell is not lender:
                yield Attack(cell, "lira", lender)


def _made(places: Sequence[Path], lira: int) -> Made:
    """The attacks that were made; LiRA's only in full, with so many shadow models or more."""
    usual = (each for each in collect_attacks(places) if not each.chosen)
    return {(each.run, each.attack) for each in usual if each.attack != "lira"
            or (ALIGNED in each.success and (each.shadows or 0) >= lira)}  # fmt: skip


def _run_of(cell: Cell, here: Dict[str, Path]) -> Optional[RunDirectory]:
    """The first run directory of a cell that is here."""
    places = (here.get(run_id(record)) for record in cell.trial.records)
    return next((RunDirectory(place) for place in places if place), None)
