"""Membership inference against SER: eDP-SGD, DP-SGD, and plain under-fitting.

Small models, as `experiments.table1 --small` trains them. Each run is attacked by the paper's
attack and by LiRA; what has a record in results/tradeoff is not trained again, but for what
--retrain says. Writes results/tradeoff.md and docs/pictures/tradeoff.png. With --dry-run it trains
nothing.
"""

import argparse
import sys
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from edp_mx.cli.console import add_budget_hours, whole
from edp_mx.runs.attack_records import collect_attacks
from edp_mx.runs.measurements import Measurement
from edp_mx.runs.record import run_id
from edp_mx.runs.records import value_of
from edp_mx.runs.sweep.budget import Budget
from edp_mx.runtime.files import write_text
from edp_mx.runtime.progress import start_logging
from experiments.command import main
from experiments.pages.tradeoff import Curve, Point, draw, page
from experiments.tables.attacks import make, shadow_cells
from experiments.tables.cells import Cell, Request, Table, cells_of
from experiments.tables.fill import problems
from experiments.tables.methods import FAMILIES, Method
from experiments.tables.query import all_measurements, entry_of, successes_of

PAGE, PICTURE = Path("results/tradeoff.md"), Path("docs/pictures/tradeoff.png")
RECORDS, RUNS = Path("results/tradeoff"), Path("runs/tradeoff")
EXAMPLES = "example: python -m experiments.tradeoff --corpora atis --models clc --seeds 0 1 2"
CORPORA = ("atis", "snips")
# z₀ by how α is divided: where noise begins to cost something, and as far as a model learns.
NOISES = {"norm": (1e-3, 0.01, 0.03, 0.1, 0.3), "largest": (1e-4, 1e-3, 0.01, 0.03, 0.1)}
EPSILONS = (8, 100, 1000)
RATES = {"clc": 6e-3, "bert": 1e-3}  # of configs/small
DROPOUTS = {"clc": (0.5, 0.7), "bert": (0.3, 0.5)}
SGD, NONE = "mechanism/sgd.yaml", "mechanism/edp_none.yaml"
NOISE, UNIT = "privacy.noise_multiplier", "privacy.layer_scales_unit"


def curves_of(family: str) -> List[Curve]:
    """Return the compared methods of a family of models."""
    rate = RATES[family]
    epsilons = {
        f"dp_sgd_{each}": Method(
            f"ε = {each}",
            "mechanism/dp_sgd.yaml",
            {"privacy.target_epsilon": each, "training.batch_size": 128, "training.epochs": 20,
             "training.learning_rate": rate / 2},
        )
        for each in EPSILONS
    }  # fmt: skip
    edp = [
        Curve(f"eDP-SGD, α {said}", {f"{unit}_{z:g}": _edp(unit, z) for z in NOISES[unit]})
        for unit, said in (("norm", "as norms"), ("largest", "÷ largest"))
    ]
    plain = [
        _plain("other epochs", "training.epochs", (2, 4, 8), "after {} epochs"),
        _plain("weight decay", "training.weight_decay", (1e-4, 1e-3), "λ = {}"),
        _plain("dropout", "model.dropout", DROPOUTS[family], "{} of the units"),
        _plain("smaller rate", "training.learning_rate", (rate / 4, rate / 16), "{}"),
    ]
    sgd = Curve("SGD", {"sgd": Method("as it is", SGD, {})}, is_plain=True)
    return [sgd, *edp, Curve("DP-SGD", epsilons), *plain, _units(), *_decays()]


def _edp(unit: str, z: float) -> Method:
    return Method(f"z₀ = {z:g}", NONE, {NOISE: z, UNIT: unit}, "none")


def _plain(name: str, key: str, values: Sequence[float], said: str) -> Curve:
    points = {
        f"sgd_{key.rpartition('.')[2]}_{value:g}": Method(
            said.format(f"{value:g}"), SGD, {key: value}
        )
        for value in values
    }
    return Curve(f"SGD, {name}", points, is_plain=True)


def _units() -> Curve:
    """The same loss in other units: α grows by c, and the paper's count does not see it."""
    points = {
        f"norm_0.1_times_{c}": Method(
            f"c = {c}", NONE, {NOISE: 0.1, UNIT: "norm", "training.loss_factor": c}, "none"
        )
        for c in (10, 100)
    }
    return Curve("eDP-SGD, α as norms, z₀ = 0.1, loss × c", points, only=("atis", "clc"))


def _decays() -> Iterator[Curve]:
    """Noise that costs something at first, and then falls; α ÷ largest."""
    for z, (kind, taus) in product(
        (0.01, 0.1), (("linear", (0.1, 0.5, 0.9)), ("exponential", (0.05, 0.1, 0.2)))
    ):
        points = {
            f"{kind}_{z:g}_{tau:g}": Method(
                f"τ = {tau:g}", f"mechanism/edp_{kind}.yaml",
                {NOISE: z, UNIT: "largest", "privacy.decay.rate": tau}, kind,
            )
            for tau in taus
        }  # fmt: skip
        yield Curve(f"eDP-SGD, α ÷ largest, z₀ = {z:g}, {kind} decay", points, only=("atis", "clc"))


