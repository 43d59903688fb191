"""The 36 log₁₀ ε of the paper's Table 1, with settings that reproduce each, and the ε that holds.

Here T is one number for each model; of the rates τ that the paper searched that one is taken whose
z₀ is nearest to that of the same corpus without decay.
"""

import argparse
import math
import sys
from pathlib import Path
from typing import Iterator, List, NamedTuple, Sequence

from edp_mx.dp.accounting.accountants import count_claimed
from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.counting import as_published, count_as_published, count_what_holds
from edp_mx.dp.accounting.events import Composition
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release
from edp_mx.reports.table import render_table
from edp_mx.runtime.files import write_text
from experiments.command import main
from experiments.tables.paper import DECAY_RATES, TABLE_1, name_of
from experiments.tables.paper_point import LARGEST, SMALLEST, TOLERANCE, delta_of, paper_point

EPOCHS = (50, 40, 30, 20, 10)  # T, largest first
RELEASE = Release(
    unit="micro_batch",
    num_workers=8,  # p3.16xlarge
    micro_batch_size=8,  # any above 1: κ = 2
    max_grad_norm=1.0,
    layer_scales=(1.0,),
    adjacency="replace_one",
    variant="published",
)

EXAMPLES = "example: python -m experiments.paper_epsilons --out docs/paper_epsilons.md"
HEADER = """\
# The paper's 36 epsilons, and the ones that hold

Made by `python -m experiments.paper_epsilons --out docs/paper_epsilons.md`; checked by
`tests/unit/experiments/test_paper_epsilons.py`.

Table 1 of *An Efficient DP-SGD Mechanism for Large Scale NLU Models* gives log10 of ε. It was
counted by ρ = Σ 1/(2 z_t²), once per epoch, and ε = ρ + 2√(ρ ln 1/δ), with δ = 5e-4 (ATIS, SNIPS,
NLU-eval) or 5e-5 (Health, Comm., Video). Which z₀, τ and number of epochs T belong to a row is not
said. Here is one choice for each from the ranges that were searched (z₀ from 1e-6 to 1, τ from the
stated sets), with one T per model, that reproduces all 36 to ±0.1.

**Holds** is ε for N = 8 workers and micro-batches of several utterances, exactly converted. The
noise on the aggregate is 1/√8 of what the count takes it for, and one utterance moves it twice as
far, so that ρ is 32 times larger and log10 ε grows by up to 1.5. It is granted that the layer
scales α had been public: the paper takes them from the first private gradient, which makes every
one of these ε infinite.

No row is a guarantee: the smallest ε that holds is {smallest:.0f}. † marks rows whose noise in the
last epoch is below what float32 resolves (2⁻¹⁹ of what may be clipped): no ε holds at all, and the
number is what would hold if all of the noise had been added.

"""
COLUMNS = ("model, corpus, decay", "paper", "z0", "tau", "T", "delta", "as published",
           "holds, N = 8", "calibrated")  # fmt: skip
FOOTER = """
*As published* and *holds* are log10 ε. *calibrated* is what the same z₀, τ and T come to, exactly
converted, in `variant: calibrated`, where the multiplier is what it says. Any row in full:

    edp-mx account --noise-multiplier Z0 --epochs T --delta DELTA --workers 8 --set \\
        privacy.variant=published privacy.decay.kind=KIND privacy.decay.rate=TAU
"""


class Row(NamedTuple):
    """One ε of the paper with a plan that reproduces it."""

    model: str
    corpus: str
    paper: float
    plan: Plan

    @property
    def as_published(self) -> float:
        """log10 ε."""
        return _log10(count_as_published(self.plan, self.plan.entries()))

    @property
    def holds(self) -> float:
        """log10 ε, with 8 workers and κ = 2, if all of the noise is added."""
        return _log10(self._count(self.plan.composition(self.plan.entries())))

    def cells(self) -> List[str]:
        plan, entries = self.plan, self.plan.entries()
        calibrated = _log10(self._count(as_published(entries)))
        # † where float32 does not add all of the noise in the last epoch
        mark = " †" if count_what_holds(plan, entries).reasons else ""
        return [
            f"{self.model}, {self.corpus}, {plan.decay.kind}{mark}",
            f"{self.paper:.1f}",
            f"{plan.noise_multiplier:.3g}",
            f"{plan.decay.rate:g}" if plan.decay.rate else "",
            str(plan.epochs),
            f"{plan.delta:g}",
            *(f"{value:.2f}" for value in (self.as_published, self.holds, calibrated)),
        ]

    def _count(self, composition: Composition) -> Bound:
        return count_claimed(composition, delta=self.plan.delta)


def _log10(bound: Bound) -> float:
    return bound.epsilon.log / math.log(10)


def rows() -> List[Row]:
    """Return all 36, in the order of the paper's table."""
    return [row for model in TABLE_1 for row in _rows_of(model)]


def _rows_of(model: str) -> List[Row]:
    """Return the cells of one model, with the largest T for which each has settings."""
    for epochs in EPOCHS:
        found = list(_with_epochs(model, epochs))
        if len(found) == len(DECAY_RATES) * len(TABLE_1[model]):
            return found
    raise SystemExit(f"no T of {EPOCHS} reproduces all rows of {model}")


def _with_epochs(model: str, epochs: int) -> Iterator[Row]:
    """Yield the rows that T epochs can reproduce with a z₀ inside of the range searched."""
    for corpus, row in TABLE_1[model].items():
        for kind, change in row.changes.items():
            point = paper_point(model, corpus, kind, epochs=epochs)
            assert point is not None
            z = min(max(point.noise_multiplier, SMALLEST), LARGEST)
            plan = Plan(RELEASE, z, point.decay, epochs, delta=delta_of(corpus))
            found = Row(model.upper(), name_of(corpus), change.log10_epsilon, plan)
            if abs(found.as_published - found.paper) <= TOLERANCE:
                yield found


def page(found: Sequence[Row]) -> str:
    smallest = 10 ** min(row.holds for row in found)
    table = render_table(COLUMNS, [row.cells() for row in found])
    return f"{HEADER.format(smallest=smallest)}{table}\n{FOOTER}"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, metavar="FILE.md", help="where to write; left out, it is printed"
    )


def run(arguments: argparse.Namespace) -> int:
    text = page(rows())
    if arguments.out:
        write_text(arguments.out, text)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main("paper_epsilons", sys.argv[1:]))
