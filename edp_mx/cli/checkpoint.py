"""Import, export and describe BERTs in Hugging Face's layout."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict

from edp_mx.cli.console import add_command, print_json, refuse_filled
from edp_mx.runtime.progress import start_logging

if TYPE_CHECKING:
    from edp_mx.models.checkpoints.huggingface import Checkpoint

EXAMPLES = """\
examples:
  edp-mx checkpoint describe TinyBERT_General_4L_312D
  edp-mx checkpoint import TinyBERT_General_4L_312D --out checkpoints/tinybert
  edp-mx train configs/atis_bert.yaml --set model.checkpoint=checkpoints/tinybert
  edp-mx checkpoint export RUN --out exported
"""
IMPORT_EXAMPLES = """\
DIR holds config.json, vocab.txt (or tokenizer.json) and the weights: model.safetensors, whole or in
parts, or pytorch_model.bin, which needs PyTorch and of which only tensors are read.

examples:
  edp-mx checkpoint import TinyBERT_General_4L_312D --out checkpoints/tinybert
  pip install torch && edp-mx checkpoint import with_pytorch_model_bin --out checkpoints/mine
"""
EXPORT_EXAMPLES = """\
The encoder is written under "bert.", as transformers.BertModel.from_pretrained reads it; the intent
and slot layers and the CRF lie beside it, their labels in config.json.

examples:
  edp-mx checkpoint export runs/atis_bert-20260101-120000 --out exported
"""
DESCRIBE_EXAMPLES = """\
All tensors are read and checked, nothing is written.

examples:
  edp-mx checkpoint describe checkpoints/tinybert
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    read = add_command(
        actions, "import", run_import, "check a BERT and write it as safetensors", IMPORT_EXAMPLES
    )
    write = add_command(
        actions, "export", run_export, "write a trained BERT for transformers", EXPORT_EXAMPLES
    )
    told = add_command(
        actions, "describe", run_describe, "check a BERT and print its sizes", DESCRIBE_EXAMPLES
    )
    told.add_argument("--json", action="store_true", help="print JSON")
    write.add_argument("run_directory", type=Path, metavar="RUN", help="a run directory")
    for one in (read, told):
        one.add_argument("folder", type=Path, metavar="DIR", help="a BERT in Hugging Face's layout")
    for one in (read, write):
        one.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder")


def run_import(arguments: argparse.Namespace) -> int:
    """Read any layout and write the one that training reads."""
    from edp_mx.data.origin import ORIGIN, write_origin
    from edp_mx.models.checkpoints.huggingface import read_checkpoint, write_checkpoint
    from edp_mx.runs.ancestors import origin_of

    start_logging(is_first=True)
    out = arguments.out
    refuse_filled(out)
    checkpoint = read_checkpoint(arguments.folder)
    write_origin(out / ORIGIN, origin_of(arguments.folder))  # first: no weights without it
    config, tokenizer = checkpoint.config, checkpoint.tokenizer
    write_checkpoint(out, config=config, tokenizer=tokenizer, tensors=checkpoint.tensors)
    return _tell(out, checkpoint)


def run_export(arguments: argparse.Namespace) -> int:
    """Write the BERT of a run, with its heads."""
    from edp_mx.runs.export import export
    from edp_mx.runs.trained_run import load_run

    out = arguments.out
    refuse_filled(out)
    trained = load_run(arguments.run_directory)
    return _tell(out, export(trained.run, trained.config, trained.model, trained.vocabulary, out))


def run_describe(arguments: argparse.Namespace) -> int:
    """Print the sizes of a checkpoint."""
    from edp_mx.models.checkpoints.huggingface import read_checkpoint

    start_logging(is_first=True)
    checkpoint = read_checkpoint(arguments.folder)
    if arguments.json:
        print_json(_as_json(checkpoint))
        return 0
    return _tell(arguments.folder, checkpoint)


def _as_json(checkpoint: Checkpoint) -> Dict[str, Any]:
    """Return the lines that `_tell` prints."""
    names = ("num_layers", "num_heads", "hidden_size", "intermediate_size", "max_positions",
             "activation", "layer_norm_epsilon")  # fmt: skip
    return {
        **{name: getattr(checkpoint.config, name) for name in names},
        "pieces": len(checkpoint.tokenizer),
        "lowercase": checkpoint.tokenizer.lowercase,
        "parameters": checkpoint.num_parameters,
        "has_pooler": checkpoint.has_pooler,
        "has_masked_lm": checkpoint.has_masked_lm,
    }


def _tell(folder: Path, checkpoint: Checkpoint) -> int:
    """Print the sizes of a checkpoint."""
    config = checkpoint.config
    case = "in lower case" if checkpoint.tokenizer.lowercase else "in their own case"
    lines = [
        str(folder),
        f"layers             {config.num_layers:>12,}",
        f"heads              {config.num_heads:>12,}",
        f"hidden size        {config.hidden_size:>12,}",
        f"intermediate size  {config.intermediate_size:>12,}",
        f"positions          {config.max_positions:>12,}",
        f"pieces             {len(checkpoint.tokenizer):>12,}  {case}",
        f"parameters         {checkpoint.num_parameters:>12,}",
        f"activation         {config.activation:>12}",
        f"layer norm epsilon {config.layer_norm_epsilon:>12g}",
        f"pooler             {'yes' if checkpoint.has_pooler else 'no':>12}",
        f"masked-LM head     {'yes' if checkpoint.has_masked_lm else 'no':>12}",
    ]
    print("\n".join(lines))
    return 0