def requests_of(arguments: argparse.Namespace) -> Iterator[Request]:
    """Yield the trainings: the curves of all corpora, then the curves of one alone."""
    for family in arguments.models:
        curves = curves_of(family)
        known = {name: method for curve in curves for name, method in curve.points.items()}
        shared = [name for curve in curves if not curve.only for name in curve.points]
        own: Dict[Tuple[str, str], List[str]] = {}
        for curve in curves:
            if curve.only:
                own.setdefault(curve.only, []).extend(curve.points)
        asked = [(corpus, shared, arguments.seeds) for corpus in arguments.corpora]
        asked += [(corpus, names, arguments.seeds[:1]) for (corpus, its), names in own.items()
                  if its == family and corpus in arguments.corpora]  # fmt: skip
        for corpus, methods, seeds in asked:
            yield Request(
                Path("configs"), [corpus], [family], methods, seeds, is_attacked=True,
                lira=arguments.lira, is_small=True, known=known,
            )  # fmt: skip


def train(request: Request, cells: Sequence[Cell], arguments: argparse.Namespace) -> List[str]:
    """Train and attack the points without a record; return the missing ones."""
    said = make(
        Table(request, cells, shadow_cells(request), arguments.runs, RECORDS),
        Budget(hours=arguments.budget_hours),
        is_read_only=arguments.dry_run,
        makes_again=arguments.retrain,
    )
    return [*problems(cells), *said]


def points_of(cells: Sequence[Cell]) -> Dict[Tuple[str, str], List[Point]]:
    """Return the measurements, by corpus and family, in the order of the curves.

    All of a place are from one start: of several pre-trainings, that which most points have. A
    point with the runs of an earlier one, as of SGD after as many epochs, is left out.
    """
    every = [record for cell in cells for record in cell.trial.records]
    success = successes_of(collect_attacks([RECORDS]), every)
    attacked = Counter(run for run, _ in success)
    found: Dict[Tuple[str, str], List[Point]] = {}
    for place in dict.fromkeys((cell.corpus, cell.family) for cell in cells):
        of_place = [cell for cell in cells if (cell.corpus, cell.family) == place]
        points = [(curve, name) for curve in curves_of(place[1]) for name in curve.points]
        made = [
            all_measurements(
                [record for cell in of_place if cell.method == name
                 for record in cell.trial.records], success)
            for _, name in points
        ]  # fmt: skip
        starts = Counter(start for its in made for start in {_start(each) for each in its})
        for (curve, name), its in zip(points, made):
            alike = [each for each in its if _start(each) == max(starts, key=starts.__getitem__)]
            if alike:
                best = min(alike, key=lambda each: (-_attacks(each, attacked), each.validation))
                point = Point(curve.points[name].name, curve, entry_of(best.records, success))
                earlier = found.setdefault(place, [])
                if all(each.entry.records != point.entry.records for each in earlier):
                    earlier.append(point)
    return found


def _start(measured: Measurement) -> Any:
    return value_of(measured.records[0], "model.checkpoint")


def _attacks(measured: Measurement, attacked: Counter[str]) -> int:
    return sum(attacked[run_id(record)] for record in measured.records)


def measured(arguments: argparse.Namespace) -> Tuple[Dict[Tuple[str, str], List[Point]], str]:
    """Carry out the options; return the points, and the page."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    asked = [(request, cells_of(request)) for request in requests_of(arguments)]
    lacking = [line for request, cells in asked for line in train(request, cells, arguments)]
    found = points_of([cell for _, its in asked for cell in its])
    options = [
        f"--{name} {' '.join(map(str, getattr(arguments, name)))}"
        for name in ("corpora", "models", "seeds")
    ]
    return found, page(found, lacking, " ".join(options))


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--corpora", nargs="+", default=CORPORA, choices=CORPORA, help="all")
    add("--models", nargs="+", default=FAMILIES, choices=FAMILIES, help="all")
    add("--seeds", nargs="+", type=whole, default=[0], help="one run for each (0)")
    add("--lira", type=whole, default=16, help="shadow models (16)")
    add_budget_hours(parser)
    add("--runs", type=Path, default=RUNS, help=f"for the run directories ({RUNS})")
    add("--retrain", action="store_true",
        help="train again runs that an attack needs and that only have a record")  # fmt: skip
    add("--dry-run", action="store_true", help="train nothing")


def run(arguments: argparse.Namespace) -> int:
    start_logging(is_first=True)
    found, text = measured(arguments)
    write_text(PAGE, text)
    if found:
        draw(found, PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main("tradeoff", sys.argv[1:]))
