"""Our training steps beside PyTorch's and Opacus's, on the same models, batch and threads.

Run: benchmarks/setup_peers.sh
     .venv/bin/python benchmarks/peers.py [--model bert] [--rounds 11] [--json FILE]

PyTorch runs in a process of its own, with the Python of `--venv`; the two sides take their steps in
turn, each timed where it runs, and the ratios are taken round by round. By default the slots' loss
is a cross entropy on both sides: Opacus cannot clip a CRF, and PyTorch has none of its own. With
`--crf` both have one and Opacus is left out. All utterances are equally long unless `--shortest`
says otherwise; PyTorch's LSTM then skips the padding. Opacus draws its noise from PyTorch's own
generator, we from a cryptographic stream.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Sequence

import mxnet as mx
import numpy as np
import steps
import subjects
from rounds import in_turn, ratio, spread

from edp_mx.data.batching import Batch, PieceInputs
from edp_mx.models.bert import BERTConfig
from edp_mx.models.clc import CLCConfig
from edp_mx.reports.table import render_table
from edp_mx.runtime import distributed
from edp_mx.runtime.files import write_json

OURS = ("sgd", "edp_sgd", "dp_sgd_ghost")  # of `steps.VARIANTS`
PEERS = ("sgd", "opacus_hooks", "opacus_ghost")
PAUSE = 0.3  # seconds between steps, in which the other side's threads come to rest


class Torch:
    """The PyTorch side: a process that takes a step when it is told to."""

    def __init__(self, python: Path, batch: Path, settings: Dict[str, Any]) -> None:
        if not python.exists():
            raise SystemExit(
                f"{python} is missing: run benchmarks/setup_peers.sh, or name the folder that it "
                "was given by --venv"
            )
        script = Path(__file__).with_name("peers_torch.py")
        self._process = subprocess.Popen(
            [python, script, "--batch", batch, "--settings", json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.built = json.loads(self._answer())

    def stepper(self, name: str) -> Callable[[], float]:
        """A function that takes one step of a variant and returns its seconds."""

        def step() -> float:
            assert self._process.stdin
            self._process.stdin.write(f"{name}\n")
            self._process.stdin.flush()
            return float(self._answer())

        return step

    def close(self) -> None:
        """Ends the process, by the end of its input."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the PyTorch side ended with {self._process.wait()}; see above")
        return line


def measure(family: str, options: argparse.Namespace, folder: Path) -> Dict[str, Any]:
    """Seconds of each variant of both sides, and what the PyTorch side is."""
    batch = subjects.synthetic_batch(
        family,
        examples=options.batch,
        tokens=options.tokens,
        shortest=options.shortest or options.tokens,
    )
    np.savez(folder / "batch.npz", **arrays_of(batch))
    workers = distributed.start()
    ours = {}
    for name in OURS[:1] if options.plain else OURS:
        subject = subjects.Subject(family, batch, has_crf=options.crf, workers=workers)
        ours[f"edp_mx {name}"] = steps.VARIANTS[name](subject)
    size = sum(layer.size for layer in subject.flat.layers)
    python = Path(options.venv) / "bin" / "python"
    torch = Torch(python, folder / "batch.npz", settings_of(family, options))
    try:
        refuse_other_models(size, torch.built["trained"])
        turns = {f"torch {name}": torch.stepper(name) for name in torch.built["trained"]}
        turns.update({name: variant.step for name, variant in ours.items()})
        seconds = in_turn(turns, rounds=options.rounds, pause=PAUSE)
    finally:
        torch.close()
    return {"seconds": seconds, "parameters": size, "versions": torch.built["versions"]}


def refuse_other_models(size: int, trained: Dict[str, int]) -> None:
    """Refuses to compare models of different sizes.

    Raises:
        SystemExit: names the variant.
    """
    for name, other in trained.items():
        if other != size:
            raise SystemExit(
                f"PyTorch's {name} trains {other} parameters and ours {size}: bring "
                "benchmarks/peers_torch.py and benchmarks/subjects.py back into step"
            )


def arrays_of(batch: Batch) -> Dict[str, np.ndarray]:
    """A batch under the names that the PyTorch side knows."""
    names = ("words", "characters")
    if isinstance(batch.inputs, PieceInputs):
        names = ("pieces", "piece_lengths", "firsts")
    labels = {"slots": batch.slots, "intents": batch.intents}
    lengths = {"lengths": batch.lengths, "mask": batch.mask}
    return {**dict(zip(names, batch.inputs)), **labels, **lengths}


def settings_of(family: str, options: argparse.Namespace) -> Dict[str, Any]:
    """What the PyTorch side is to build."""
    sizes = {
        "words": subjects.WORDS,
        "word_dimension": subjects.WORD_DIMENSION,
        "letters": subjects.LETTERS,
        "pieces": subjects.PIECES,
        **asdict(BERTConfig() if family == "bert" else CLCConfig()),
    }
    return {
        "family": family,
        "sizes": sizes,
        "slots": subjects.SLOTS,
        "intents": subjects.INTENTS,
        "has_crf": options.crf,
        "variants": PEERS[:1] if options.crf or options.plain else PEERS,
        "learning_rate": steps.LEARNING_RATE,
        "noise_multiplier": steps.NOISE_MULTIPLIER,
        "max_grad_norm": steps.MAX_GRAD_NORM,
    }


def page(family: str, options: argparse.Namespace, result: Dict[str, Any]) -> str:
    """The table: each step in those of both plain steps."""
    seconds = result["seconds"]
    bases = ("torch sgd", "edp_mx sgd", "torch opacus_ghost")
    bases = tuple(base for base in bases if base in seconds)
    rows = [
        [
            name,
            spread([1e3 * value for value in values]).show(0),
            *(ratio(seconds, name, base).show(2) for base in bases),
        ]
        for name, values in seconds.items()
    ]
    title = (
        f"\n{family}, {result['parameters']:,} parameters: B = {options.batch}, T = "
        f"{options.tokens}, {'CRF' if options.crf else 'no CRF'}, MXNet {mx.__version__}, "
        f"{', '.join(result['versions'])}, {options.rounds} rounds: median (quartiles)\n"
    )
    return f"{title}\n{render_table(('step', 'ms', *(f'÷ {base}' for base in bases)), rows)}"


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Measures and prints."""
    root = Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", action="append", choices=subjects.FAMILIES, help="or both")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=24, help="of the longest utterance")
    parser.add_argument("--shortest", type=int, help="tokens of the shortest utterance")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--plain", action="store_true", help="the plain steps alone")
    parser.add_argument("--crf", action="store_true", help="with a CRF, without Opacus")
    parser.add_argument("--venv", default=str(root / ".venv-peers"), help="of setup_peers.sh")
    parser.add_argument("--json", metavar="FILE", help="where to write all seconds")
    options = parser.parse_args(arguments)
    steps.settle_threads()
    results: Dict[str, Dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for family in options.model or subjects.FAMILIES:
            results[family] = measure(family, options, Path(folder))
            print(page(family, options, results[family]), flush=True)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
