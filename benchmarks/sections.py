"""The sections of results/performance.md: what is run for each, within what time, and its bars."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, List, Tuple

from bars import Bar, quotient
from worker_cost import EACH, throughput

ROOT = Path(__file__).resolve().parents[1]
FAMILIES = ("clc", "bert")
PEERS = ".venv-peers/bin/python"
NEEDS_PEERS = "it needs PyTorch, which benchmarks/setup_peers.sh installs into .venv-peers"
NEEDS_ATIS = "it needs ATIS, which `edp-mx data fetch atis` brings"


@dataclass(frozen=True)
class Section:
    """One benchmark, as it is run for the page.

    Attributes:
        name: by which `--only` knows it.
        title: its heading.
        arguments: the script in benchmarks/ and its options.
        seconds: the budget.
        bars: what its figures are held against.
        note: what a reader should know besides.
        workers: started by horovodrun if more than one.
        needs: a file that must be there, below the project's root.
        missing: what else must be there, said where nothing was measured.
    """

    name: str
    title: str
    arguments: Tuple[str, ...]
    seconds: int
    bars: Tuple[Bar, ...] = ()
    note: str = ""
    workers: int = 1
    needs: str = "."
    missing: str = ""

    @property
    def is_possible(self) -> bool:
        """Whether what it needs is there."""
        return (ROOT / self.needs).exists()

    @property
    def command(self) -> str:
        """As one would type it in the project's root."""
        launcher = f".venv/bin/horovodrun --gloo -np {self.workers} " if self.workers > 1 else ""
        script, *options = self.arguments
        return " ".join([f"{launcher}.venv/bin/python benchmarks/{script}", *options])


def _step_bars(limit: float, guard: float, how: str = "") -> Tuple[Bar, ...]:
    """eDP-SGD's step in SGD's."""
    return tuple(
        Bar(
            f"{family.upper()}{how}, eDP-SGD ÷ SGD",
            quotient(family, "seconds", of="edp_sgd", by="sgd"),
            limit,
            guard,
            digits=3,
        )
        for family in FAMILIES
    )


def _ghost_bars() -> Iterator[Bar]:
    """DP-SGD's step by ghost clipping in SGD's, and its peak memory."""
    for family, limit in (("clc", 1.7), ("bert", 1.5)):
        name, ghost = family.upper(), {"of": "dp_sgd_ghost", "by": "sgd"}
        yield Bar(
            f"{name}, DP-SGD by ghost ÷ SGD", quotient(family, "seconds", **ghost), limit, 2.0
        )
        yield Bar(f"{name}, the same in peak memory", _peak(family, **ghost), 1.5, 1.7)


def _peak(family: str, *, of: str, by: str) -> Callable[[Any], List[float]]:
    """Reads one variant's peak memory over another's."""
    return lambda measured: [measured[family]["peak_mb"][of] / measured[family]["peak_mb"][by]]


def _opacus_bars() -> Iterator[Bar]:
    """Our ghost step in Opacus' steps."""
    for peer in ("ghost", "hooks"):
        read = quotient("bert", "seconds", of="edp_mx dp_sgd_ghost", by=f"torch opacus_{peer}")
        yield Bar(f"BERT, our ghost ÷ Opacus' {peer}", read, 1.0, 1.5)


def _throughput_bar(family: str, number: str, guard: float) -> Bar:
    """What N workers, each with a micro-batch, get done in the time of one."""

    def read(measured: Any) -> List[float]:
        return quotient(of=number, by="1")(throughput(measured[family], EACH))

    what = f"{family.upper()}, {number} {EACH} ÷ one worker"
    return Bar(what, read, 0.9, guard, is_least=True)


def _warm(size: str, what: str) -> Callable[[Any], List[float]]:
    """Reads what each start of a size took, the corpus being kept already."""
    return lambda measured: [one[what] for one in measured["starts"][size]["warm"]]


def _memory_growth(measured: Any) -> List[float]:
    """MB with an epoch of a million utterances in those of a tenth of them, round by round."""
    sizes = {size: _warm(size, "anonymous_epoch")(measured) for size in ("100000", "1000000")}
    return quotient(of="1000000", by="100000")(sizes)


def _linear(measured: Any) -> List[float]:
    """What an utterance costs in an epoch's batches, of a million and of ten thousand."""
    sizes = {size: _warm(size, "thousand")(measured) for size in ("10000", "1000000")}
    return quotient(of="1000000", by="10000")(sizes)


def _each(make: Callable[[str], Bar]) -> Tuple[Bar, ...]:
    """One for each family."""
    return tuple(make(family) for family in FAMILIES)


