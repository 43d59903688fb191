"""The sections of results/performance.md: what is run for each, within what time, and its bars."""

import statistics
from dataclasses import dataclass
from typing import Sequence, Tuple


@dataclass(frozen=True)
class Bar:
    """A limit for the median of one figure of a benchmark."""

    figure: str  # its name in what the benchmark records
    limit: float
    guard: float  # the limit with slack, for a test that a busy machine may not fail
    is_least: bool = False  # whether the figure is to be at least the limit, not at most
    digits: int = 2  # that are shown

    def holds(self, values: Sequence[float], *, limit: float) -> bool:
        """Return whether the median keeps to a limit: the bar's own, or its guard."""
        median = statistics.median(values)
        return median >= limit if self.is_least else median <= limit


@dataclass(frozen=True)
class Section:
    """One benchmark, as it is run for the page."""

    name: str
    title: str
    script: str  # the file in benchmarks/ and its options
    seconds: int  # the budget
    bars: Tuple[Bar, ...]
    note: str = ""
    workers: int = 1  # started by horovodrun if more than one

    @property
    def command(self) -> str:
        """As one would type it in the project's root."""
        launcher = f".venv/bin/horovodrun --gloo -np {self.workers} " if self.workers > 1 else ""
        return f"{launcher}.venv/bin/python benchmarks/{self.script}"


def _both(what: str, limit: float, guard: float, **how) -> Tuple[Bar, ...]:
    """The same bar for both families of models."""
    return tuple(Bar(f"{family}, {what}", limit, guard, **how) for family in ("CLC", "BERT"))


SECTIONS = (
    Section(
        "step",
        "What privacy costs a step",
        "step_cost.py --variants edp_sgd dp_sgd_ghost --rounds 15",
        100,
        (
            *_both("edp_sgd ÷ sgd", 1.07, 1.25, digits=3),
            Bar("CLC, dp_sgd_ghost ÷ sgd", 1.7, 2.0),
            Bar("BERT, dp_sgd_ghost ÷ sgd", 1.5, 2.0),
            *_both("dp_sgd_ghost ÷ sgd, peak memory", 1.5, 1.7),
        ),
    ),
    Section(
        "short",
        "The same with short utterances",
        "step_cost.py --no-peak --variants edp_sgd --tokens 8 --rounds 25",
        45,
        _both("edp_sgd ÷ sgd", 1.12, 1.4, digits=3),
    ),
    Section(
        "two",
        "The same with two workers",
        "step_cost.py --no-peak --variants edp_sgd --rounds 7",
        55,
        _both("edp_sgd ÷ sgd", 1.12, 1.4, digits=3),
        note="The all-reduce does not overlap with the backward pass: a worker may send nothing "
        "before it is clipped, by the norm of its whole gradient, and noised.",
        workers=2,
    ),
    Section(
        "noise",
        "Noise, scaled and added, beside MXNet's operators",
        "noise_cost.py --rounds 7",
        27,
        tuple(
            Bar(f"MXNet's operators ÷ ours, {n} thread(s)", 8.0, 4.0, is_least=True, digits=1)
            for n in (1, 2)
        ),
    ),
    Section(
        "crf",
        "The CRF's share of a step",
        "step_cost.py --no-peak --variants crf --rounds 7",
        20,
        _both("crf ÷ sgd", 0.06, 0.12, digits=3),
    ),
    Section(
        "peers",
        "Our plain step beside PyTorch's",
        "peers.py --plain --rounds 5",
        40,
        (
            Bar("CLC, edp_mx sgd ÷ torch sgd", 1.2, 2.4),
            Bar("BERT, edp_mx sgd ÷ torch sgd", 1.0, 2.0),
        ),
    ),
    Section(
        "opacus",
        "DP-SGD beside Opacus",
        "peers.py --model bert --rounds 3",
        50,
        (
            Bar("BERT, edp_mx dp_sgd_ghost ÷ torch opacus_ghost", 1.0, 1.5),
            Bar("BERT, edp_mx dp_sgd_ghost ÷ torch opacus_hooks", 1.0, 1.5),
        ),
        note="Opacus unrolls CLC's LSTM: `benchmarks/peers.py --model clc --rounds 1` takes "
        "minutes, and is left out here.",
    ),
    Section(
        "workers",
        "N workers on this machine",
        "worker_cost.py --rounds 5 --steps 1",
        75,
        (
            *_both("2 workers ÷ one", 0.9, 0.7, is_least=True),
            *_both("8 workers ÷ one", 0.9, 0.3, is_least=True),
        ),
    ),
    Section(
        "data",
        "Data: starts, batches, memory",
        "data_speed.py --rounds 2",
        90,
        (
            Bar("seconds to start on 1,000,000 cached utterances", 5.0, 15.0),
            Bar("anonymous memory of 1,000,000 ÷ 100,000 utterances", 1.1, 2.0),
            Bar("time per utterance of 1,000,000 ÷ 10,000, batches", 1.5, 4.0),
            *_both("batches ÷ steps in the same time", 20, 10, is_least=True, digits=0),
        ),
    ),
    Section(
        "evaluation",
        "Evaluation, attack and prediction beside training",
        "evaluation_speed.py --rounds 2",
        60,
        tuple(
            bar
            for way in ("evaluate", "attack", "predict")
            for bar in _both(f"{way} ÷ train, utterances/s", 3.0, 1.5, is_least=True)
        ),
    ),
)
