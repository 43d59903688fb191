"""The attacks on the runs of a table, by SGD runs: the paper's, whose shadow one is, and LiRA."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from edp_mx.attacks.membership.shadow_attack import OTHER_CORPUS
from edp_mx.runs.attack_records import collect_attacks, keep_attacks
from edp_mx.runs.record import absent_files
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.processes import log_of
from edp_mx.runs.sweep.trainings import Budget, Trainings
from edp_mx.runs.sweep.trial import last_sentence
from edp_mx.runs.tables.cells import Cell, Request, cells_of
from edp_mx.runs.tables.fill import runs_below


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

    def options(self, helper: RunDirectory, request: Request, jobs: int) -> List[str]:
        """Return what `edp-mx attack` is to be given beside the attacked run."""
        if self.name == "shadow":
            return ["--shadow", str(helper.path)]
        if self.helper is self.target:
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
    Those for which a file is missing, such as a warm start, are left out.

    Args:
        folder: of the runs.
        records: the folder of the records of attacks.
    """
    here, made = runs_below(folder), _made(records)
    attacks = list(_attacks(request, cells, shadows))
    before, wanted = -1, 0
    while before < wanted:
        for attack in attacks:
            is_made = (_hash_of(attack.target), attack.name) in made
            if is_made and not attack.target.trial.is_wanted_again:
                continue
            for trial in (attack.target.trial, attack.helper.trial):
                if trial.record and trial.config and not absent_files(trial.config):
                    trial.is_wanted_again = trial.record["hash"] not in here
        before, wanted = wanted, sum(cell.trial.is_wanted_again for cell in (*cells, *shadows))


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
        A line for each attack that was not made: what it lacks, or how it failed.
    """
    here = runs_below(trainings.folder)
    made = _made(records)
    said = []
    for attack in _attacks(request, cells, shadows):
        run, helper = _run_of(attack.target, here), _run_of(attack.helper, here)
        if run is not None and (run.path / f"attack-{attack.name}" / "attack.json").exists():
            keep_attacks(run, records)
            continue
        if (_hash_of(attack.target), attack.name) in made:
            continue
        name = f"attack on {attack.target.name}"
        if run is None or helper is None:
            lacking = attack.target if run is None else attack.helper
            is_gone = lacking.trial.record is not None
            why = "of which only the record is left" if is_gone else "which is not trained yet"
            said.append(f"{name}: needs {lacking.name}, {why}{'; see --retrain' * is_gone}")
        elif not budget.permits():
            said.append(f"{name}: not made yet")
        else:
            words = [sys.executable, "-m", "edp_mx", "attack", str(run.path)]
            options = attack.options(helper, request, budget.at_once)
            if trainings.run([*words, *options], log_of(run)):
                said.append(f"{name}: {last_sentence(log_of(run))}")
            else:
                keep_attacks(run, records)
                on_end()
    return list(dict.fromkeys(said))


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


def _made(records: Path) -> Set[Tuple[Optional[str], str]]:
    """The attacks that have a record: the hash of the run, and their name."""
    return {(each["attacked_run"], each["attack"]) for each in collect_attacks([records])}


def _hash_of(cell: Cell) -> Optional[str]:
    return cell.trial.record["hash"] if cell.trial.record else None


def _run_of(cell: Cell, here: Dict[str, Path]) -> Optional[RunDirectory]:
    """The run directory of a cell, if it is here."""
    place = here.get(_hash_of(cell) or "")
    return RunDirectory(place) if place is not None else None
