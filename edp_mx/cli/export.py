"""Write a trained model as a folder that is used without MXNet, with a model card.

onnx: a graph for ONNX Runtime, of any model that answers with labels; answer.py asks it.
huggingface: a BERT with its heads, or a GPT-2, as transformers reads it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from edp_mx.cli.console import add_overrides, refuse_filled

EXAMPLES = """\
examples:
  edp-mx export runs/mine-20260101-120000 --to onnx
  python exported/mine-20260101-120000/answer.py "call my parents at 0123"
  edp-mx export RUN --to huggingface --out mine
"""
FORMATS = ("onnx", "huggingface")


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_directory", type=Path, metavar="RUN", help="a run directory")
    add("--to", required=True, choices=FORMATS, help="what reads the folder")
    add("--out", type=Path, metavar="DIR", help="a new folder (exported/RUN)")
    add_overrides(parser, "threshold=0.5 (in model.json)")


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.reports.model_card import CARD, model_card
    from edp_mx.runs.exported.huggingface import write_huggingface
    from edp_mx.runs.exported.onnx_folder import write_onnx
    from edp_mx.runs.trained_run import load_run
    from edp_mx.runtime.files import write_text

    path = arguments.run_directory
    out = arguments.out or Path("exported") / path.resolve().name
    refuse_filled(out)
    trained = load_run(path)
    if arguments.overrides:
        trained.set_answering(arguments.overrides)
    card = model_card(trained, to=arguments.to)
    {"onnx": write_onnx, "huggingface": write_huggingface}[arguments.to](trained, out)
    write_text(out / CARD, card)
    for file in sorted(out.iterdir()):
        print(f"{file.stat().st_size:>13,}  {file}")
    return 0
