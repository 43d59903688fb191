"""Our training steps beside PyTorch's and Opacus' on the same models, batch and threads.

Run: benchmarks/setup_peers.sh
     .venv/bin/python benchmarks/peers.py [--model bert gpt2] [--rounds 11] [--json FILE]

PyTorch runs in a process of its own, with the Python of `--venv`; both sides take turns. The slots'
loss is a cross entropy on both, since Opacus cannot clip a CRF. A GPT-2 for Opacus has an output
layer of its own, since it cannot clip a shared table. All utterances are equally long.
"""

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

import measuring
import mxnet as mx
import numpy as np
import steps
import subjects
from jobs import Job

from edp_mx.models.bert import BERTConfig
from edp_mx.models.clc import CLCConfig
from edp_mx.models.gpt2.config import GPT2Config
from edp_mx.runtime import distributed

OURS = ("sgd", "edp_sgd", "dp_sgd_ghost")  # of `steps.VARIANTS`
PEERS = ("sgd", "opacus_hooks", "opacus_ghost")
PAUSE = 0.3  # seconds between steps, in which the other side's threads come to rest
SLOW = ("torch opacus_hooks",)  # taken once, behind the pause, which costs it little
PAIRS = (  # the ratios that are recorded
    ("edp_mx sgd", "torch sgd"),
    ("edp_mx dp_sgd_ghost", "torch opacus_ghost"),
    ("edp_mx dp_sgd_ghost", "torch opacus_hooks"),
)


def main() -> None:
    parser = measuring.build_parser(__doc__, rounds=11, more_models=["gpt2"])
    parser.add_argument("--batch", type=int, default=subjects.EXAMPLES)
    parser.add_argument("--tokens", type=int, default=subjects.TOKENS, help="of every utterance")
    parser.add_argument("--plain", action="store_true", help="SGD only, without Opacus")
    parser.add_argument(
        "--venv", default=str(measuring.ROOT / ".venv-peers"), help="of setup_peers.sh"
    )
    options = parser.parse_args()
    measuring.settle_threads()
    figures: measuring.Figures = {}
    for family in options.model:
        with tempfile.TemporaryDirectory() as folder:
            title, seconds = measure(family, options, Path(folder))
        bases = (name for name in seconds if name.endswith("sgd"))
        print(measuring.show_seconds(title, seconds, *bases), flush=True)
        for ours, theirs in PAIRS:
            if ours in seconds and theirs in seconds:
                what = f"{family.upper()}, {ours} ÷ {theirs}"
                figures[what] = measuring.ratios(seconds, ours, theirs)
    measuring.record(options, figures)


def measure(
    family: str, options: argparse.Namespace, folder: Path
) -> Tuple[str, measuring.Seconds]:
    """Return a title and the seconds of each variant of both sides."""
    size = {"examples": options.batch, "tokens": options.tokens, "shortest": options.tokens}
    batch = subjects.synthetic_batch(family, **size)
    names = ("words", "characters") if family == "clc" else ("pieces", "piece_lengths", "firsts")
    inputs = dict(zip(names, batch.inputs))  # under the names that the PyTorch side knows
    np.savez(folder / "batch.npz", slots=batch.slots, intents=batch.intents, **inputs)
    workers = distributed.start()
    turns = {}
    for name in OURS[:1] if options.plain else OURS:
        model = subjects.paper_model(family)
        has_own_loss = family == "gpt2"  # the others' CRF is left out
        subject = subjects.Subject(model, batch, workers=workers, has_crf=has_own_loss)
        turns[f"edp_mx {name}"] = steps.VARIANTS[name](subject)
    parameters = sum(layer.size for layer in subject.flat.layers)
    python = Path(options.venv) / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"{python} is missing: run benchmarks/setup_peers.sh, or name its --venv")
    script = str(Path(__file__).with_name("peers_torch.py"))
    settings = json.dumps(settings_of(family, options))
    torch = Job([str(python), script, str(folder / "batch.npz"), settings], environment={})
    try:
        [built] = torch.turn("what was built")
        for name, other in built["trained"].items():
            if other != parameters:
                raise SystemExit(
                    f"PyTorch's {name} trains {other} parameters and ours {parameters}: bring "
                    "benchmarks/peers_torch.py and benchmarks/subjects.py back into step"
                )
            turns[f"torch {name}"] = lambda name=name: torch.turn(name)[0]
        turns = {
            name: step if name in SLOW else behind_its_own(step) for name, step in turns.items()
        }
        seconds = measuring.in_turn(turns, rounds=options.rounds, pause=PAUSE)
    finally:
        torch.close()
    title = (
        f"{family}, {parameters:,} parameters: B = {options.batch}, T = {options.tokens}, no CRF, "
        f"MXNet {mx.__version__}, {', '.join(built['versions'])}, {options.rounds} rounds"
    )
    return title, seconds


def behind_its_own(step: Callable[[], float]) -> Callable[[], float]:
    """Return the step, taken twice: as in training, one follows another and no pause."""

    def second() -> float:
        step()
        return step()

    return second


def settings_of(family: str, options: argparse.Namespace) -> Dict[str, Any]:
    """Return what the PyTorch side is to build."""
    kinds = {
        "bert": BERTConfig(),
        "clc": CLCConfig(),
        "gpt2": GPT2Config(**subjects.SMALL_GPT2),
    }
    sizes = {
        "words": subjects.WORDS,
        "word_dimension": subjects.WORD_DIMENSION,
        "letters": subjects.LETTERS,
        "pieces": subjects.PIECES.get(family),
        **asdict(kinds[family]),
    }
    return {
        "family": family,
        "sizes": sizes,
        "slots": subjects.SLOTS,
        "intents": subjects.INTENTS,
        "variants": PEERS[:1] if options.plain else PEERS,
        "learning_rate": steps.LEARNING_RATE,
        "noise_multiplier": steps.NOISE_MULTIPLIER,
        "max_grad_norm": steps.MAX_GRAD_NORM,
    }


if __name__ == "__main__":
    main()
