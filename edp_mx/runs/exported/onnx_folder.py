"""A run as a folder for ONNX Runtime: the graph, what was learned beside it, and a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Tuple

from edp_mx.data.origin import ORIGIN, write_origin
from edp_mx.dp.weights import weights_of
from edp_mx.errors import UserError
from edp_mx.models.onnx.graph import Axes, Graph
from edp_mx.models.onnx.layers import dense
from edp_mx.models.registry import FAMILIES
from edp_mx.runs.ancestors import origin_of
from edp_mx.runs.exported.exported_model import ABOUT, GRAPH, SCRIPT
from edp_mx.runs.exported.scripts import about, require_labels, write_scripts
from edp_mx.runs.trained_run import TrainedRun
from edp_mx.runtime.files import whole_file, write_json


def write_onnx(trained: TrainedRun, out: Path) -> None:
    """Write a folder whose `answer.py` answers utterances with numpy and onnxruntime.

    Raises:
        UserError: the model has no labels, its family has no graph, or `onnx` is not installed.
    """
    graph = onnx_model(trained).SerializeToString()
    write_origin(out / ORIGIN, origin_of(trained.run.path))  # first: no weights without it
    with whole_file(out / GRAPH) as file:
        file.write(graph)
    write_json(out / ABOUT, about(trained))
    write_scripts(trained, out, SCRIPT)


def onnx_model(trained: TrainedRun) -> Any:
    """Return the `onnx.ModelProto`: encoder, label scores, and emissions where there are slots.

    Shapes: the inputs of the family's graph → label_scores (N, I), emissions (N, T, K).
    """
    model, config = trained.model, trained.config.model
    family = FAMILIES[config.family]
    require_labels(trained)
    if family.graph is None:
        raise UserError(
            f"{trained.run.path} has model.family: {family.name}, which cannot be exported to ONNX"
        )
    try:
        import onnx  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError(
            f"an export to ONNX needs {error.name}: pip install 'edp_mx[onnx]'"
        ) from error
    graph = Graph(config.trained_part.plain(weights_of(model), config))
    states, pooled = family.graph(graph, model.encoder)
    outputs: Dict[str, Tuple[str, Axes]] = {
        "label_scores": (dense(graph, pooled, model.heads["intents"]), ("N", "I"))
    }
    if "slots" in model.heads:
        emissions = dense(graph, states, model.heads["slots"].dense)
        outputs["emissions"] = (emissions, ("N", "T", "K"))
    return graph.model(outputs)