SECTIONS = (
    Section(
        "step",
        "What privacy costs a step",
        ("step_cost.py", "--variants", "dp_sgd_ghost", "--rounds", "15"),
        100,
        (*_step_bars(1.07, 1.25), *_ghost_bars()),
    ),
    Section(
        "short",
        "The same with short utterances",
        ("step_cost.py", "--no-peak", "--variants", "edp_sgd", "--tokens", "8", "--rounds", "25"),
        45,
        _step_bars(1.12, 1.4, how=", short utterances"),
    ),
    Section(
        "two",
        "The same with two workers",
        ("step_cost.py", "--no-peak", "--variants", "edp_sgd", "--rounds", "7"),
        55,
        _step_bars(1.12, 1.4, how=", two workers"),
        note="The all-reduce does not overlap with the backward pass: a worker may send nothing "
        "before it is clipped, by the norm of its whole gradient, and noised.",
        workers=2,
    ),
    Section(
        "noise",
        "Noise, scaled and added, beside MXNet's operators",
        ("noise_cost.py", "--rounds", "7"),
        27,
        tuple(
            Bar(
                f"MXNet's operators ÷ ours, {threads} thread(s)",
                quotient(threads, "seconds", of="MXNet", by="ours"),
                8.0,
                4.0,
                is_least=True,
                digits=1,
            )
            for threads in ("1", "2")
        ),
    ),
    Section(
        "crf",
        "The CRF's share of a step",
        ("crf_share.py", "--rounds", "7"),
        20,
        _each(
            lambda family: Bar(
                f"{family.upper()}, CRF ÷ step",
                quotient(family, of="crf", by="step"),
                0.06,
                0.12,
                digits=3,
            )
        ),
    ),
    Section(
        "peers",
        "Our plain step beside PyTorch's",
        ("peers.py", "--plain", "--rounds", "5"),
        40,
        tuple(
            Bar(
                f"{family.upper()}, our SGD ÷ PyTorch's",
                quotient(family, "seconds", of="edp_mx sgd", by="torch sgd"),
                limit,
                guard,
            )
            for family, limit, guard in (("clc", 1.2, 2.4), ("bert", 1.0, 2.0))
        ),
        needs=PEERS,
        missing=NEEDS_PEERS,
    ),
    Section(
        "opacus",
        "DP-SGD beside Opacus",
        ("peers.py", "--model", "bert", "--rounds", "3"),
        50,
        tuple(_opacus_bars()),
        note="Opacus unrolls CLC's LSTM: `benchmarks/peers.py --model clc --rounds 1` takes "
        "minutes, and is left out here.",
        needs=PEERS,
        missing=NEEDS_PEERS,
    ),
    Section(
        "workers",
        "N workers on this machine",
        ("worker_cost.py", "--rounds", "3", "--steps", "1"),
        75,
        tuple(
            _throughput_bar(family, number, guard)
            for family in FAMILIES
            for number, guard in (("2", 0.7), ("8", 0.3))
        ),
        note="A batch that is divided among workers has no bar: each of them noises and updates "
        "the whole gradient, however small its share of the batch.",
    ),
    Section(
        "epoch",
        "An epoch of ATIS, before and after",
        ("epoch_time.py", "--steps", "24"),
        38,
        missing=NEEDS_ATIS,
    ),
    Section(
        "data",
        "Data: starts, batches, memory",
        ("data_speed.py", "--rounds", "2"),
        90,
        (
            Bar(
                "seconds to start on 1,000,000 utterances that were read before",
                _warm("1000000", "seconds"),
                5.0,
                15.0,
            ),
            Bar("anonymous memory of 1,000,000 ÷ 100,000 utterances", _memory_growth, 1.1, 2.0),
            Bar("an utterance of 1,000,000 ÷ one of 10,000, batches", _linear, 1.5, 4.0),
            *_each(
                lambda family: Bar(
                    f"{family.upper()}, batches ÷ steps in the same time",
                    quotient("batches", family, of="step", by="batch"),
                    20.0,
                    10.0,
                    is_least=True,
                    digits=0,
                )
            ),
        ),
    ),
    Section(
        "evaluation",
        "Evaluation, attack and prediction beside training",
        ("evaluation_speed.py", "--rounds", "2"),
        60,
        tuple(
            Bar(
                f"{family.upper()}, {way} ÷ train, utterances/s",
                quotient(family, "clock", of=way, by="train"),
                3.0,
                1.5,
                is_least=True,
            )
            for family in FAMILIES
            for way in ("evaluate", "attack", "predict")
        ),
        missing=NEEDS_ATIS,
    ),
)
