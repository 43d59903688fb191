"""The model of an exported folder, asked by ONNX Runtime: no MXNet, and none of its scripts."""

from __future__ import annotations

from dataclasses import asdict, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

from edp_mx.data.tokenization import Cut
from edp_mx.errors import UserError
from edp_mx.runs.exported.shipped.decode import Decoder
from edp_mx.runtime.config_files import overrides_of, read_settings
from edp_mx.runtime.json_text import read_json
from edp_mx.runtime.threads import allowed_threads
from edp_mx.tasks.confidence import Confidence
from edp_mx.tasks.registry import TASKS
from edp_mx.tasks.task import LabellingTask

GRAPH, ABOUT, SCRIPT = "model.onnx", "model.json", "answer.py"
PIECES = "pieces.json"  # the tokenizer of one token; a tokenizer.json would be one of whole texts
AT_ONCE = 64  # utterances


def is_exported(path: Path) -> bool:
    """Return whether a folder was written by `edp-mx export --to onnx`."""
    return any((path / name).is_file() for name in (GRAPH, SCRIPT))


def about_of(path: Path) -> Dict[str, Any]:
    """Return the settings of an exported folder."""
    about = read_json(path / ABOUT)
    if not isinstance(about, dict) or not {"task", "token_pattern", "intents"} <= about.keys():
        raise UserError(f"{path / ABOUT} was cut or changed; export the run again")
    return about


class ExportedModel:
    """Answers as the run does from which it was exported.

    Raises:
        UserError: onnxruntime or tokenizers is not installed, or a file was cut or changed.
    """

    def __init__(self, path: Path) -> None:
        about = about_of(path)
        try:
            import onnxruntime

            kind = "pieces" if (path / PIECES).exists() else "words"
            encoder = import_module(f"edp_mx.runs.exported.shipped.encode_{kind}").Encoder
        except ModuleNotFoundError as error:
            raise UserError(
                f"{path} is read by {error.name}: pip install onnxruntime tokenizers"
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = allowed_threads()
        try:
            self._task = TASKS[about["task"]]
            self._encoder, self._decoder = encoder(path, about), Decoder(about)
            self._session = onnxruntime.InferenceSession(
                str(path / GRAPH), options, providers=["CPUExecutionProvider"]
            )
            self._compare_with_graph()
        except Exception as error:  # of any kind, by onnxruntime and tokenizers
            said = " ".join(str(error).split())[:200]
            raise UserError(
                f"{path} cannot be read ({type(error).__name__}: {said}); export the run again"
            ) from error
        self.tokens_of: Cut = self._encoder.cut
        self.reads_second: Optional[bool] = about.get("reads_second")

    def set_answering(self, overrides: Sequence[str]) -> None:
        """Have it answer by other settings than its folder has, such as `threshold=0.5`."""
        own = vars(self._decoder)
        kept = overrides_of({each.name: own[each.name] for each in fields(Confidence)})
        own.update(asdict(read_settings([], [*kept, *overrides], kind=Confidence)))

    def predict(
        self,
        token_lists: Sequence[Sequence[str]],
        *,
        most_at_once: Optional[int] = None,
        heard: Optional[Callable[[Any], None]] = None,  # noqa: ARG002 (no answer grows in parts)
    ) -> List[Any]:
        """Return the model's answer to each list of tokens, of like sizes together."""
        assert isinstance(self._task, LabellingTask)
        size = most_at_once or AT_ONCE
        order = sorted(
            range(len(token_lists)), key=lambda index: self._encoder.size(token_lists[index])
        )
        found: List[Any] = [None] * len(order)
        for start in range(0, len(order), size):
            places = order[start : start + size]
            rows = [list(token_lists[place]) for place in places]
            for place, answer in zip(places, self._decoder(rows, *self._scores(rows))):
                found[place] = self._task.answer_of(answer)
        return found

    def _scores(self, rows: List[List[str]]) -> List[Any]:
        """Return how many tokens are read of each row, (N,), and (N, I), with slots (N, T, K)."""
        inputs, counts = self._encoder(rows)
        asked = {each.name: inputs[each.name] for each in self._session.get_inputs()}
        return [counts, *self._session.run(None, asked)]

    def _compare_with_graph(self) -> None:
        """Have one answer, and refuse names that are not as many as the graph has scores."""
        last = list(getattr(self._encoder, "words", {}))[-1:]  # whose number is the largest
        counts, *found = self._scores([last or ["a"]])
        named = [len(each) for each in (self._decoder.labels, self._decoder.tags) if each]
        if [each.shape[-1] for each in found] != named:
            raise ValueError(f"{ABOUT} and {GRAPH} do not have the same number of labels")
        list(self._decoder([["a"]], counts, *found))


def load_model(path: Path) -> Any:
    """Return the model of a run, or of a folder that was exported for ONNX Runtime."""
    if is_exported(path):
        return ExportedModel(path)
    from edp_mx.runs.trained_run import load_run

    return load_run(path)
